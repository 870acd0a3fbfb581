"""Settings of the harness-control experiment: one object for the CLI and the run.

    jerp run harness                        # from SmolLM2's recorded responses
    jerp run harness --executor smollm2     # fresh episodes of the model itself

Sizes follow from three words: the default is sized for a laptop sitting, `smoke` checks
the plumbing and measures nothing (about half a minute; a minute or two with the live
executor), `full` has the sizes of arXiv 2607.05458 (100 tasks a domain or more, 20
rollouts a training task) and resumes over many sittings.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.command import command_of
from experiments.harness_control.domains import BENCHMARKS, DOMAINS
from jerp.errors import ConfigError, UnknownNameError
from jerp.runs.harness.collection import HarnessSizes
from jerp.runs.seeds import check_seed

__all__ = ["GENERATOR_SEEDS", "HarnessConfig"]

GENERATOR_SEEDS = {"recorded": 0, "smollm2": 1}
"""Task mixes were tuned on seed 7, which no result uses (see README.md)."""

SIZES = {
    ("recorded", "default"): HarnessSizes(),
    ("smollm2", "default"): HarnessSizes(rollouts=6),
    ("recorded", "smoke"): HarnessSizes(num_tasks=15, rollouts=2, samples=2, epochs=2),
    ("smollm2", "smoke"): HarnessSizes(num_tasks=6, rollouts=2, samples=1, epochs=2),
    ("smollm2", "full"): HarnessSizes(samples=20, eval_samples=3),
}


@dataclass(frozen=True)
class HarnessConfig:
    """Compares harness controllers around a frozen model: collects, trains, reports.

    Attributes:
      domain: controlled domains to run, or `dbbench`, whose files `data` names.
      executor: `recorded` replays SmolLM2's recorded responses, without weights or
        network; `smollm2` runs the model and records as it goes.
      seeds: training seeds of each learned controller.
      out: run folder; None gives `jerp-runs/harness-<executor>`. The same command in
        the same folder resumes.
      smoke: check the plumbing; numbers mean nothing. About half a minute from recorded
        responses, a minute or two with the live executor, whose model is compiled.
      full: the paper's sizes; needs the live executor, resumes over many sittings.
      seed: of behaviour, training and bootstrap; in [0, 2^32).
      data: folder of DB-Bench's files; None takes what JERP_DBBENCH names.
    """

    domain: tuple[str, ...] = DOMAINS
    executor: Literal["recorded", "smollm2"] = "recorded"
    seeds: int = 5
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0
    data: Path | None = None

    def __post_init__(self):
        known = (*DOMAINS, *BENCHMARKS)
        for name in self.domain:
            if name not in known:
                raise UnknownNameError("domain", name, known)
        if not self.domain or len(set(self.domain)) < len(self.domain):
            raise ConfigError(
                f"domain: expected distinct names of {known}, got {self.domain}"
            )
        live = [name for name in self.domain if name in BENCHMARKS]
        if live and self.executor == "recorded":
            raise ConfigError(
                f"domain: nothing of {live[0]} is recorded; add --executor smollm2"
            )
        if self.data is not None and not live:
            raise ConfigError(
                f"data: expected with --domain {BENCHMARKS[0]} alone, got {self.data}"
            )
        if self.seeds < 1:
            raise ConfigError(f"seeds: expected at least 1, got {self.seeds}")
        check_seed(self.seed)
        if self.smoke and self.full:
            raise ConfigError("smoke and full exclude each other; give one of them")
        if self.full and self.executor == "recorded":
            raise ConfigError(
                "full: the recorded store holds the default sizes alone; "
                "add --executor smollm2"
            )

    @property
    def sizes(self) -> HarnessSizes:
        """Numbers of tasks, rollouts, samples and epochs."""
        scale = "smoke" if self.smoke else "full" if self.full else "default"
        return SIZES[self.executor, scale]

    @property
    def folder(self) -> Path:
        """The run folder."""
        scale = "-smoke" if self.smoke else "-full" if self.full else ""
        return self.out or Path("jerp-runs") / f"harness-{self.executor}{scale}"

    @property
    def generator_seed(self) -> int:
        """Seed of the task generators."""
        return GENERATOR_SEEDS[self.executor]

    @property
    def command(self) -> str:
        """The command that makes this run."""
        names = ("domain", "executor", "seeds", "seed", "smoke", "full", "data", "out")
        return command_of("jerp run harness", self, names)
