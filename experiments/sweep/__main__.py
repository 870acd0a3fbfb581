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

import tyro

from experiments.catalogue import select
from experiments.sweep.config import Sweep
from experiments.sweep.running import run_sweep
from jerp.errors import JerpError

__all__ = ["main"]


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
        sys.exit(main(tyro.cli(Sweep)))
    except JerpError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
