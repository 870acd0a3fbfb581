"""Settings of the harness-control experiment: one object for the CLI and the run.

    jerp run harness                        # from SmolLM2's recorded responses
    jerp run harness --executor smollm2     # fresh episodes of the model itself
    jerp run harness --domain dbbench --data FOLDER --executor http://HOST/v1

Sizes follow from three words: the default is sized for a laptop sitting, `smoke` checks
the plumbing and measures nothing (about half a minute; a minute or two with the live
executor), `full` has the sizes of arXiv 2607.05458 (100 tasks a domain or more, 20
rollouts a training task) and resumes over many sittings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from experiments.command import command_of
from experiments.executors.endpoint import NO_ENDPOINT, EndpointOptions, is_endpoint
from experiments.executors.opened import check_executor
from experiments.harness_control.domains import BENCHMARKS, DOMAINS
from jerp.domains.tool_use import Calling
from jerp.errors import ConfigError, UnknownNameError
from jerp.ops.checks import check_choice
from jerp.runs.harness.collection import HarnessSizes
from jerp.runs.seeds import check_seed

__all__ = ["GENERATOR_SEEDS", "HarnessConfig"]

GENERATOR_SEEDS = {"recorded": 0, "live": 1}
"""Task mixes were tuned on seed 7, which no result uses (see README.md)."""

OPTIONS = (
    *("domain", "executor", "endpoint", "calling", "user", "tasks", "seeds"),
    *("seed", "smoke", "full", "data", "out"),
)
"""As the command that makes a run lists them."""

SIZES = {
    ("recorded", "default"): HarnessSizes(),
    ("live", "default"): HarnessSizes(rollouts=6),
    ("recorded", "smoke"): HarnessSizes(num_tasks=15, rollouts=2, samples=2, epochs=2),
    ("live", "smoke"): HarnessSizes(num_tasks=6, rollouts=2, samples=1, epochs=2),
    ("live", "full"): HarnessSizes(samples=20, eval_samples=3),
}


@dataclass(frozen=True)
class HarnessConfig:
    """Compares harness controllers around a frozen model: collects, trains, reports.

    Attributes:
      domain: controlled domains to run, or benchmarks: `dbbench`, `bfcl`, `humaneval`,
        `tau2-retail`, `tau2-airline`, `tau2-telecom`.
      executor: `recorded` replays SmolLM2's recorded responses, without weights or
        network; `smollm2`, or a path to weights, runs a model in this process; an
        address such as http://localhost:8000/v1 asks the endpoint there. The last two
        record as they go.
      seeds: training seeds of each learned controller.
      out: run folder; None gives `jerp-runs/harness-<executor>`. The same command in
        the same folder resumes.
      smoke: check the plumbing; numbers mean nothing. About half a minute from recorded
        responses, a minute or two with the live executor, whose model is compiled.
      full: the paper's sizes; needs a live executor, resumes over many sittings.
      seed: of behaviour, training and bootstrap; in [0, 2^32).
      data: of one benchmark: folder of its files, or the Python that has it; None takes
        what its variable or package has.
      tasks: so many of each domain; None takes those of the size.
      calling: how tools of `bfcl` and `tau2` are called: in words, which every model
        can, or natively, for endpoints that have tools.
      user: who plays the user of `tau2`: the executor too, or a script, a stand-in with
        which scores are not comparable with published ones.
      plan: print what would be asked, and what it would cost; nothing is asked.
      endpoint: of an address.
    """

    domain: tuple[str, ...] = DOMAINS
    executor: str = "recorded"
    seeds: int = 5
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0
    data: Path | None = None
    tasks: int | None = None
    calling: Calling = "text"
    user: Literal["executor", "scripted"] = "executor"
    plan: bool = False
    endpoint: EndpointOptions = NO_ENDPOINT

    def __post_init__(self):
        self._check_domains()
        check_choice("calling", self.calling, get_args(Calling))
        check_choice("user", self.user, ("executor", "scripted"))
        for name, value in (("seeds", self.seeds), ("tasks", self.tasks)):
            if value is not None and value < 1:
                raise ConfigError(f"{name}: expected at least 1, got {value}")
        check_seed(self.seed)
        if self.smoke and self.full:
            raise ConfigError("smoke and full exclude each other; give one of them")
        if self.live:
            check_executor(self.executor, self.endpoint)
            return
        if self.endpoint != NO_ENDPOINT:
            check_executor(self.executor, self.endpoint)
        for name in ("full", "plan"):
            if getattr(self, name):
                raise ConfigError(
                    f"{name}: the recorded store holds the default sizes alone, and "
                    "costs nothing; add --executor smollm2, or an address"
                )

    def _check_domains(self) -> None:
        known = (*DOMAINS, *BENCHMARKS)
        for name in self.domain:
            if name not in known:
                raise UnknownNameError("domain", name, known)
        if not self.domain or len(set(self.domain)) < len(self.domain):
            raise ConfigError(
                f"domain: expected distinct names of {known}, got {self.domain}"
            )
        benchmarks = [name for name in self.domain if name in BENCHMARKS]
        if benchmarks and not self.live:
            raise ConfigError(
                f"domain: nothing of {benchmarks[0]} is recorded; add --executor "
                "smollm2, or an address such as http://localhost:8000/v1"
            )
        if self.data is not None and len(benchmarks) != 1:
            raise ConfigError(
                f"data: expected with one benchmark of {', '.join(BENCHMARKS)}, got "
                f"{self.data} with {len(benchmarks)}"
            )

    @property
    def live(self) -> bool:
        """Whether a model is asked."""
        return self.executor != "recorded"

    @property
    def sizes(self) -> HarnessSizes:
        """Numbers of tasks, rollouts, samples and epochs."""
        scale = "smoke" if self.smoke else "full" if self.full else "default"
        sizes = SIZES["live" if self.live else "recorded", scale]
        return sizes if self.tasks is None else replace(sizes, num_tasks=self.tasks)

    @property
    def folder(self) -> Path:
        """The run folder."""
        scale = "-smoke" if self.smoke else "-full" if self.full else ""
        kind = "endpoint" if is_endpoint(self.executor) else Path(self.executor).stem
        return self.out or Path("jerp-runs") / f"harness-{kind}{scale}"

    @property
    def generator_seed(self) -> int:
        """Seed of the task generators."""
        return GENERATOR_SEEDS["live" if self.live else "recorded"]

    @property
    def command(self) -> str:
        """The command that makes this run."""
        return command_of("jerp run harness", self, OPTIONS)
