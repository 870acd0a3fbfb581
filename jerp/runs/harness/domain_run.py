"""One domain of a run: what every phase of the loop needs, and how it collects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.progress import Progress

from jerp.bridge.session import Session
from jerp.domains.base import ControlledDomain
from jerp.runs.harness.collection import EpisodePlan, HarnessSizes, collect
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import PolicyFn

__all__ = ["DomainRun"]


@dataclass(frozen=True)
class DomainRun:
    """What one domain's run needs besides its tasks.

    Attributes:
      domain: gives actions their meaning.
      session: steps its episodes with the executor.
      folder: `<out>/<domain>`.
      sizes: how much of everything.
      seeds: training seeds.
      seed: root of all keys.
      progress: where bars are shown.
    """

    domain: ControlledDomain
    session: Session
    folder: Path
    sizes: HarnessSizes
    seeds: int
    seed: int
    progress: Progress

    def episodes(
        self, role: str, policy_fn: PolicyFn, params: Sequence[Any], plan: EpisodePlan
    ) -> TrajectoryFolder:
        """Collects into `<out>/<domain>/<role>` with a progress bar."""
        total = len(params) * len(plan.tasks)
        bar = self.progress.add_task(f"{self.domain.name}: {role}", total=total)
        folder = collect(
            self.folder / role,
            self.domain,
            self.session,
            policy_fn,
            params,
            plan,
            role=f"{self.domain.name}/{role}",
            seed=self.seed,
            chunk=self.sizes.chunk,
            meta={"arm": role},
            on_progress=lambda count: self.progress.advance(bar, count),
        )
        self.log(f"{role}: {total} episodes")
        return folder

    def log(self, text: str) -> None:
        """A line a phase where no bar is drawn, at once: in a redirected log."""
        console = self.progress.console
        if not console.is_terminal:
            console.print(f"{self.domain.name}: {text}")
            console.file.flush()
