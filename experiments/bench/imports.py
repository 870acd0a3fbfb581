"""What importing jerp costs beside importing jax, in fresh processes.

python -m experiments.bench.imports

Each process imports jax and then one part of jerp and times both, so that a busy
machine slows the two alike; rounds go through the parts in turn. Expected: `import
jerp` adds at most 0.3 s to `import jax` (it imports nothing itself: 0.000 s); the other
lines say what the first import from a part of jerp adds, its libraries included.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import tyro
from rich.console import Console
from rich.table import Table

from jerp.errors import ConfigError

__all__ = ["Imports", "measure"]

PARTS = (
    "jerp",
    "jerp.trajectory",
    "jerp.estimators.intervals",
    "jerp.training.awr",
    "jerp.cli",
)

# The clock starts inside the child: the interpreter's own start is no import.
PROGRAM = """
from time import perf_counter
start = perf_counter()
import jax
middle = perf_counter()
import {part}
print(middle - start, perf_counter() - middle)
"""


@dataclass(frozen=True)
class Imports:
    """Measures imports.

    Attributes:
      rounds: processes a line of the table.
    """

    rounds: int = 7

    def __post_init__(self):
        if self.rounds < 1:
            raise ConfigError(f"rounds: expected at least 1, got {self.rounds}")


def measure(
    config: Imports, parts: Sequence[str] = PARTS
) -> dict[str, list[tuple[float, float]]]:
    """Part to (seconds of jax, seconds that the part adds), one pair a round."""
    for part in parts:
        _seconds(part)  # Reads the files once, so that no round finds them cold.
    rounds = [[_seconds(part) for part in parts] for _ in range(config.rounds)]
    return {part: [pairs[i] for pairs in rounds] for i, part in enumerate(parts)}


def _seconds(part: str) -> tuple[float, float]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(part=part)],
        capture_output=True,
        text=True,
        check=True,
    )
    jax, added = done.stdout.split()
    return float(jax), float(added)


def main(config: Imports) -> None:
    """Measures and prints a table of medians."""
    table = Table("import", "jax [s]", "added [s]", "added / jax")
    for part, pairs in measure(config).items():
        jax, added = (median(values) for values in zip(*pairs, strict=True))
        ratio = median(more / base for base, more in pairs)
        table.add_row(part, f"{jax:.3f}", f"{added:.3f}", f"{ratio:.3f}")
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Imports))
