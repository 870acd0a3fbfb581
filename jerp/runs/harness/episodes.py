"""One row an episode: trajectory folders read back, process maturity measured.

Everything is read from disk, so that the numbers are those of the files a reader can
open. Episodes with equal traces are measured once: arms share the executor's answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jerp.harness.actions import ACTIONS
from jerp.harness.maturity import Maturity, maturity
from jerp.records import ProcessStep, ProcessTrace
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["EpisodeTable", "read_episodes", "task_means"]

CALLS = USAGE_KINDS.index("executor_calls")
TOKENS = slice(USAGE_KINDS.index("tokens_in"), USAGE_KINDS.index("tokens_out") + 1)


@dataclass(frozen=True)
class EpisodeTable:
    """One row an episode; `[E]` NumPy arrays.

    Attributes:
      task_id: index of the task.
      version: training seed of the controller; 0 for a policy without one.
      valid: not INFRASTRUCTURE.
      outcome: see `jerp.typing.Outcome`.
      score: Q, the verifier's score.
      hms: harness maturity, attainable normalisation.
      steps, calls, tokens: what the episode used.
      events: name to (applicable, fired) pairs of bool arrays.
      traces: what maturity was measured on, an episode each.
    """

    task_id: np.ndarray
    version: np.ndarray
    valid: np.ndarray
    outcome: np.ndarray
    score: np.ndarray
    hms: np.ndarray
    steps: np.ndarray
    calls: np.ndarray
    tokens: np.ndarray
    events: Mapping[str, tuple[np.ndarray, np.ndarray]]
    traces: tuple[ProcessTrace, ...]

    def of_version(self, version: int) -> np.ndarray:
        """`[E]` bool: valid episodes of one training seed."""
        return self.valid & (self.version == version)


def read_episodes(folder: TrajectoryFolder, domain: Any) -> EpisodeTable:
    """Reads a trajectory folder and measures each episode's process maturity."""
    trajectory = folder.load()
    mask = np.asarray(trajectory.mask)
    usage = np.where(mask[..., None], np.asarray(trajectory.usage), 0).sum(1)
    scores = np.asarray(trajectory.score)
    traces = tuple(
        _process_trace(steps, domain, float(score))
        for steps, score in zip(folder.transcripts(), scores, strict=True)
    )
    measured: dict[ProcessTrace, Maturity] = {t: maturity(t) for t in set(traces)}
    results = [measured[trace] for trace in traces]
    names = list(results[0].events)
    return EpisodeTable(
        task_id=np.asarray(trajectory.task_id),
        version=np.asarray(trajectory.version),
        valid=np.asarray(trajectory.outcome) != Outcome.INFRASTRUCTURE,
        outcome=np.asarray(trajectory.outcome),
        score=scores,
        hms=np.asarray([r.score for r in results], np.float32),
        steps=mask.sum(1),
        calls=usage[:, CALLS],
        tokens=usage[:, TOKENS].sum(-1),
        events={
            name: (
                np.asarray([r.events[name].applicable for r in results]),
                np.asarray([r.events[name].fired for r in results]),
            )
            for name in names
        },
        traces=traces,
    )


def _process_trace(
    steps: Sequence[Mapping[str, Any]], domain: Any, score: float
) -> ProcessTrace:
    """The trace that `collect` wrote beside the text."""
    records = []
    for step in steps:
        fields = dict(step.get("process", {"action": step["action"], "error": True}))
        if fields.get("missing") is not None:
            fields["missing"] = tuple(fields["missing"])
        records.append(ProcessStep(**fields))
    verdict = steps[-1].get("verdict") if steps else None
    criteria = verdict["criteria"] if verdict else []
    missing = np.mean([c["score"] < 1 for c in criteria]) if criteria else 1.0
    return ProcessTrace(
        steps=tuple(records),
        max_steps=domain.max_steps,
        cost_budget=domain.cost_budget,
        tools=ACTIONS,
        score=score if verdict is not None else None,
        missing_share=float(missing),
        runs_code=domain.runs_code,
        needs_evidence=domain.needs_evidence,
        chose_submit=verdict is not None,
    )


def task_means(
    table: EpisodeTable, column: str, kept: np.ndarray | None = None
) -> np.ndarray:
    """Each task's mean of a column over valid episodes, by rising task id.

    Args:
      table: the episodes.
      column: an attribute of it, numbers.
      kept: `[E]` bool, the episodes to count; None counts every valid one.

    Returns:
      `[N]` float64, NaN for a task without a value.
    """
    _, inverse = np.unique(table.task_id, return_inverse=True)
    value = np.asarray(getattr(table, column), np.float64)
    counts = (table.valid if kept is None else table.valid & kept) & ~np.isnan(value)
    total = np.bincount(inverse, weights=np.where(counts, value, 0.0))
    count = np.bincount(inverse, weights=counts)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
