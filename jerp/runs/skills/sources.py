"""From which skill, and which of its runs, a state is put together.

A source is a few numbers, which a checkpoint holds; texts are in the tree, evidence is
in the file of runs. Assembly is looking them up: nothing is summarised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

import jax
import numpy as np

from jerp.runs.skills.settings import EvidenceShown
from jerp.runs.skills.work import Evidence, RefinementState, Trial
from jerp.skills.tree import SkillTree
from jerp.storage.skill_runs import SkillRunFile
from jerp.typing import Key

__all__ = ["Source", "order_of", "source_of", "state_of"]

CHOOSE = 1
"""The stream of a run's key by which states are put in order, see
`jerp.runs.policy.iterations`."""


@dataclass(frozen=True)
class Source:
    """A skill that is to be revised.

    Attributes:
      task: key.
      node: of the skill; None for a cold start.
      success: sample index of its run that succeeded; None for none.
      failure: of one that failed.
    """

    task: str
    node: int | None = None
    success: int | None = None
    failure: int | None = None

    @property
    def row(self) -> list[Any]:
        """As a checkpoint's document has it; `Source(*row)` is the source again."""
        return list(astuple(self))


def source_of(
    task: str, node: int, samples: Sequence[int], success: int, failure: int
) -> Source:
    """Of a node that was executed.

    Args:
      task: key.
      node: id.
      samples: of its runs.
      success: index among them, -1 for none, as `jerp.evidence_pair` has it.
      failure: likewise.
    """
    found = (None if i < 0 else samples[i] for i in (success, failure))
    return Source(task, node, *found)


def state_of(
    source: Source, tree: SkillTree, runs: SkillRunFile, shown: EvidenceShown
) -> RefinementState:
    """The state that a source stands for, with the evidence that is to be shown."""
    if source.node is None:
        return RefinementState(source.task)
    skill = tree.node(source.node).skill

    def evidence(sample: int | None, kind: EvidenceShown) -> Evidence | None:
        if sample is None or shown not in ("paired", kind):
            return None
        trial = Trial(source.task, skill, sample)
        return Evidence(trial.name, runs[trial].evidence)

    return RefinementState(
        task=source.task,
        skill=skill,
        success=evidence(source.success, "success"),
        failure=evidence(source.failure, "failure"),
        parent=source.node,
    )


def order_of(key: Key, phase: int, first: int, number: int, size: int) -> list[int]:
    """Which states of a phase come as number `first` and after, each once a round.

    Args:
      key: of the run; not consumed.
      phase: whose states these are.
      first: how many came before.
      number: how many are wanted.
      size: how many there are.
    """
    stream = jax.random.fold_in(jax.random.fold_in(key, CHOOSE), phase)
    drawn = 1 << max(size - 1, 0).bit_length()  # few shapes, whatever the size
    rounds = range(first // size, (first + number - 1) // size + 1)
    found: list[int] = []
    for turn in rounds:
        bits = jax.random.bits(jax.random.fold_in(stream, turn), (drawn,))
        found += np.argsort(np.asarray(bits)[:size], kind="stable").tolist()
    start = first - rounds.start * size
    return found[start : start + number]
