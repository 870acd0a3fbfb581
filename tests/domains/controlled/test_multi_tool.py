"""The multi-tool domain: masks, what each action does, the rubric line by line."""

import re
from collections import deque
from dataclasses import replace

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.domains.controlled.multi_tool import Hand, MultiToolDomain
from jerp.domains.controlled.multi_tool_rubric import PUBLIC, WEIGHTS
from jerp.domains.controlled.multi_tool_tasks import arithmetic, line
from jerp.domains.explore import explore
from jerp.errors import ConfigError
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.state import NUM_FEATURES
from jerp.records import Task
from tests.domains.cheats import LIMIT, mean_score, thorough

O, R, T, D, C, V, S = Action  # noqa: E741
DOMAIN = MultiToolDomain()
ROW = ("pegs", 12, 300, 20, 60)
TASK = Task(
    "multi-tool/-/0",
    "multi-tool",
    0,
    "What do 3 pieces of pegs weigh in kg, each with its wrapper?",
    {
        "columns": ["item", "pieces", "piece_g", "wrapper_g", "coins"],
        "rows": [["hooks", 20, 450, 10, 70], list(ROW)],
        "units": ["g", "kg"],
        "words": ["crate", "piece", "wrapper"],
        "form": "whole",
        "amounts": [3],
        "items": ["pegs"],
        "examples": [
            {"lines": ["hooks: 0.45 kg"], "question": "2 hooks?", "expression": "a"},
            {"lines": ["bolts: 0.2 kg"], "question": "4 bolts?", "expression": "b"},
        ],
        "hidden": {"expression": "3 * (0.3 + 0.02)", "answer": "0.96"},
    },
)
RIGHT = "0.3 kg + 0.02 kg)"
RAW = "300 g + 20 g)"


@pytest.fixture(scope="module")
def tasks():
    return DOMAIN.generate(3, 60)


def step(w, action, text=RIGHT):
    """The workspace after a legal action, by a scripted executor."""
    assert DOMAIN.legal(w)[action], f"{Action(action).name} is not legal"
    completion = Completion(text) if DOMAIN.request(w, action) is not None else None
    return DOMAIN.advance(w, action, completion)


def play(task, actions, text=RIGHT):
    w = DOMAIN.begin(task, 0)
    for action in actions:
        w = step(w, action, text)
    return w


def rest(task):
    """What completes the harness's beginning to the gold expression."""
    return re.sub(r"^[(\d ]+\* \(?", "", task.payload["hidden"]["expression"])


def verdict(draft, *, converted=True, calculated=True, rows=(ROW,)):
    lines = tuple(line(TASK.payload, row, converted=converted) for row in rows)
    hand = Hand(rows=rows, converted=converted, asked=(lines, False, ""))
    w = replace(DOMAIN.begin(TASK, 0), extra=hand, tested=calculated)
    return {c.name: c.score for c in DOMAIN.verify(TASK, draft, w).criteria}


def test_a_task_is_a_function_of_the_seed_alone():
    task = DOMAIN.generate(0, 3)[2]
    assert task.prompt == (
        "How many l are 3 bottles of malt vinegar and 5 bottles of plum syrup together?"
    )
    assert task.payload["rows"][3] == ["malt vinegar", 29, 800, 20, 95]
    assert task.payload["hidden"] == {
        "expression": "(3 * 0.8 + 5 * 0.18)",
        "answer": "3.3",
    }


def test_difficulties_in_turn_and_fewer_tasks_are_a_prefix(tasks):
    assert [t.difficulty for t in tasks[:6]] == [0, 1, 2, 0, 1, 2]
    assert DOMAIN.generate(3, 7) == tasks[:7] and DOMAIN.generate(4, 7) != tasks[:7]
    assert len({(t.prompt, str(t.payload["rows"])) for t in tasks}) == len(tasks)


def test_no_task_is_refused():
    with pytest.raises(ConfigError, match="num_tasks: expected >= 1, got 0"):
        DOMAIN.generate(0, 0)


def test_the_tools_in_order_and_the_right_arithmetic_score_one(tasks):
    for task in tasks:
        w = play(task, (O, R, T, T, D, T, C, S), rest(task))
        assert w.verdict.score == 1.0 and w.verdict.success, (task.key, w.draft)
        assert not w.feedback.failed


def test_some_legal_action_remains_on_every_path_and_paths_end(tasks):
    for task in tasks[:3]:
        seen, queue = set(), deque([DOMAIN.begin(task, 0)])
        while queue:
            w = queue.popleft()
            legal = DOMAIN.legal(w)
            assert legal.any() != (w.terminated or w.truncated)
            for action in np.flatnonzero(legal):
                after = step(w, action)
                state = (DOMAIN.anchor(after), after.step, after.terminated)
                if state not in seen:
                    seen.add(state)
                    queue.append(after)


