"""What a run of skills refuses, and what stops it."""

from dataclasses import replace

import jax
import numpy as np
import pytest

from jerp.errors import (
    ConfigError,
    ExecutorError,
    InputError,
    ShapeError,
    TrainingError,
)
from jerp.estimators.sequential_power import pairs_needed
from jerp.runs.skills.acceptance import Acceptance
from jerp.runs.skills.drafting import drafted
from jerp.runs.skills.settings import SkillSettings
from jerp.runs.skills.work import (
    ReadDraft,
    RefinementState,
    SkillRun,
    Trial,
    check_verifier,
    executed,
    read_draft,
)
from jerp.storage.metrics import read_metrics
from jerp.storage.skill_runs import SkillRunFile
from jerp.storage.skill_tree import read_tree
from jerp.storage.tensors import load_tree
from jerp.typing import Outcome
from tests.runs.skills.small_skills import (
    LENGTH,
    PARAMS,
    POLICY,
    SETTINGS,
    STATES,
    TASKS,
    Scripted,
    run,
)

WON, LOST, NOBODY = Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE
ROWS = STATES * SETTINGS.num_drafts


def test_a_loss_that_is_no_number_stops_and_keeps_its_batch(tmp_path):
    """What was executed is kept, what it did not learn from is not in the tree."""
    params = jax.tree.map(lambda x: np.full_like(x, np.nan), PARAMS)
    with pytest.raises(TrainingError, match="iteration 0: the loss is nan"):
        run(tmp_path, params=params)
    batch, about = load_tree(tmp_path / "nan-batch.safetensors")
    assert batch["tokens"].shape == (ROWS, 1, LENGTH) and about["iteration"] == 0
    assert len(read_tree(tmp_path / "tree.jsonl")) == len(TASKS)
    assert read_metrics(tmp_path / "metrics.jsonl") == []


class Unsure(Scripted):
    """Judges the reference of one task now so, now so."""

    def reference(self, task):
        self.asked.append(task)
        times = self.asked.count(task)
        if task == "pears":
            return WON if times % 2 else LOST
        return NOBODY if task == "plums" and times == 1 else WON


def test_a_verifier_that_is_not_deterministic_is_found(tmp_path):
    with pytest.raises(InputError, match=r"two verdicts for pears \(SUCCESS, FAIL"):
        run(tmp_path, workplace=Unsure())
    assert not (tmp_path / "runs.jsonl").exists()
    check_verifier(Unsure(), ["apples", "plums"])
    check_verifier(Scripted(), TASKS)


class Short(Scripted):
    """Executes all trials but one."""

    def execute(self, trials):
        return super().execute(trials)[1:]


class Wide(Scripted):
    """Makes prompts that are too long."""

    def prompts(self, states):
        return np.ones((len(states), 9), np.int32)


