"""Results of tau2-bench, traces of verifiers, samples of HumanEval, conversations."""

import doctest
import json
import math

import numpy as np
import pytest

from jerp.errors import ConfigError, InputError, StorageError
from jerp.readers import logs
from jerp.readers.log_options import LogOptions
from jerp.readers.logs import log_format, read_runs
from jerp.typing import Outcome
from tests.readers.log_files import (
    ASKED,
    CALL,
    SAID,
    chat,
    document,
    episode,
    lines,
    outcomes,
    simulation,
    tau2_results,
    trace,
)

SAMPLE = {"task_id": "t", "completion": "x", "passed": True, "result": "passed"}
ONCE = {"spent": "1", "errors": "none", "truncated": "none"}


@pytest.fixture
def results(tmp_path):
    """Writes results of tau2-bench."""
    return lambda *runs, **kwargs: document(
        tmp_path / "r.json", tau2_results(list(runs), **kwargs)
    )


@pytest.fixture
def written(tmp_path):
    """Writes lines."""
    return lambda *values: lines(tmp_path / "r.jsonl", *values)


# tau2-bench


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("user_stop", Outcome.FAILURE),
        ("agent_stop", Outcome.FAILURE),
        ("judge_stop", Outcome.FAILURE),
        ("too_many_errors", Outcome.FAILURE),
        ("max_steps", Outcome.TRUNCATED),
        ("agent_error", Outcome.MALFORMED),
        ("user_error", Outcome.INFRASTRUCTURE),
        ("infrastructure_error", Outcome.INFRASTRUCTURE),
    ],
)
def test_tau2_says_why_a_simulation_ended(results, reason, outcome):
    path = results(simulation(reward=0.0, termination_reason=reason))
    assert outcomes(path)[0] == [outcome]


def test_the_greeting_of_tau2_is_no_turn_and_a_user_calls_no_tool_for_the_agent(
    results,
):
    users = {"role": "user", "tool_calls": [{"id": "2"}]}
    path = results(simulation(messages=[SAID, ASKED, users, CALL, SAID]))
    assert outcomes(path, unit="turns")[1] == [2]
    assert outcomes(path)[1] == [1]
    # Alone, the agent speaks first.
    solo = results(simulation(messages=[CALL, {"role": "tool"}, CALL, SAID]))
    assert outcomes(solo, unit="turns")[1] == [3]
    assert outcomes(solo, unit="seconds")[1] == [2.0]
    assert outcomes(solo, unit="dollars")[1] == [0.25]


def test_what_tau2_skipped_or_never_ran_is_infrastructure(results):
    path = results(
        simulation(skipped=True, termination_reason="agent_error", messages=[]),
        simulation("b"),
        tasks=("a", "b"),
        trials=2,
    )
    table = read_runs(path, extra=["kind"])
    assert table.arrays().outcome.tolist() == [[4, 4], [1, 4]]
    np.testing.assert_array_equal(table.spent, [np.nan, 1, np.nan, np.nan])
    assert "2 runs planned and not in the file, taken as infra" in " ".join(table.notes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task_id": ...}, r"simulation 1, task_id: expected a text or a number"),
        ({"task_id": "z"}, r"task_id: expected one of the file's tasks, got 'z'"),
        ({"trial": None}, r"trial: expected a whole number, got nothing"),
        ({"reward_info": None}, r"\(task 'a', trial 0\), reward_info.reward: expected"),
        (
            {"reward_info": {"reward": math.nan}},
            r"reward: expected a finite .* got nan",
        ),
        ({"reward_info": {"reward": 0.5}}, r"got 0.5, neither 0 nor 1; .*--success-at"),
        ({"termination_reason": "storm"}, r"reason: expected one of user.*got 'storm'"),
        ({"messages": "hi"}, r"messages: expected a list of objects, got 'hi'"),
    ],
)
def test_what_a_simulation_lacks_is_refused(results, changes, message):
    with pytest.raises(InputError, match=message):
        outcomes(results(simulation(**changes)))


