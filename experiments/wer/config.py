"""Settings of the experiment on skills and an optimizer that learns to write them.

    jerp run wer

Does an optimizer that is rewarded for what its drafts lead to write better skills, for
an executor that is never trained? Each seed has an executor and an optimizer of its
own, cloned; all methods of a seed write for the same executor.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from experiments.executors.endpoint import NO_ENDPOINT, EndpointOptions
from experiments.jobs.config import MODELS, ReaderConfig
from experiments.wer.ablations import ABLATIONS, Ablation
from experiments.wer.benchmark_sizes import benchmark_sizes
from experiments.wer.language_model_config import PAPER, READER_SMOKE, ReaderSizes
from experiments.wer.setting import TextSetting
from jerp.domains.tool_use import Calling
from jerp.errors import ConfigError
from jerp.ops.checks import check_choice

__all__ = ["DOMAINS", "SIZES", "ExecutorSizes", "OptimizerSizes", "Sizes", "WerConfig"]

TEXT_ONLY = ("env", "data", "calling", "user", "executor", "plan", "endpoint")
"""Settings of a language model that reads text."""

DOMAINS = ("travel", "vehicle")
"""APIs that skills are written for."""


def _check_counts(sizes: object, *names: str) -> None:
    for name in names:
        if (value := getattr(sizes, name)) < 1:
            raise ConfigError(f"{name}: expected at least 1, got {value}")


def _check_shares(sizes: object, *names: str) -> None:
    for name in names:
        if not 0 <= (value := getattr(sizes, name)) <= 1:
            raise ConfigError(f"{name}: expected a share in [0, 1], got {value}")


@dataclass(frozen=True)
class ExecutorSizes:
    """What the frozen executor is cloned from.

    Attributes:
      demonstrations: episodes of the follower of lines.
      epochs: passes over them.
      noise: share of the follower's steps that are random.
      guess: share of the errors without a line that it knows how to repair, so that
        many a task is now done and now not.
      without: share of the episodes that have no line.
      right: chance of a line to be the right one for its error.
      foreign: chance of a line to be any pair of situation and move of the language,
        which seldom means anything in the domain.
    """

    demonstrations: int = 8000
    epochs: int = 8
    noise: float = 0.05
    guess: float = 0.2
    without: float = 0.2
    right: float = 0.35
    foreign: float = 0.1

    def __post_init__(self):
        _check_counts(self, "demonstrations", "epochs")
        _check_shares(self, "noise", "guess", "without", "right", "foreign")


@dataclass(frozen=True)
class OptimizerSizes:
    """What the optimizer is cloned from: drafts that are well formed and know nothing.

    Attributes:
      demonstrations: drafts.
      epochs: passes over them.
      blank: share of the prompts without a skill.
      without: share of the prompts without evidence.
      kept: chance of a line of the skill as it is to be kept.
      seen: chance of a new line to say what was called after an error in the evidence,
        whether that helped or not; else it is any line of the domain.
      most: new lines.
    """

    demonstrations: int = 6000
    epochs: int = 12
    blank: float = 0.2
    without: float = 0.2
    kept: float = 0.5
    seen: float = 1.0
    most: int = 4

    def __post_init__(self):
        _check_counts(self, "demonstrations", "epochs", "most")
        _check_shares(self, "blank", "without", "kept", "seen")


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    Attributes:
      executor: what the executor is cloned from.
      optimizer: what the optimizer is cloned from.
      base_drafts: seed drafts of the clone, whose outcomes in 2 runs are counted.
      train_tasks: of the split "train".
      phases: P, of training.
      batches: of a phase.
      states: of a batch.
      num_drafts: K, of a state.
      num_runs: n, of a draft.
      chunk: batches between two checkpoints.
      refinement: of the training tasks, those that skills are written for once the
        optimizer is trained.
      rounds: of revision, after the seeds; each method without revision has as many
        runs of the executor in other ways.
      depths: rounds that the table of depths goes to.
      lengths: numbers of steps that a merged skill may have; validation says which.
      validation: tasks of the split "train" that no skill was written for.
      test: tasks of the split "seen", the same for all seeds.
      validation_runs: of a validation task.
      test_runs: of a test task.
    """

    executor: ExecutorSizes = field(default_factory=ExecutorSizes)
    optimizer: OptimizerSizes = field(default_factory=OptimizerSizes)
    base_drafts: int = 256
    train_tasks: int = 1024
    phases: int = 3
    batches: int = 100
    states: int = 32
    num_drafts: int = 4
    num_runs: int = 2
    chunk: int = 20
    refinement: int = 256
    rounds: int = 2
    depths: int = 3
    lengths: tuple[int, ...] = (1, 2, 4, 8)
    validation: int = 512
    test: int = 1024
    validation_runs: int = 2
    test_runs: int = 2

    def __post_init__(self) -> None:
        names = ("base_drafts", "phases", "batches", "states", "chunk", "rounds")
        _check_counts(self, *names, "validation_runs", "test_runs")
        for name in ("base_drafts", "refinement", "validation", "test"):
            if (value := getattr(self, name)) % len(DOMAINS):
                raise ConfigError(
                    f"{name}: expected as many of each of {len(DOMAINS)} domains, got "
                    f"{value}"
                )
        if not len(DOMAINS) <= self.refinement <= self.train_tasks:
            raise ConfigError(
                f"refinement: expected from {len(DOMAINS)} to {self.train_tasks}, the "
                f"training tasks, got {self.refinement}"
            )
        if self.depths < self.rounds:
            raise ConfigError(
                f"depths: expected at least {self.rounds} rounds, got {self.depths}"
            )

    @property
    def total(self) -> int:
        """Batches of all phases."""
        return self.phases * self.batches


