"""What a seed begins with: an executor that is never trained, and an optimizer."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np

from experiments.wer.config import DOMAINS, Sizes
from experiments.wer.executor import clone_executor, execute
from experiments.wer.optimizer import clone_optimizer, optimizer_policy
from experiments.wer.optimizer_words import OptimizerWords
from experiments.wer.places import Place
from experiments.wer.skill_lines import working_sets
from experiments.wer.workplace import ToolsWorkplace
from jerp.runs.skills.drafting import drafted
from jerp.runs.skills.work import RefinementState
from jerp.typing import Key, Outcome

__all__ = ["TOLD", "Standing", "cloned_base", "measured_base", "words_of_place"]

TOLD = ("none", "right", "wrong")
"""What the executor is told when it is asked whether it follows a skill."""

RUNS = 2
"""Of a draft whose outcomes are counted, and of a task that the executor is asked."""


class Standing(NamedTuple):
    """Where clones stand.

    Attributes:
      domain: `[N]` int32, of the executor's tasks.
      none, right, wrong: `[N, 2]` bool, success without a skill, with the right one,
        and with a plausible wrong one.
      draft_domain: `[M]` int32, of the optimizer's drafts.
      parsed: `[M]` bool, there is a skill in the draft.
      success: `[M, 2]` bool, of its runs.
    """

    domain: np.ndarray
    none: np.ndarray
    right: np.ndarray
    wrong: np.ndarray
    draft_domain: np.ndarray
    parsed: np.ndarray
    success: np.ndarray


def words_of_place() -> OptimizerWords:
    """The words of the domains of this experiment."""
    return OptimizerWords(Place(DOMAINS))


def cloned_base(key: Key, sizes: Sizes) -> tuple[Any, dict[str, float]]:
    """Clones both; `key` is consumed.

    Args:
      key: of all that is drawn.
      sizes: what they are cloned from.

    Returns:
      Parameters of `executor` and `optimizer`, and by name what cloning came to.
    """
    keys, words = jax.random.split(key), words_of_place()
    executor, told = clone_executor(keys[0], words.place, sizes.executor)
    executor = jax.device_get(executor)
    optimizer, said = clone_optimizer(keys[1], words, executor, sizes.optimizer)
    notes = {f"executor_{name}": value for name, value in told.items()}
    notes |= {f"optimizer_{name}": value for name, value in said.items()}
    return {"executor": executor, "optimizer": jax.device_get(optimizer)}, notes


def measured_base(key: Key, params: Any, sizes: Sizes) -> Standing:
    """Asks whether a skill matters to the executor, and what the drafts are worth.

    Args:
      key: consumed.
      params: of `cloned_base`.
      sizes: numbers of tasks.
    """
    words, keys = words_of_place(), jax.random.split(key, 4)
    place = words.place
    tasks = place.tasks(keys[0], sizes.validation, "train")
    domain = place.domain_of(tasks)
    lines = {
        "none": [() for _ in DOMAINS],
        "right": [place.right_lines(name) for name in DOMAINS],
        "wrong": [place.wrong_lines(name) for name in DOMAINS],
    }
    answered = {
        told: execute(
            *(keys[1], place, params["executor"], tasks),
            working_sets(lines[told][d] for d in domain),
            num_runs=RUNS,
        ).success
        for told in TOLD
    }
    drafts = place.tasks(keys[2], sizes.base_drafts, "train")
    parsed, success = _drafts(keys[3], words, params, drafts)
    return Standing(
        domain=domain,
        **answered,
        draft_domain=place.domain_of(drafts),
        parsed=parsed,
        success=success,
    )


def _drafts(
    key: Key, words: OptimizerWords, params: Any, tasks: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Which seed drafts have a skill, `[M]`, and success of their runs, `[M, 2]`."""
    luck, write = jax.random.split(key)
    workplace = ToolsWorkplace(luck, words, params["executor"], tasks)
    drafts = drafted(
        *(workplace, optimizer_policy(words), params["optimizer"], write),
        [RefinementState(task) for task in workplace.tasks],
        block=64,
    )
    parsed = np.array([read.skill is not None for read in drafts.read])
    success = np.zeros((len(parsed), RUNS), bool)
    trials = drafts.trials(range(RUNS))
    found = iter(workplace.execute([t for row in trials.values() for t in row]))
    for row, asked in trials.items():
        success[row] = [next(found).outcome == Outcome.SUCCESS for _ in asked]
    return parsed, success