def test_tokens_that_tau2_did_not_note_are_refused(results):
    with pytest.raises(
        InputError, match=r"messages, usage.completion_tokens: expected a f"
    ):
        outcomes(results(simulation()), unit="tokens")


def test_results_that_are_cut_off_are_refused(results):
    path = results(simulation(), simulation(trial=1), trials=2)
    text = path.read_text()
    for end in (len(text) - 1, len(text) // 2, len(text) - 30):
        path.write_text(text[:end])
        with pytest.raises(StorageError, match="ends in the middle of a value; the fi"):
            read_runs(path, format="tau2")
    path.write_text(text.replace('"trial": 1', '"trial": one'))
    with pytest.raises(StorageError, match="not JSON"):
        read_runs(path)


# verifiers


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (trace(), Outcome.SUCCESS),
        (trace(0.0), Outcome.FAILURE),
        (trace(errors=[{"type": "ProviderError"}]), Outcome.SUCCESS),
        (trace(ok=False, rewards={}, errors=[{"type": "E"}]), Outcome.INFRASTRUCTURE),
        (trace(0.0, stop_condition="max_turns"), Outcome.TRUNCATED),
        (trace(0.0, stop_condition="agent_timeout"), Outcome.TRUNCATED),
        (trace(1.0, stop_condition="max_total_tokens"), Outcome.SUCCESS),
        (trace(0.0, stop_condition="scoring_timeout"), Outcome.INFRASTRUCTURE),
        (trace(0.0, stop_condition="of_my_own"), Outcome.FAILURE),
        (trace(0.0, calls=[{"finish_reason": "length"}]), Outcome.TRUNCATED),
        (
            trace(0.0, calls=[{"finish_reason": "length"}, {"finish_reason": "stop"}]),
            Outcome.FAILURE,
        ),
    ],
)
def test_verifiers_says_how_a_trace_ended(written, made, outcome):
    """Errors that a retry mended are listed, and do not count."""
    assert outcomes(written(episode(made)))[0] == [outcome]


def test_an_episode_that_came_to_no_trace_is_infrastructure(written):
    path = written(episode(ok=False), episode(trace()))
    assert outcomes(path)[0] == [4, 1]
    assert read_runs(path).tasks == ("a",)


def test_several_rewards_ask_which_one(written):
    rewards = {
        "right": {"score": 1.0, "weight": 1.0},
        "form": {"score": 0.5, "weight": 0.2},
    }
    path = written(episode(trace(rewards=rewards)))
    with pytest.raises(InputError, match="one reward, got the rewards 'right', 'form'"):
        outcomes(path)
    assert outcomes(path, score="right")[0] == [1]
    # The weighted sum is 1.1.
    assert outcomes(path, score="reward", success_at=1.05)[0] == [1]
    assert outcomes(path, score="reward", success_at=1.15)[0] == [0]
    assert outcomes(path, score="length", success_at=3)[0] == [1]
    with pytest.raises(InputError, match="expected the reward or metric 'x', got"):
        outcomes(path, score="x")
    with pytest.raises(InputError, match=r"metrics: expected an object, got \[1\]"):
        outcomes(written(episode(trace(metrics=[1]))), score="q")


def test_several_agents_ask_whose_run_it_is(written):
    judge = trace(0.0, "judge", agent={"name": "judge", "trainable": False})
    path = written(episode(judge, trace(1.0, "solver")))
    assert outcomes(path)[0] == [1]
    assert outcomes(path, agent="judge")[0] == [0]
    with pytest.raises(
        InputError, match="agent 'x', got 0, of the agents 'judge', 'so"
    ):
        outcomes(path, agent="x")
    two = written(episode(trace(), trace()))
    with pytest.raises(InputError, match=r"expected one trace, got 2.*--agent NAME"):
        outcomes(two)


