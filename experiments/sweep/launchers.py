"""Where shards run: processes of this machine, or jobs of a Slurm cluster.

Both go through submitit, the extra `sweep`. Each submission has a folder of its own,
`<out>/jobs/<number>`, with what was submitted and its log.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Literal

from experiments.sweep.shard import Shard
from jerp.errors import ConfigError, MissingExtraError
from jerp.storage.atomic import make_folder

__all__ = ["Kind", "Launcher", "Resources", "open_launcher"]

Kind = Literal["local", "slurm"]
SLURM_PROGRAMS = ("sbatch", "srun", "sacct")
YEAR = 365 * 24 * 60
"""Minutes; submitit's own limit of local jobs is 2."""


@dataclass(frozen=True)
class Resources:
    """What one shard is given; None leaves it to the cluster.

    Attributes:
      gpus: of a shard. Here, shard i gets devices `i * gpus` and following, and without
        any computes on the processor; on Slurm they are asked for.
      partition: of the cluster; it and all that follow are for Slurm alone.
      hours: after which Slurm stops a shard, which is then queued again.
      memory_gb: of a shard.
      cpus: of a shard.
      slurm: other options of sbatch as `key=value`, such as `account=lab`.
    """

    gpus: int = 0
    partition: str | None = None
    hours: float | None = None
    memory_gb: int | None = None
    cpus: int | None = None
    slurm: tuple[str, ...] = ()

    def __post_init__(self):
        if self.gpus < 0:
            raise ConfigError(f"gpus: expected at least 0, got {self.gpus}")
        for name in ("hours", "memory_gb", "cpus"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ConfigError(f"{name}: expected more than 0, got {value}")
        for word in self.slurm:
            key, equals, _ = word.partition("=")
            if not (key and equals):
                raise ConfigError(
                    f"slurm: expected key=value such as account=lab, got {word!r}"
                )


@dataclass(frozen=True)
class Launcher:
    """Submits shards.

    Attributes:
      kind: of jobs.
      folder: in which each submission gets one of its own.
      resources: of a shard.
    """

    kind: Kind
    folder: Path
    resources: Resources

    def submit(self, shard: Shard, place: int) -> Any:
        """A `submitit.Job` that runs `shard`, the `place`-th of those side by side.

        Raises:
          ConfigError: Slurm refuses it; the message has its last line.
        """
        import submitit
        from submitit.core.utils import FailedJobError

        folder = self._new_folder()
        local = self.kind == "local"
        make = submitit.LocalExecutor if local else submitit.SlurmExecutor
        executor = make(folder)
        executor.update_parameters(
            **(self._local(place) if local else self._slurm(shard)),
            stderr_to_stdout=True,
        )
        try:
            if not local:
                return executor.submit(shard)
            # submitit's process beside a job ends in a traceback when it is stopped.
            with _errors_in(folder / "submitit.log"):
                return executor.submit(shard)
        except FailedJobError as error:
            last = str(error).strip().splitlines()[-1:] or ["no message"]
            raise ConfigError(
                f"sbatch refuses a shard: {last[0]}; check the options for Slurm"
            ) from error

    def attach(self, folder: str, job_id: str) -> Any:
        """The Slurm job that an earlier session submitted."""
        import submitit

        return submitit.SlurmJob(folder, job_id)

    def _new_folder(self) -> Path:
        taken = (self.folder / str(number) for number in count())
        folder = next(path for path in taken if not path.exists())
        make_folder(folder)
        return folder

    def _local(self, place: int) -> dict[str, Any]:
        each = self.resources.gpus
        devices = tuple(range(place * each, (place + 1) * each))
        # submitit warns a job half a minute before its end, which here never comes.
        return {
            "timeout_min": YEAR,
            "gpus_per_node": each,
            "visible_gpus": devices,
        }

    def _slurm(self, shard: Shard) -> dict[str, Any]:
        given = self.resources
        name = shard.settings[0].id.partition("/")[0]
        options = {
            "job_name": f"sweep-{name}",
            "time": math.ceil(60 * (given.hours or 24.0)),
            "partition": given.partition,
            "mem": f"{given.memory_gb}GB" if given.memory_gb else None,
            "cpus_per_task": given.cpus,
            "gpus_per_node": given.gpus or None,
            "additional_parameters": dict(w.split("=", 1) for w in given.slurm) or None,
        }
        # Some clusters refuse keys of accounts that they do not know.
        options["wckey"] = None
        return options


@contextmanager
def _errors_in(path: Path) -> Iterator[None]:
    """What processes begun meanwhile say as errors goes to a file."""
    before = os.dup(2)
    try:
        with open(path, "a") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)


def open_launcher(kind: Kind, folder: Path, resources: Resources) -> Launcher:
    """The launcher, once it is sure that it can submit.

    Raises:
      MissingExtraError: submitit is not installed.
      ConfigError: Slurm is not here, or options are for Slurm and the launcher is not.
    """
    try:
        import submitit  # noqa: F401
    except ImportError:
        raise MissingExtraError("submitit", "sweep") from None
    if kind == "slurm":
        missing = [name for name in SLURM_PROGRAMS if shutil.which(name) is None]
        if missing:
            raise ConfigError(
                f"launcher: slurm needs {', '.join(SLURM_PROGRAMS)}, and there is no "
                f"{missing[0]!r} here; start the sweep on a node of the cluster, or "
                "use --launcher local"
            )
    else:
        _refuse_slurm_options(resources)
    return Launcher(kind, folder.resolve(), resources)


def _refuse_slurm_options(resources: Resources) -> None:
    unset = Resources()
    for name in ("partition", "hours", "memory_gb", "cpus", "slurm"):
        if getattr(resources, name) != getattr(unset, name):
            raise ConfigError(
                f"{name.replace('_', '-')}: an option for Slurm; leave it out, or use "
                "--launcher slurm"
            )
