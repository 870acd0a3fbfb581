"""`jerp ope`: what a controller is worth, from logged episodes."""

from __future__ import annotations

from dataclasses import dataclass

from jerp.cli.terminal import progress_if_slow, show
from jerp.runs.ope.settings import OpeSettings

__all__ = ["Ope"]


@dataclass(frozen=True)
class Ope(OpeSettings):
    """Estimate what a controller is worth from logged episodes, before it acts."""

    def __call__(self) -> int:
        """Prints the table, or the reason why there is none."""
        from jerp.runs.ope.report import render
        from jerp.runs.ope.run import evaluate_controller

        with progress_if_slow() as on_stage:
            results = evaluate_controller(self, on_stage=on_stage)
        show(render(results))
        if self.out is not None:
            print(f"results.json and report.md: {self.out}")
        return 0
