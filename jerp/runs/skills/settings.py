"""The numbers of a training run of skills, checked before it begins."""

from __future__ import annotations

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jerp.errors import ConfigError, InputError
from jerp.ops.checks import check_choice, check_whole
from jerp.skills.node import check_line

__all__ = ["EVIDENCE", "EvidenceShown", "SkillSettings", "check_number", "tasks_of"]

EvidenceShown = Literal["paired", "failure", "success", "none"]
"""Which runs of a skill a revision is written from."""

EVIDENCE: tuple[EvidenceShown, ...] = ("paired", "failure", "success", "none")


@dataclass(frozen=True)
class SkillSettings:
    """How much of what a run does.

    Attributes:
      phases: P; in each, skills that were kept in the one before are revised.
      batches: of a phase, each an update.
      num_drafts: K, drafts a state, at least 2.
      num_runs: n, runs of each skill, at least 2 for one to be kept.
      evidence: what is shown of a success and a failure: both, one, or neither.
      least: runs of each kind that a skill needs to be kept, see `jerp.retained`.
      reasoning_budget: tokens of reasoning that cost nothing.
      task_weight: of the reward, see `jerp.skill_reward`.
      length_weight: likewise.

    Raises:
      ConfigError: a number out of range.

    Reference: Peng et al., "WER", arXiv:2608.17587, section 4: K = 4, n = 2, P = 3.
    """

    phases: int = 3
    batches: int = 20
    num_drafts: int = 4
    num_runs: int = 2
    evidence: EvidenceShown = "paired"
    least: int = 1
    reasoning_budget: float = 256.0
    task_weight: float = 1.0
    length_weight: float = 1.0

    def __post_init__(self) -> None:
        for name in ("phases", "batches", "least"):
            check_whole(name, getattr(self, name), least=1)
        check_whole("num_drafts", self.num_drafts, least=2)
        check_whole("num_runs", self.num_runs, least=2 * self.least)
        check_choice("evidence", self.evidence, EVIDENCE)
        for name in ("reasoning_budget", "task_weight", "length_weight"):
            value = check_number(name, getattr(self, name))
            if not 0 <= value < math.inf:
                raise ConfigError(f"{name}: expected a number from 0 on, got {value}")
        if not self.reasoning_budget:
            raise ConfigError("reasoning_budget: expected > 0, got 0")

    @property
    def total(self) -> int:
        """Batches of all phases."""
        return self.phases * self.batches


def check_number(name: str, value: Any) -> Any:
    """The value of a setting; raises `ConfigError` if it is no number, as a bool is."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ConfigError(f"{name}: expected a number, got {value!r:.80}")
    return value


def tasks_of(given: Any) -> tuple[str, ...]:
    """Keys of tasks; raises `ConfigError` unless there are some, each once.

    A key is a line as `SkillNode.task` has it.
    """
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(f"tasks: expected a sequence of keys, got {given!r:.80}")
    for task in given:
        try:
            check_line("tasks", task)
        except InputError as error:
            raise ConfigError(f"{error}, of {task!r:.80}") from error
    if not given or len(set(given)) < len(given):
        raise ConfigError(
            f"tasks: expected at least one, and none twice, got {len(given)} of which "
            f"{len(set(given))} differ"
        )
    return tuple(given)
