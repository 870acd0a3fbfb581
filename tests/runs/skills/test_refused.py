"""What a run of skills refuses, and what stops it."""

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
from jerp.runs.skills.settings import SkillSettings
from jerp.runs.skills.work import check_verifier
from jerp.storage.metrics import read_metrics
from jerp.storage.skill_tree import read_tree
from jerp.storage.tensors import load_tree
from jerp.typing import Outcome
from tests.runs.skills.small_skills import (
    LENGTH,
    PARAMS,
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
        ({"task_weight": float("nan")}, "task_weight: expected a number"),
    ],
)
def test_bad_settings(changes, message):
    with pytest.raises(ConfigError, match=message):
        SkillSettings(**changes)
