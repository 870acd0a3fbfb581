"""What to know of a buffer before trusting what it taught."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jerp.models.support import NO_SPREAD, BufferSupport
from jerp.runs.train_harness.buffer import Buffer, Source
from jerp.runs.train_harness.settings import TrainSettings
from jerp.training.support import episode_returns
from jerp.trajectory import Trajectory, valid_episodes

__all__ = ["notes", "source_notes"]


def notes(settings: TrainSettings, buffer: Buffer, support: BufferSupport) -> list[str]:
    """One sentence for each way in which the buffer teaches less than it seems to."""
    data, found = buffer.data, source_notes(buffer.sources)
    if data.log_prob is None:
        found.append(
            "no behaviour probabilities (log_prob): what was learned cannot be "
            "evaluated before deployment, and `jerp ope` will refuse; jerp.EpisodeLog "
            "keeps them"
        )
    if support.num_tasks == 1:
        found.append("one task: the baseline is the mean return of that task alone")
    nothing = _nothing_to_learn(settings, data, support)
    if nothing:
        found.append(nothing)
    if math.isinf(settings.temperature):
        found.append("temperature inf: behaviour cloning, as asked")
    return found


def source_notes(sources: Sequence[Source]) -> list[str]:
    """One sentence for each folder and what it lacks: shards, or what was legal."""
    found = []
    for source in sources:
        if source.without_arrays:
            found.append(
                f"{source.folder}: {_shards(source.without_arrays)} without arrays: "
                f"the episodes are not among these {source.episodes}; they are lost, "
                "or still being written. `jerp trajectories check` says more"
            )
        if source.without_text:
            found.append(
                f"{source.folder}: {_shards(source.without_text)} without text, which "
                "is lost; the episodes are among these, and nobody can read them"
            )
        if not source.legal:
            found.append(
                f"{source.folder}: no legal actions (legal): every action was taken "
                "for legal in every step; where some were not, the controller's "
                "probabilities here are not those that it acts with"
            )
    return found


def _shards(names: Sequence[str]) -> str:
    """How many, and the first of them."""
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{len(names)} shard{'s' if len(names) > 1 else ''} ({shown})"


def _nothing_to_learn(
    settings: TrainSettings, data: Trajectory, support: BufferSupport
) -> str:
    """Why the returns tell no good episode from a bad one; empty where they do."""
    valid = np.asarray(valid_episodes(data))
    returns = np.asarray(episode_returns(data, discount=settings.discount))[valid]
    is_step = settings.advantage == "step"
    if np.ptp(returns) <= NO_SPREAD:
        consequence = "weights follow the errors of the value alone"
        consequence = consequence if is_step else "this is behaviour cloning"
        return f"all returns are equal: nothing tells good from bad, and {consequence}"
    if is_step or support.tasks_with_spread > 0:
        return ""
    if support.num_episodes == support.num_tasks:
        return (
            "one episode a task: an episode is its own baseline, every weight is 1, "
            "and this is behaviour cloning; log several episodes of a task"
        )
    return (
        "returns differ between tasks alone: every weight is 1, and this is behaviour "
        "cloning"
    )