@pytest.mark.parametrize(
    ("unit", "spent"), [("steps", 1), ("turns", 2), ("tokens", 5), ("seconds", 1.5)]
)
def test_what_a_trace_spent(written, unit, spent):
    assert outcomes(written(episode(trace())), unit=unit)[1] == [spent]
    assert outcomes(written(episode(trace())), spent="metrics.length")[1] == [3]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (episode(trace(math.nan)), r"score: expected a finite number, .*got nan"),
        (episode(trace(None)), r"rewards.right.score: expected a finite number"),
        (episode(trace(0.3)), r"got 0.3, neither 0 nor 1"),
        (
            episode(trace(ok=1)),
            r"line 1 \(task 'a'\), ok: expected true or fal",
        ),
        (
            episode(trace(0.0, stop_condition=[])),
            r"stop_condition: expected a text",
        ),
        (episode(trace(0.0, calls={})), r"calls: expected a list of objects, got {}"),
        (episode(trace(rewards=...)), r"rewards: expected an object, got nothing"),
        (episode(trace(nodes=...)), r"line 1 \(task 'a'\), nodes: expected a list of"),
        (episode(trace(), task=...) | {"task": {}}, r"task.hash: expected a text"),
        (episode(trace()) | {"traces": 3}, r"traces: expected a list of objects"),
    ],
)
def test_what_an_episode_lacks_is_refused(written, made, message):
    with pytest.raises(InputError, match=message):
        outcomes(written(made))


def test_a_half_written_last_line_is_refused(written):
    path = written(episode(trace()), episode(trace()))
    path.write_text(path.read_text()[:-40])
    with pytest.raises(StorageError, match="line 2: not JSON"):
        read_runs(path)


# HumanEval


def test_samples_are_numbered_in_the_order_of_the_file(written):
    path = written(SAMPLE, {**SAMPLE, "passed": False}, {**SAMPLE, "task_id": "u"})
    table = read_runs(path, options=LogOptions(**{**ONCE, "spent": "2"}))
    assert table.tasks == ("t", "u")
    assert table.arrays().outcome.tolist() == [[1, 0], [1, 0]]
    assert table.arrays().mask.tolist() == [[True, True], [True, False]]


def test_samples_that_were_not_evaluated_are_refused(written):
    path = written({"task_id": "t", "completion": "x"})
    with pytest.raises(InputError, match=r"passed: expected true or .*_results.jsonl"):
        outcomes(path, **ONCE)
    path = written({**SAMPLE, "plus": 0.5})
    assert outcomes(path, score="plus", success_at=0.5, **ONCE)[0] == [1]
    with pytest.raises(InputError, match="passed: expected a finite number, true or "):
        outcomes(written({**SAMPLE, "passed": "yes"}), **ONCE)
    with pytest.raises(InputError, match="tokens: expected a finite number"):
        outcomes(written(SAMPLE), **{**ONCE, "spent": "tokens"})


# Conversations


def test_conversations_say_what_ended_them(written):
    path = written(
        chat(),
        chat(reward=0),
        chat(reward=0, truncated=True),
        chat(reward=..., error="time-out"),
        chat(reward=True, error=None, truncated=False),
    )
    assert outcomes(path)[0] == [1, 0, 2, 4, 1]
    notes = read_runs(path).notes
    assert "1 of 5 runs: the infrastructure ended it ('error')" in notes
    # Of a run that was lost nobody asks whether it was cut short.
    assert "1 of 4 runs: a limit cut it short ('truncated')" in notes


def test_messages_that_are_not_trained_on_are_no_turns(written):
    messages = [ASKED, {**SAID, "weight": 0}, ASKED, CALL, {**SAID, "weight": 1}]
    assert outcomes(written(chat(messages=messages)), unit="turns")[1] == [2]
    old = {"role": "assistant", "function_call": {"name": "f"}}
    assert outcomes(written(chat(messages=[ASKED, old])))[1] == [1]


