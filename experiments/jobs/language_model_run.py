"""Runs an experiment's language model in a process of its own, and reports.

The run folder then holds manifest.json, results.json, report.md, report.html, figures/
and a folder a part, which the module `experiments.<experiment>.language_model` fills.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from experiments.executors.usage_file import read_usage
from experiments.jobs.job import is_done
from experiments.jobs.processes import run_together
from experiments.jobs.results import analysis_key, origin, sizes_document
from jerp.bridge.xla_flags import COMPUTE_LATE
from jerp.runs.page import write_page
from jerp.runs.progress import progress_bars
from jerp.storage.documents import defined, write_json
from jerp.storage.manifest import open_run
from jerp.typing import Key

__all__ = ["USAGE", "LanguageModelRun", "Report", "Stage"]

USAGE = "usage.txt"
"""In the run folder, what the process has asked of an endpoint, while it asks."""


class Stage(NamedTuple):
    """What a bar shows: what is being done, and how many of all steps are behind it."""

    label: str
    behind: int
    steps: int


class Report(NamedTuple):
    """What is said of the results.

    Attributes:
      curve: the figure.
      document: of report.md, its blocks.
      table: of the terminal.
      lines: below it.
    """

    curve: Figure
    document: Iterable[str]
    table: Table
    lines: Iterable[str]


@dataclass(frozen=True)
class LanguageModelRun:
    """How one experiment runs a language model.

    Attributes:
      experiment: the folder of its code.
      parts: of a run, each in a folder of its own.
      stages: `(folder, sizes)`: of the run, a bar each; its files say it, because
        another process makes them.
      analyse: `(key, folder, sizes)`: what `results.json` holds beside the settings.
      report: `(results)`.
    """

    experiment: str
    parts: tuple[str, ...]
    stages: Callable[[Path, Any], Sequence[Stage]]
    analyse: Callable[[Key, Path, Any], dict[str, Any]]
    report: Callable[[dict[str, Any]], Report]

    def run(self, config: Any, console: Console) -> dict[str, Any]:
        """Runs or resumes; returns what `results.json` holds.

        Args:
          config: with `policy`, `seed`, `reader_sizes`, `folder`, `command`, `smoke`.
          console: to report to.
        """
        settings = {
            "policy": config.policy,
            "seed": config.seed,
            "sizes": sizes_document(config.reader_sizes),
        }
        about = config.setting.identity
        identity = {"experiment": self.experiment, **settings, **about}
        settings |= {"setting": config.setting.to_json()}
        with open_run(config.folder, identity, seeds=[0]):
            spent = partial(read_usage, config.folder / USAGE)
            with progress_bars(console, below=spent) as progress:
                self._in_a_process(config, settings, progress)
            key = analysis_key(config.seed)
            results = defined(
                {
                    **origin(config),
                    "policy": config.policy,
                    "sizes": settings["sizes"],
                    "setting": about,
                    **self.analyse(key, config.folder, config.reader_sizes),
                }
            )
            _write(results, self.report(results), config.folder, console)
        return results

    def _in_a_process(
        self, config: Any, settings: dict[str, Any], progress: Progress
    ) -> None:
        folder, sizes = config.folder.resolve(), config.reader_sizes
        bars = [
            progress.add_task(stage.label, total=stage.steps)
            for stage in self.stages(folder, sizes)
        ]

        def watch() -> None:
            for bar, stage in zip(bars, self.stages(folder, sizes), strict=True):
                progress.update(bar, description=stage.label, completed=stage.behind)

        watch()
        if all(is_done(folder / part) for part in self.parts):
            return
        settings = {**settings, "policy": _absolute(config.policy)}
        cpu = {"XLA_FLAGS": COMPUTE_LATE} if jax.default_backend() == "cpu" else {}
        run_together(
            f"experiments.{self.experiment}.language_model",
            [[str(folder), json.dumps(settings)]],
            folder,
            watch,
            environment=cpu,
        )


def _absolute(policy: str) -> str:
    """A path stays one in a process with another working directory."""
    return str(Path(policy).resolve()) if Path(policy).exists() else policy


def _write(
    results: dict[str, Any], report: Report, folder: Path, console: Console
) -> None:
    write_json(folder / "results.json", results)
    (folder / "figures").mkdir(exist_ok=True)
    report.curve.savefig(folder / "figures" / "curve.png", dpi=120)
    page = write_page("\n\n".join(report.document) + "\n", folder)
    console.print(report.table)
    for line in report.lines:
        console.print(line)
    console.print(f"report: {page}", soft_wrap=True)
