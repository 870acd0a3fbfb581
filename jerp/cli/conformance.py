"""`jerp conformance`: do adapters of benchmarks do as the benchmarks do?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from jerp.cli.terminal import show

__all__ = ["ConformanceCheck"]


@dataclass(frozen=True)
class ConformanceCheck:
    """Check adapters of benchmarks by the benchmarks' own reference solutions.

    The official evaluator must give the references full marks; the table says how
    often it does so for references without their last call, with a wrong argument, and
    for doing nothing.

    Attributes:
      names: of benchmarks; all that are installed if none.
      split: this part of each alone.
      limit: most tasks of each part.
      data: folder with the files of the one benchmark that is named.
      out: write what was found here as well, as JSON.
    """

    names: Positional[tuple[str, ...]] = ()
    split: str | None = None
    limit: int | None = None
    data: Path | None = None
    out: Path | None = None

    def __call__(self) -> int:
        """Prints the table; 1 if there is a fault, 2 if nothing could be checked."""
        from rich.console import Console

        from jerp.runs.conformance import check_all, document, render
        from jerp.runs.progress import progress_bars
        from jerp.storage.documents import write_json

        with progress_bars(Console(stderr=True)) as progress:

            def watch(name, total):
                bar = progress.add_task(name, total=total)
                return lambda done: progress.advance(bar, done)

            checks = check_all(
                self.names,
                split=self.split,
                limit=self.limit,
                data=self.data,
                watch=watch,
            )
        show(render(checks))
        if self.out is not None:
            write_json(self.out, document(checks))
            print(f"numbers: {self.out}")
        if not checks.found:
            return 2
        return 1 if any(row.faults for row in checks.found) else 0