def test_fields_without_a_usual_name_are_asked_for(written):
    path = written({**chat(task=..., reward=...), "question": 7, "r": {"em": 0.9}})
    with pytest.raises(InputError, match=r"names the task, 'task' or .*--task FIELD"):
        outcomes(path)
    with pytest.raises(InputError, match=r"field 'reward', got .*--score FIELD"):
        outcomes(path, task="question")
    asked = {"task": "question", "score": "r.em", "success_at": 0.9}
    assert outcomes(path, **asked) == ([1], [1])
    with pytest.raises(InputError, match=r"do not say their seconds; .*--spent FIELD"):
        outcomes(path, unit="seconds", **asked)
    both = written(chat(task_id="b"))
    with pytest.raises(InputError, match="expected one field that names the task"):
        outcomes(both)
    assert read_runs(both, options=LogOptions(task="task_id")).tasks == ("b",)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (chat(reward=math.nan), "reward: expected a finite number, .* got nan"),
        (chat(reward=None), "reward: expected a finite number, .* got nothing"),
        (chat(reward="good"), "reward: expected a finite number, .* got 'good'"),
        (chat(messages=["hi"]), "messages: expected a list of objects"),
        (chat(messages=[{"content": "hi"}]), "line 1, role: expected a text"),
        (chat(reward=0, truncated="no"), "truncated: expected true or false"),
        (chat(sample={}), "sample: expected a text or a number, got {}"),
    ],
)
def test_what_a_conversation_lacks_is_refused(written, line, message):
    with pytest.raises(InputError, match=message):
        outcomes(written(line))


def test_a_sample_twice_is_refused_with_both_lines(written):
    with pytest.raises(InputError, match="line 2: task 'a', sample '1' is there alrea"):
        read_runs(written(chat(sample=1), chat(sample=1)))


def test_a_huge_line_is_read(written):
    long = "x" * 20_000_000
    path = written(chat(messages=[{**ASKED, "content": long}, CALL, SAID]), chat())
    assert outcomes(path) == ([1, 1], [1, 1])


# What neither HumanEval's samples nor conversations need have


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        (chat(error=...), "--errors none"),
        (chat(truncated=...), "--truncated none"),
        (chat(error=..., truncated=...), "--errors none --truncated none"),
        (SAMPLE, "--errors none --truncated none"),
    ],
)
def test_ends_that_no_line_tells_are_asked_for(written, line, asked):
    """Also where only one line lacks them, after many that do not."""
    known = {**line, "error": None, "truncated": False}
    spent = {"spent": "1"} if line is SAMPLE else {}
    assert outcomes(written(known), **spent)[0] == [1]
    path = written(known, known, line)
    with pytest.raises(InputError, match=rf"line 3: expected '.*none: {asked}$"):
        outcomes(path, **spent)
    said = {word[2:]: "none" for word in asked.split()[::2]}
    assert outcomes(path, **said, **spent)[0] == [1, 1, 1]


def test_a_field_may_be_named_for_how_a_run_ended(written):
    """Lines without it are counted, and lines that lost a run may lack the rest."""
    path = written(
        {**SAMPLE, "lost": "out of memory", "passed": None},
        {**SAMPLE, "passed": False, "api": {"finish_reason": "length"}},
        {**SAMPLE, "passed": False, "api": {"finish_reason": "stop"}},
        {**SAMPLE, "passed": False, "api": {"finish_reason": None}},
        {**SAMPLE, "api": {"finish_reason": "length"}},
    )
    asked = {"spent": "1", "errors": "lost", "truncated": "api.finish_reason"}
    assert outcomes(path, **asked)[0] == [4, 2, 0, 0, 1]
    notes = read_runs(path, options=LogOptions(**asked)).notes
    assert notes[1:5] == (
        "1 of 5 runs: the infrastructure ended it ('lost')",
        "4 of 5 lines do not have 'lost', named by --errors; they count as if it were "
        "false",
        "2 of 4 runs: a limit cut it short ('api.finish_reason')",
        "1 of 4 lines do not have 'api.finish_reason', named by --truncated; they "
        "count as if it were false",
    )
    with pytest.raises(InputError, match="'nowhere', as --errors says, got no line wi"):
        outcomes(written(SAMPLE), **{**asked, "errors": "nowhere"})


