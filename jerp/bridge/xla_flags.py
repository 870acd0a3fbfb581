"""What XLA is told before a process computes."""

from __future__ import annotations

import os

__all__ = ["COMPUTE_LATE", "compute_late"]

COMPUTE_LATE = "--xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"
"""By default XLA computes on a CPU as early as it can, and so keeps what it read or
made of all layers until a later one needs it. Numbers are the same."""


def compute_late() -> None:
    """Adds the flag to this process's environment, unless a user chose otherwise.

    It has to be called before anything is computed: later it changes nothing.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_scheduler_type" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {COMPUTE_LATE}".strip()
