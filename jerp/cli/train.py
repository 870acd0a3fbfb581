"""`jerp train`: controllers from logged episodes."""

from __future__ import annotations

from dataclasses import dataclass

from jerp.cli.terminal import progress_if_slow, show
from jerp.runs.train_harness.settings import TrainSettings

__all__ = ["TrainHarness"]


@dataclass(frozen=True)
class TrainHarness(TrainSettings):
    """Train a controller on logged episodes and save it as a folder."""

    def __call__(self) -> int:
        """Prints what there was to learn from, what came out, and what is next."""
        from jerp.runs.train_harness.report import render
        from jerp.runs.train_harness.run import train_harness

        with progress_if_slow() as on_stage:
            trained = train_harness(self, on_stage=on_stage)
        show(render(trained))
        return 0