def test_the_word_of_the_user_is_noted_and_held_against_the_lines(written):
    asked = {"errors": "none", "truncated": "none"}
    notes = read_runs(written(chat()), options=LogOptions(**asked)).notes
    assert "for no run it is so that a limit cut it short, as --truncated says" in notes
    for change in ({"error": "time-out"}, {"truncated": True}):
        with pytest.raises(
            InputError, match=r"that this holds for no run; leave the o"
        ):
            outcomes(written(chat(), chat(**change)), **asked)


def test_answers_without_a_word_on_their_length_are_counted(written, results):
    """Formats that say why a run ended need not say how its last answer did."""
    word = "1 run without a word on whether its length ended the last answer, taken as"
    assert f"{word} failure" in read_runs(results(simulation(reward=0.0))).notes
    assert f"{word} failure" in read_runs(written(episode(trace(0.0, calls=[])))).notes
    cut = {"role": "assistant", "raw_data": {"finish_reason": "length"}}
    path = results(simulation(reward=0.0, messages=[SAID, ASKED, cut]))
    assert outcomes(path)[0] == [Outcome.TRUNCATED]
    assert not any("without a word" in note for note in read_runs(path).notes)


# All


@pytest.mark.parametrize(
    ("value", "format"),
    [
        ({"task": 1, "sample": 1, "spent": 1, "outcome": 1, "messages": []}, "table"),
        ({"task": 1, "outcome": 1}, "table"),
        (episode(trace()), "verifiers"),
        (SAMPLE, "humaneval"),
        ({"task_id": "t", "completion": "x"}, "humaneval"),
        (chat(), "chat"),
        ({**chat(), "task_id": 3}, "chat"),
    ],
)
def test_a_line_shows_what_wrote_it(written, value, format):
    assert log_format(written(value)) == format


def test_a_format_may_be_said(written):
    path = written({**SAMPLE, "messages": [SAID], "reward": 0})
    assert outcomes(path, **ONCE)[0] == [1]
    options = LogOptions(unit="turns", errors="none", truncated="none")
    table = read_runs(path, format="chat", options=options)
    assert table.outcome.tolist() == [0]


def test_options_that_say_nothing_are_refused(written, results):
    table = written({"task": 1, "sample": 1, "spent": 1, "outcome": 1})
    with pytest.raises(ConfigError, match=r"--score x: .* is a table, in which it say"):
        outcomes(table, score="x")
    with pytest.raises(ConfigError, match="--score x: tau2's results have one of it"):
        outcomes(results(simulation()), score="x")
    with pytest.raises(ConfigError, match=r"--errors none: .* is a table, in which it"):
        outcomes(table, errors="none")
    for path in (results(simulation()), written(episode(trace()))):
        with pytest.raises(ConfigError, match=r"--truncated x: .* say it themselves"):
            outcomes(path, truncated="x")
    with pytest.raises(ConfigError, match="--success-at: expected a finite number"):
        LogOptions(success_at=math.nan)


def test_a_log_without_any_tool_says_so(written):
    path = written(chat(messages=[ASKED, SAID]))
    assert (
        "no run calls a tool, so that each spent 0 steps" in read_runs(path).notes[-1]
    )
    assert not any("no run calls" in n for n in read_runs(written(chat())).notes)


def test_the_example_of_read_runs_is_true():
    assert doctest.testmod(logs).attempted == 7
    assert doctest.testmod(logs).failed == 0


def test_an_empty_log_is_refused(tmp_path, results):
    empty = results(trials=0)
    with pytest.raises(StorageError, match="expected a row for each run, got none"):
        read_runs(empty)
    path = tmp_path / "e.jsonl"
    path.write_text("")
    with pytest.raises(StorageError, match="expected a row for each run, got none"):
        read_runs(path, format="verifiers")
    path.write_text(json.dumps([1]) + "\n")
    with pytest.raises(StorageError, match="line 1: expected a JSON object, got"):
        read_runs(path, format="chat")