def test_a_workplace_that_breaks_its_promise(tmp_path):
    with pytest.raises(ExecutorError, match="execute: expected a run for each of 1"):
        run(tmp_path / "short", workplace=Short(), execute_at_once=1)
    with pytest.raises(ShapeError, match=r"prompts: expected int32 \[3, 5\].*\[3, 9\]"):
        run(tmp_path / "wide", workplace=Wide())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"until": 5}, "until: expected at most 4"),
        ({"tasks": ()}, "tasks: expected at least one"),
        ({"tasks": ("a", "a")}, "tasks: .*none twice"),
        ({"tasks": "abc"}, "tasks: expected a sequence"),
        ({"tasks": (1,)}, "tasks: expected a text, got int, of 1"),
        ({"tasks": (["a"],)}, "tasks: expected a text, got list"),
        ({"tasks": ("",)}, "tasks: expected words.*got ''"),
        ({"tasks": ("a\nb",)}, "tasks: expected one line"),
        ({"tasks": ("a" * 201,)}, "tasks: expected at most 200"),
        (
            {"learning_rate": lambda step: -1.0},
            "learning_rate: expected numbers",
        ),
        ({"execute_at_once": 0}, "execute_at_once: expected at least 1"),
        ({"params": {"decoder": {}}}, "params: expected"),
    ],
)
def test_bad_arguments(tmp_path, changes, message):
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, **changes)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_drafts": 1}, "num_drafts: expected at least 2"),
        ({"num_runs": 1}, "num_runs: expected at least 2"),
        ({"num_runs": 3, "least": 2}, "num_runs: expected at least 4"),
        ({"phases": 0}, "phases: expected at least 1"),
        ({"reasoning_budget": 0.0}, "reasoning_budget: expected > 0"),
        ({"reasoning_budget": "x"}, "reasoning_budget: expected a number, got 'x'"),
        ({"length_weight": None}, "length_weight: expected a number, got None"),
        ({"task_weight": True}, "task_weight: expected a number, got True"),
        ({"task_weight": float("nan")}, "task_weight: expected a number"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(ConfigError, match=message):
        SkillSettings(**changes)


def faulty(method, answer):
    """A workplace of which one method answers something else."""

    class Faulty(Scripted):
        pass

    def answered(self, *given):
        return answer(*given)

    setattr(Faulty, method, answered)
    return Faulty()


ONE = [RefinementState("apples")]


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        ([2, 99, 0, 0, 0], r"tokens in \[0, 7\) for task 'apples', got 99"),
        ([2, -1, 0, 0, 0], "for task 'apples', got -1"),
        ([0, 2, 0, 0, 0], "task 'apples', got one whose first token is the padding"),
    ],
)
def test_a_prompt_that_no_policy_can_read_is_named(tokens, message):
    workplace = faulty("prompts", lambda states: np.array([tokens]))
    with pytest.raises(InputError, match=f"workplace.prompts: .*{message}"):
        drafted(workplace, POLICY, PARAMS, jax.random.key(0), ONE)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda trials: None, "a list of runs for a, b, got NoneType"),
        (lambda trials: (SkillRun(WON) for _ in trials), "a list .*got generator"),
        (lambda trials: [SkillRun(WON), 1], "a SkillRun for task 'b', got 1"),
    ],
)
def test_what_is_no_run_is_named(tmp_path, answer, message):
    trials = [Trial("a", None, 0), Trial("b", None, 0)]
    with SkillRunFile(tmp_path / "runs.jsonl", workplace="w") as runs:
        with pytest.raises(ExecutorError, match=f"workplace.execute: .*{message}"):
            executed(faulty("execute", answer), runs, trials, at_once=2)
        assert len(runs) == 0


def test_what_is_no_draft_is_named():
    mask = np.ones(1, bool)
    with pytest.raises(ExecutorError, match=r"workplace.read: .*task 'a', got None"):
        read_draft(faulty("read", lambda *_: None), "a", mask, mask)
    with pytest.raises(InputError, match="skill: expected a Skill or None, got 'Do"):
        ReadDraft("Do it.")  # pyright: ignore[reportArgumentType]


def test_what_a_workplace_raises_says_where(tmp_path):
    def boom(*_):
        raise RuntimeError("boom")

    mask = np.ones(1, bool)
    with pytest.raises(RuntimeError, match="boom") as caught:
        read_draft(faulty("read", boom), "a", mask, mask)
    assert caught.value.__notes__ == ["in workplace.read for a"]
    with (
        SkillRunFile(tmp_path / "runs.jsonl", workplace="w") as runs,
        pytest.raises(RuntimeError, match="boom") as caught,
    ):
        executed(faulty("execute", boom), runs, [Trial("a", None, 0)], at_once=1)
    assert caught.value.__notes__ == ["in workplace.execute for a"]


@pytest.mark.parametrize("name", ["alpha", "power", "p_gain", "p_loss"])
def test_a_chance_is_a_number(name):
    for value in ("x", None, True):
        with pytest.raises(ConfigError, match=f"{name}: expected a number, got"):
            replace(Acceptance(), **{name: value})
        given: dict = {"p_gain": 0.4, "p_loss": 0.1, "alpha": 0.05, name: value}
        with pytest.raises(InputError, match=f"{name}: expected a number, got"):
            pairs_needed(**given)
