"""Settings of a sweep: one object for the command line and the session."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from experiments.sweep.launchers import Kind, Resources
from jerp.errors import ConfigError

__all__ = ["Sweep"]


@dataclass(frozen=True)
class Sweep:
    """Runs the settings of an experiment side by side, and merges their results.

    Attributes:
      name: an experiment for all of its settings, or the id of one; hyphens stand for
        underscores.
      launcher: `local` for processes of this machine, `slurm` for jobs of a cluster.
      shards: how many run side by side, each one setting after another; of more than
        there are settings to run, the rest is not used.
      retries: how often a setting is tried again whose run failed or was killed.
      smoke: a minute or so a setting instead of many; numbers mean nothing.
      out: folder of the sweep; None gives `jerp-runs/sweep-<name>`. The same command in
        the same folder goes on. A cluster's nodes must see it.
      resources: of a shard.
    """

    name: tyro.conf.Positional[str]
    launcher: Kind = "local"
    shards: int = 2
    retries: int = 2
    smoke: bool = False
    out: Path | None = None
    resources: Annotated[Resources, tyro.conf.arg(name="")] = field(
        default_factory=Resources
    )

    def __post_init__(self):
        if self.shards < 1:
            raise ConfigError(f"shards: expected at least 1, got {self.shards}")
        if self.retries < 0:
            raise ConfigError(f"retries: expected at least 0, got {self.retries}")

    @property
    def folder(self) -> Path:
        """The folder of the sweep, absolute: jobs may start elsewhere."""
        scale = "-smoke" if self.smoke else ""
        name = self._underscored.replace("/", "-")
        given = self.out or Path("jerp-runs") / f"sweep-{name}{scale}"
        return given.resolve()

    @property
    def identity(self) -> dict[str, Any]:
        """What must agree for a sweep to go on in a folder."""
        return {"sweep": self._underscored, "smoke": self.smoke}

    @property
    def _underscored(self) -> str:
        """The name as ids have it: either spelling is the same sweep."""
        return self.name.replace("-", "_")
