"""A frozen model plays a world by prompting; scripts stand in for it."""

import jax
import numpy as np
import pytest

from jerp.bridge.executor import (
    Completion,
    Sampling,
)
from jerp.bridge.prompted_episodes import SPENT, play_prompted
from jerp.bridge.prompting import Log, Prompting, Turn, read_answer
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.world_episodes import Replay, play_worlds
from jerp.envs.probes import Probe, probe_params
from jerp.errors import ConfigError, InputError
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome
from tests.bridge.prompted_house import (
    BATCH,
    HOUSE,
    PLAIN,
    REACT,
    SAID,
    SIZES,
    TASKS,
    Oracle,
    listed,
    oracle_actions,
    play,
)


@pytest.fixture(scope="module")
def shown():
    return oracle_actions()


@pytest.mark.parametrize("prompting", [PLAIN, REACT])
def test_an_oracle_in_words_plays_as_an_oracle_does(shown, prompting):
    thought = "" if prompting is PLAIN else "The <mug> is cold."
    executor = ScriptedExecutor(Oracle(shown, thought))
    found = play(executor, prompting)
    assert (found.trajectory.outcome == Outcome.SUCCESS).all()
    blank = {name: None for name in ("log_prob", "legal", "usage")}
    jax.tree.map(
        np.testing.assert_array_equal,
        found.trajectory.replace(**blank),
        shown.replace(**blank),
    )
    check_trajectory(found.trajectory)
    assert not found.unparsed.any()
    length = found.trajectory.mask.sum(axis=1)
    assert executor.calls == length.max() and len(executor.requests) == length.sum()
    np.testing.assert_array_equal(found.trajectory.usage[..., 0].sum(axis=1), length)
    assert found.trajectory.usage[..., 1][found.trajectory.mask].min() > 20
    for row, text in enumerate(found.transcripts):
        assert text.startswith(executor.requests[row].messages[1].content[:20])
        assert text.count("\nAction: ") == length[row]
        expected = length[row] if thought else 0
        assert text.count("\nThought: The &lt;mug&gt; is cold.\n") == expected


def test_what_is_asked():
    executor = ScriptedExecutor(lambda request: "open it")
    play(executor, REACT, num_steps=1, batch_size=2)
    request = executor.requests[1]
    _, user, opened = request.messages
    assert [m.role for m in request.messages] == ["system", "user", "assistant"]
    assert "Thought: <your thought>" in user.content and opened.content == "Thought:"
    actions, told = listed(request)
    assert told.endswith("You stand in the hall. Your hand is empty.\n\n")
    assert "go to the fridge" in actions and "put it down" not in actions
    plain = ScriptedExecutor(lambda request: "open it")
    play(plain, Prompting("plain", Sampling(0.1)), num_steps=1, batch_size=2)
    assert plain.requests[0].messages[2].content == "Action:"
    assert plain.requests[0].sampling == Sampling(0.1)


def test_samples_of_a_task_are_told_apart():
    executor = ScriptedExecutor(lambda request: "")
    play(executor, num_steps=1)
    play(executor, num_steps=1, first_sample=5)
    asked = [r.sample_index for r in executor.requests]
    assert asked == [0, 0, 1, 1, 5, 5, 6, 6]
    with pytest.raises(InputError, match="first_sample"):
        play(executor, first_sample=-1)


def test_an_answer_that_is_no_action_costs_the_step_and_is_counted():
    """The first answer of each episode is none; then two are, and the last is not."""

    def script(request):
        told = listed(request)[1]
        if "was not understood" not in told:
            return " fly to the moon"
        return (
            " go to the desk"
            if "Action: go to the fridge" in told
            else " go to the fridge"
        )

    found = play(ScriptedExecutor(script), num_steps=4)
    actions = found.trajectory.action
    assert (actions[:, 0] == SPENT).all() and (actions[:, 1:3] >= 0).all()
    assert (actions[:, 3] == SPENT).all()
    assert found.unparsed.tolist() == [2] * BATCH
    assert found.trajectory.mask.all() and (found.trajectory.reward == 0).all()
    assert found.trajectory.anchor[0, 0] == found.trajectory.anchor[0, 1]
    assert found.transcripts[0].count("was not understood") == 2
    check_trajectory(found.trajectory)


@pytest.mark.parametrize("step", [0, 2])
def test_a_failed_executor_ends_its_episode_before_that_step(step):
    failures = {step * BATCH + 1: "timeout"}
    executor = ScriptedExecutor(lambda request: " fly", failures=failures)
    found = play(executor, num_steps=4).trajectory
    assert found.mask.sum(axis=1).tolist() == [4, step, 4, 4]
    assert found.outcome.tolist() == [
        Outcome.TRUNCATED,
        Outcome.INFRASTRUCTURE,
        Outcome.TRUNCATED,
        Outcome.TRUNCATED,
    ]
    assert found.truncated[1].sum() == min(step, 1)
    assert len(executor.requests) == 4 * BATCH - (3 - step)