SIZES = {
    "default": Sizes(),
    "smoke": Sizes(
        executor=ExecutorSizes(demonstrations=512, epochs=4),
        optimizer=OptimizerSizes(demonstrations=512, epochs=4),
        base_drafts=64,
        train_tasks=16,
        batches=2,
        states=4,
        num_drafts=2,
        chunk=2,
        refinement=8,
        lengths=(1, 2),
        validation=16,
        test=16,
    ),
    "full": Sizes(test=2048),
}


@dataclass(frozen=True)
class WerConfig(ReaderConfig):
    """Trains an optimizer of skills on what its drafts lead to, and compares it.

    Attributes:
      seeds: training seeds, each with an executor and an optimizer of its own; None
        gives 3, and 5 with `full`.
      workers: processes side by side.
      ablations: what else revisions are written from, each with two trainings more:
        from a failure of the skill alone, a success alone, none of its runs, or runs a
        tenth of which are shown as what they were not; None gives none, and all with
        `full`. The option with nothing behind it gives none there too.
      policy: "tiny" are small decoders that read fields. "smollm2-135m", or the path of
        a model, has that language model write skills, with adapters that learn, for
        itself without them, which follows them: a few small programs to be written, to
        show that every part works.
      env: of a language model: the benchmark that skills are for, instead of small
        programs: `bfcl`, `tau2` (its shop), `tau2-airline`, `tau2-telecom`.
      data: of the benchmark: folder of its files, or the Python that has it; None takes
        what its variable or package has.
      calling: how tools of the benchmark are called: in words, or natively.
      user: who plays the user of `tau2`: who follows skills, or a script, a stand-in.
      executor: of a language model: who follows skills instead of itself: an address
        such as http://localhost:8000/v1, `smollm2`, or a path to weights.
      plan: print what would be asked of the executor, and what it would cost.
      endpoint: of an address.
      out: run folder; None gives `jerp-runs/wer`. The same command in the same folder
        resumes.
      smoke: check the plumbing, with one seed unless `seeds` says more, in about a
        minute; numbers mean nothing.
      full: five seeds, more tasks in the test, all ablations; of a language model the
        paper's numbers, for a large accelerator.
      seed: root of all random keys; in [0, 2^32).
    """

    name = "wer"
    options = (
        *("seeds", "ablations", "policy", "env", "data", "calling", "user"),
        *("executor", "endpoint", "seed", "smoke", "full", "out"),
    )
    single = ("seeds", "workers", "ablations")

    seeds: int | None = None
    workers: int = 2
    ablations: tuple[Ablation, ...] | None = None
    policy: str = "tiny"
    env: str = ""
    data: Path | None = None
    calling: Calling = "text"
    user: Literal["executor", "scripted"] = "executor"
    executor: str = ""
    plan: bool = False
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0
    endpoint: EndpointOptions = NO_ENDPOINT

    def __post_init__(self):
        super().__post_init__()
        if not self.reads:
            for name in TEXT_ONLY:
                if getattr(self, name) != getattr(type(self), name):
                    raise ConfigError(
                        f"{name}: expected with a language model, which reads text: "
                        "add --policy smollm2-135m, or the path of another"
                    )
        _ = self.setting
        for name in self.ablations or ():
            check_choice("ablations", name, ABLATIONS)
        if len(set(self.ablations or ())) < len(self.ablations or ()):
            raise ConfigError(f"ablations: expected each once, got {self.ablations}")
        if self.reads and self.policy not in MODELS:
            _check_model(Path(self.policy))

    @property
    def trained_ablations(self) -> tuple[Ablation, ...]:
        """Those that are trained."""
        everything = ABLATIONS if self.full else ()
        return everything if self.ablations is None else self.ablations

    @property
    def sizes(self) -> Sizes:
        """Numbers of tasks, drafts and batches."""
        return SIZES[self.scale]

    @property
    def reader_sizes(self) -> ReaderSizes:
        """Numbers of a language model's run."""
        if self.env:
            return benchmark_sizes(self.env, self.scale)
        if self.full:
            return PAPER
        return READER_SMOKE if self.smoke else ReaderSizes()

    @property
    def setting(self) -> TextSetting:
        """What a language model's run is about."""
        return TextSetting(
            *(self.env, self.data, self.calling, self.user),
            *(self.executor, self.endpoint),
        )

    @property
    def variant(self) -> str:
        """The model's name, and the benchmark's."""
        return super().variant + (f"-{self.env}" if self.env else "")


def _check_model(path: Path) -> None:
    """Refuses what is no model before hours of other work, and before a folder is made.

    Raises:
      ConfigError: a folder without config.json, or a file that does not begin as GGUF.
    """
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ConfigError(
                f"policy: expected the folder of a model, got {path} without "
                "config.json; name the folder that has it, or a GGUF file"
            )
        return
    with path.open("rb") if path.is_file() else io.BytesIO() as file:
        if file.read(4) != b"GGUF":
            raise ConfigError(
                f"policy: expected a GGUF file, got {path}, which does not begin as one"
            )