def test_only_observe_at_first_and_no_draft_before_the_table():
    assert np.flatnonzero(DOMAIN.legal(DOMAIN.begin(TASK, 0))).tolist() == [O]
    assert not DOMAIN.legal(play(TASK, (O, R)))[D]
    assert not DOMAIN.legal(play(TASK, (O, R)))[R]
    assert DOMAIN.legal(play(TASK, (O, T)))[D]


def test_the_table_then_the_converter_then_nothing_more_before_a_draft():
    found = play(TASK, (O, T))
    assert found.passages == (
        "pegs: 12 pieces in a crate, 300 g a piece, 20 g a wrapper, 60 coins a piece",
    )
    assert found.trace[-1].arguments.startswith("SELECT item, pieces, piece_g")
    converted = step(found, T)
    assert "0.3 kg a piece, 0.02 kg a wrapper" in converted.passages[0]
    assert converted.trace[-1].arguments == "g to kg" and converted.trace[-1].tool_valid
    assert not DOMAIN.legal(converted)[T]


def test_after_a_draft_the_calculator_first_then_the_tool_that_is_left():
    drafted = play(TASK, (O, T, D), RAW)
    value = step(drafted, T)
    assert value.transcript[-1]["observation"] == "960" and not value.extra.converted
    assert value.support == 1.0 and value.trace[-1].verify_failed is False
    assert step(value, T).extra.converted


def test_a_value_without_a_finite_decimal_is_shown_as_a_fraction():
    w = play(TASK, (O, T, T, D, T), "1 / 7)")
    assert w.transcript[-1]["observation"] == "3/7" and w.errors == 0


def test_a_calculator_error_is_an_observation_and_asks_for_a_revision():
    w = play(TASK, (O, T, T, D, T), "0.3 kg +")
    assert w.errors == 1 and w.trace[-1].verify_failed
    assert w.trace[-1].tool_valid is False
    assert w.transcript[-1]["observation"] == "expected a number at the end"
    assert DOMAIN.legal(w)[V]


def test_the_worksheet_and_a_failed_check_put_worked_questions_first():
    bare = DOMAIN.request(play(TASK, (O, T, T)), D).messages
    assert [m.role for m in bare] == ["system", "user", "assistant"]
    assert bare[-1].content == "Answer = 3 pieces * ("
    noted = DOMAIN.request(play(TASK, (O, R, T, T)), D).messages
    assert noted[1].content == "hooks: 0.45 kg\n2 hooks?"
    assert noted[2].content == "Answer = a" and noted[3:] == bare[1:]
    failed = play(TASK, (O, R, T, T, D, C), "0.3 kg)")
    revision = DOMAIN.request(failed, V).messages
    assert revision[:3] == noted[:3] and revision[4].content == "Answer = b"


def test_a_revision_asks_the_same_whatever_failed_and_never_twice():
    answers = ("0.3 kg)", "", "12", "0.3 kg + 60)", "many")
    drafts = [play(TASK, (O, T, T, D, C), answer) for answer in answers]
    assert all(w.feedback.failed for w in drafts)
    assert len({DOMAIN.request(w, V) for w in drafts}) == 1
    again = step(step(drafts[0], V, "0.3 kg)"), C)
    assert again.feedback.failed and not DOMAIN.legal(again)[V]
    assert DOMAIN.legal(step(again, R))[V]


def test_a_draft_in_the_tables_unit_is_mended_by_converter_and_revision():
    w = play(TASK, (O, T, D, C), RAW)
    assert w.trace[-1].missing == ("unit",) and w.coverage == pytest.approx(2 / 3)
    w = step(step(step(w, T), T), V)
    w = step(step(step(w, T), C), S)
    assert w.verdict.score == 1.0 and w.trace[-4].revises and w.trace[-2].missing == ()


@pytest.mark.parametrize("status", ["empty", "refused", "malformed", "truncated"])
def test_a_failing_completion_is_an_error_and_the_episode_goes_on(status):
    w = play(TASK, (O, T, T))
    after = DOMAIN.advance(w, D, Completion("", status=status))
    assert after.errors == 1 and after.trace[-1].error
    assert DOMAIN.legal(after)[[T, C, S]].all()
    assert step(after, S).verdict.score == 0