def test_rules_and_notes_stand_before_the_task():
    executor = ScriptedExecutor(lambda request: " fly")
    rules = {"working_set": np.array([[1, 0], [-1, -1]]), "rule_texts": ["A.", "B."]}
    notes = [["C."], [], ["<D>."], []]
    found = play(executor, num_steps=1, notes=notes, **rules)
    begins = [r.messages[1].content for r in executor.requests]
    rules, heading = "Rules:\n- B.\n- A.\n", "Notes from earlier trials:\n"
    assert begins[0].startswith(f"{rules}{heading}- C.\n{SAID[0]}")
    assert begins[1].startswith(SAID[1])
    assert begins[2].startswith(f"{rules}{heading}- &lt;D&gt;.\n")
    assert found.trajectory.working_set.tolist() == [[1, 0], [-1, -1]] * 2
    assert "Rules" not in found.transcripts[0]
    with pytest.raises(ConfigError, match="rule_texts"):
        play(executor, working_set=np.array([[0], [0]]))


def test_only_those_are_played_that_should_be():
    executor = ScriptedExecutor(lambda request: " fly")
    found = play(executor, num_steps=2, played=np.array([True, False, True, False]))
    assert found.trajectory.mask.sum(axis=1).tolist() == [2, 0, 2, 0]
    assert (found.trajectory.outcome == Outcome.TRUNCATED).all()
    assert len(executor.requests) == 4


def test_the_latest_steps_are_shown():
    turns = [Turn("", f"go {i}", f"seen {i}") for i in range(5)]
    log = Log("Do it.", "The hall.", turns=turns)
    said = log.request(Prompting(history=2), ["wait"], 0).messages[1].content
    assert said.startswith(
        "Do it.\n(3 steps before.)\nAction: go 3\nseen 3\nAction: go 4\nseen 4\n"
    )
    assert "The hall." in log.told() and "Action: go 0" in log.told()


@pytest.mark.parametrize(
    ("style", "text", "choice"),
    [
        ("plain", " wait", 1),
        ("plain", " wait\n", 1),
        ("plain", "wait", None),
        ("plain", " Wait", None),
        ("plain", " wait.", None),
        ("plain", " wait\nAction: go", None),
        ("plain", " wait\u2028", None),
        ("plain", " go or wait", None),
        ("plain", "", None),
        ("react", " It is cold.\nAction: go", 0),
        ("react", " It is cold.\n\nAction: go\n", 0),
        ("react", " It is cold. Action: go", None),
        ("react", " It is cold.\nAction: fly", None),
        ("react", " It is cold.\naction: go", None),
        ("react", " It is cold.\nAction: go\nObservation: it is hot", None),
        ("react", "\nAction: go", None),
        ("react", " go", None),
    ],
)
def test_answers_are_read_strictly(style, text, choice):
    found = read_answer(Completion(text), ["go", "wait"], style=style)
    assert found.choice == choice
    assert (found.thought == "It is cold.") == (style == "react" and choice is not None)


def test_only_whole_answers_are_read():
    for status in ("truncated", "refused", "malformed", "empty"):
        found = read_answer(Completion(" go", status), ["go"], style="plain")
        assert found.choice is None
    long = Completion(f" {'x' * 900}\nAction: go")
    assert len(read_answer(long, ["go"], style="react").thought) == 300


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Prompting("loud"), "style"),
        (lambda: Prompting(history=0), "history"),
        (lambda: play(ScriptedExecutor({}), num_steps=0), "num_steps"),
    ],
)
def test_settings_that_mean_nothing(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_world_all_of_whose_actions_can_be_taken_has_none_to_spend_a_step_with():
    class Words:
        def task(self, state, params):
            return "Choose."

        def observation(self, state, params):
            return "It is dark."

        def action(self, action, params):
            return f"say {action}"

    world, executor = Probe(), ScriptedExecutor(lambda request: " fly")
    tasks = probe_params("action")
    with pytest.raises(ConfigError, match="env: expected an action that cannot be"):
        play_prompted(
            *(jax.random.key(0), world, tasks, executor, Words(), PLAIN),
            num_steps=1,
            batch_size=1,
        )


def test_replayed_actions_need_no_model(shown):
    """What prompting played is a trajectory as any other."""
    found = play(ScriptedExecutor(Oracle(shown))).trajectory
    again = play_worlds(
        *(jax.random.key(3), HOUSE, TASKS, Replay(), found.action), **SIZES
    )
    np.testing.assert_array_equal(again.outcome, found.outcome)
