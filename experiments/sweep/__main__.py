"""Runs the settings of an experiment in many processes, or as jobs of a Slurm cluster.

python -m experiments.sweep gigpo_vs_grpo --shards 3
python -m experiments.sweep harness_control --shards 2 --smoke
python -m experiments.sweep gigpo_vs_grpo --launcher slurm --gpus 1 --partition gpu

The same command goes on where it was stopped, with what is not finished. Ends with 0 if
all settings are finished, 1 if some failed, 2 for an error and 130 after Ctrl-C.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from experiments.catalogue import select
from experiments.sweep.config import Sweep
from experiments.sweep.running import run_sweep
from jerp.errors import JerpError

__all__ = ["main", "parsed"]


@dataclass(frozen=True)
class _Words(Sweep):
    """A sweep as it was typed, which nothing has checked."""

    def __post_init__(self):
        pass


def parsed(words: Sequence[str] | None = None) -> Sweep:
    """The sweep that `words` ask for, those of the command line if None.

    tyro reports what a config refuses as a mistake of parsing, under a name of its own.
    Constructed after it, the refusal is printed as every other error is.
    """
    typed = tyro.cli(
        _Words,
        prog="python -m experiments.sweep",
        description=(Sweep.__doc__ or "").partition("\n")[0],
        args=words,
    )
    return Sweep(**vars(typed))


def main(sweep: Sweep) -> int:
    """Runs a sweep; returns the status to exit with."""
    try:
        document = run_sweep(sweep, select(sweep.name))
    except KeyboardInterrupt:
        said = {
            "local": "its processes were stopped",
            "slurm": "its jobs go on; scancel stops them",
        }
        print(
            f"\nstopped: {said[sweep.launcher]}. What is finished stays; the same "
            "command goes on",
            file=sys.stderr,
        )
        return 130
    statuses = {entry["status"] for entry in document["settings"].values()}
    return 0 if statuses == {"finished"} else 1


if __name__ == "__main__":
    # What ends the sweep ends what it started, also where it began in the background,
    # in which shells have it, and all that it starts, ignore an interrupt.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        sys.exit(main(parsed()))
    except JerpError as error:
        print(f"jerp: {error}", file=sys.stderr)
        sys.exit(2)