@pytest.mark.parametrize(
    ("text", "draft"),
    [
        ("3 pieces * (0.3 kg + 0.02 kg)", "3 * (0.3 + 0.02)"),
        ("3 pieces * (0.3 kg + 0.02 kg) and more", "3 * (0.3 + 0.02)"),
        ("3 crates * 12 piece * 300 g.", "3 * 12 * 300"),
        ("3 pieces * (0.3kg", "3 * (0.3"),
        ("three", ""),
    ],
)
def test_arithmetic_leaves_out_the_words_for_what_is_counted(text, draft):
    assert arithmetic(TASK.payload, text) == draft


def test_weights_sum_to_one_and_correctness_is_at_least_half():
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    assert WEIGHTS["correct"] >= 0.5 and set(PUBLIC) < set(WEIGHTS)


@pytest.mark.parametrize(
    ("draft", "ones"),
    [
        ("3 * (0.3 + 0.02)", {"correct", "tools", "unit", "operands", "form"}),
        ("(0.02 + 0.3) * 3", {"correct", "tools", "unit", "operands", "form"}),
        ("3 * 0.32", {"correct", "tools", "form"}),
        ("3 * (0.3 - 0.02)", {"unit", "operands", "form"}),
        ("3 * (300 + 20)", {"operands", "form"}),
        ("3 * (0.3 + 60)", {"form"}),
        ("3 - 4", set()),
        ("3 * (0.3 +", set()),
        ("", set()),
        (None, set()),
    ],
)
def test_rubric_line_by_line(draft, ones):
    assert {name for name, score in verdict(draft).items() if score} == ones


def test_tools_pay_only_when_all_were_used_and_the_value_is_right():
    right = "3 * (0.3 + 0.02)"
    assert verdict(right, calculated=False)["tools"] == 0
    unconverted = verdict(right, converted=False)
    assert unconverted["tools"] == unconverted["unit"] == 0
    nothing = verdict(right, rows=(), converted=False)
    assert nothing["operands"] == 0 and nothing["form"] == 1


def test_a_converter_that_ran_after_the_draft_is_out_of_order():
    late = play(TASK, (O, T, D, T, T, S))
    assert late.verdict.success and late.verdict.score == pytest.approx(0.85)
    assert play(TASK, (O, T, T, D, T, S)).verdict.score == 1.0


def test_a_check_reports_what_the_verifier_will_find(tasks):
    for task in tasks[:9]:
        for text in (rest(task), "12)", "red"):
            w = play(task, (O, T, T, D, C), text)
            judged = {c.name: c.score for c in step(w, S).verdict.criteria if c.public}
            missing = tuple(name for name in PUBLIC if not judged[name])
            assert w.trace[-1].missing == missing
            assert w.feedback.failed == bool(missing)


def number_in_hand(workspace, request, rng):
    numbers = re.findall(r"\d+(?:\.\d+)?", " ".join(workspace.passages))
    return f" {rng.choice(numbers)})"


def two_numbers_in_hand(workspace, request, rng):
    numbers = re.findall(r"\d+(?:\.\d+)?", " ".join(workspace.passages))
    a, b = rng.sample(numbers, 2)
    return f" {a} {rng.choice('+-*/')} {b})"


def all_numbers_in_hand(workspace, request, rng):
    numbers = re.findall(r"\d+(?:\.\d+)?", " ".join(workspace.passages))
    return f" {' * '.join(numbers)})"


def example(workspace, request, rng):
    return workspace.task.payload["examples"][0]["expression"].split("*", 1)[1]


@pytest.mark.parametrize(
    "answer", [number_in_hand, two_numbers_in_hand, all_numbers_in_hand, example]
)
def test_numbers_in_hand_without_thought_earn_next_to_nothing(answer):
    assert mean_score(DOMAIN, DOMAIN.generate(0, 300), answer, thorough) < LIMIT


class Wrong:
    """An executor whose every answer fails the check: everything comes into reach."""

    fingerprint = "wrong"

    async def complete(self, requests):
        return [Completion(" nobody knows") for _ in requests]


def test_requests_within_reach_are_at_most_eight_a_sample(tasks):
    reach = explore(DOMAIN, tasks[:6], (0,), Wrong())
    assert {t.requests for t in reach.tasks} == {8}


def test_features_are_in_range_and_follow_the_workspace():
    w = play(TASK, (O, R, T, T, D, T, C), "0.3 kg + 60)")
    x = DOMAIN.features(w)
    assert x.shape == (NUM_FEATURES,) and np.abs(x).max() <= 1
    assert DOMAIN.legal(w).shape == (NUM_ACTIONS,)
    assert not np.array_equal(x, DOMAIN.features(step(w, V)))
    assert w.trace[-1].claims == 1 and w.trace[-1].evidence == 0
    assert w.support == pytest.approx(2 / 3)
    assert step(w, V).trace[-1].evidence == 1
