"""`jerp passkt`: the pass surface of logged outcomes."""

from __future__ import annotations

from dataclasses import dataclass

from jerp.cli.terminal import progress_if_slow, show
from jerp.runs.pass_surface.settings import PassktSettings

__all__ = ["Passkt"]


@dataclass(frozen=True)
class Passkt(PassktSettings):
    """Pass@(k, T): how often k runs of at most T solve a task, from logged outcomes."""

    def __call__(self) -> int:
        """Prints the tables, what there is to note, and where the files are."""
        from jerp.runs.pass_surface.report import render
        from jerp.runs.pass_surface.run import run

        with progress_if_slow() as on_stage:
            results, folder = run(self, on_stage=on_stage)
        show(render(results))
        print(f"results.json, report.html, report.md and figures: {folder}")
        return 0
