"""`jerp trajectories`: a look at stored episodes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from jerp.cli.terminal import show

__all__ = ["TrajectoriesCheck", "TrajectoriesShow"]


@dataclass(frozen=True)
class TrajectoriesCheck:
    """Read every shard of a trajectory folder, or of a harness run; name the damaged.

    Attributes:
      folder: with a meta.json, such as RUN/coding/buffer, or any folder above some.
        Runs that train a policy keep no episodes.
    """

    folder: Positional[Path]

    def __call__(self) -> int:
        """Prints a row a shard, or a row a folder of a run; 1 if any is damaged."""
        from jerp.runs.browse import check

        table, whole = check(self.folder)
        show(table)
        return 0 if whole else 1


@dataclass(frozen=True)
class TrajectoriesShow:
    """List the episodes of a trajectory folder, or the steps of one.

    Attributes:
      folder: with a meta.json, such as RUN/coding/buffer.
      episode: show the steps of this one: text, features, probabilities.
    """

    folder: Positional[Path]
    episode: int | None = None

    def __call__(self) -> int:
        """Prints a table, or the steps."""
        from jerp.runs.browse import episode_steps, episode_table
        from jerp.storage.trajectories import TrajectoryFolder

        folder = TrajectoryFolder.open(self.folder)
        if self.episode is None:
            show(episode_table(folder))
        else:
            show(episode_steps(folder, self.episode))
        return 0
