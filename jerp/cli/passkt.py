"""`jerp passkt`: pass surfaces of logged outcomes; `jerp passkt plan`: before them."""

from __future__ import annotations

from dataclasses import dataclass

from jerp.cli.terminal import progress_if_slow, show
from jerp.runs.pass_surface.plan_settings import PlanSettings
from jerp.runs.pass_surface.settings import PassktSettings

__all__ = ["Passkt", "PassktPlan"]


@dataclass(frozen=True)
class Passkt(PassktSettings):
    """Pass@(k, T): how often k runs of at most T solve a task, from logged outcomes.

    `jerp passkt plan` says beforehand how many questions and samples show an expansion;
    a file of that name is given as ./plan.
    """

    def __call__(self) -> int:
        """Prints the tables, what there is to note, and where the files are."""
        from jerp.runs.pass_surface.report import render
        from jerp.runs.pass_surface.run import run

        with progress_if_slow() as on_stage:
            results, folder = run(self, on_stage=on_stage)
        show(render(results))
        print(f"results.json, report.html, report.md and figures: {folder}")
        return 0


@dataclass(frozen=True)
class PassktPlan(PlanSettings):
    """Questions and samples that an expansion of a given size needs to be seen."""

    def __call__(self) -> int:
        """Prints the plan, and where its numbers are."""
        from jerp.runs.pass_surface.plan import plan, render_plan

        with progress_if_slow() as on_stage:
            on_stage("computing the power")
            document = plan(self)
        show(render_plan(document))
        if self.json is not None:
            print(f"numbers: {self.json}")
        return 0
