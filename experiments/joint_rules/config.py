"""Settings of the experiment on rules and policies that learn together.

    jerp run jerp

Do rules that are written while a policy trains help it, and does it come to need them
no more? All arms of a seed start from one small decoder, cloned so that it follows a
rule in its prompt; the rules by which two of the six types of tasks differ from the
others never were in a prompt of those demonstrations.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.benchmark_rules.sizes import (
    ENVS,
    BenchmarkSizes,
    benchmark_sizes,
)
from experiments.executors.endpoint import NO_ENDPOINT, EndpointOptions
from experiments.executors.opened import check_executor
from experiments.jobs.config import ReaderConfig
from experiments.joint_rules.language_model_config import (
    PAPER,
    READER_SMOKE,
    ReaderSizes,
)
from jerp.errors import ConfigError, UnknownNameError

__all__ = ["ARMS", "Arm", "By", "JerpConfig", "Sizes"]

By = Literal["type", "instance"]


@dataclass(frozen=True)
class Arm:
    """One way to learn.

    Attributes:
      label: in tables.
      varies: the arm that it is a variation of; compared with it.
      algorithm: see `jerp.training.group_settings.algorithm`.
      policy: is trained.
      rules: are revised; without, there are none.
      first_stage: share of the iterations after which the pool stays as it is.
      references: reflection sees earlier successes.
      misled: share of the added rules that are made wrong; besides, the pool begins
        with wrong rules, this share of its capacity.
      rule_dropout: chance of a rule to be left out of a group's prompts.
    """

    label: str
    varies: str = ""
    algorithm: str = "grpo"
    policy: bool = True
    rules: bool = True
    first_stage: float = 1.0
    references: bool = True
    misled: float = 0.0
    rule_dropout: float = 0.0


ARMS = {
    "rules-only": Arm("rules only", policy=False),
    "rloo": Arm("RLOO", algorithm="rloo", rules=False),
    "grpo": Arm("GRPO", rules=False),
    "gigpo": Arm("GiGPO", algorithm="gigpo", rules=False),
    "jerp": Arm("JERP", "grpo"),
    "jerp-gigpo": Arm("JERP + GiGPO", "gigpo", algorithm="gigpo"),
    "jerp-frozen": Arm("JERP, frozen pool", "jerp", first_stage=0.1),
    "jerp-alone": Arm("JERP, no references", "jerp", references=False),
    "jerp-dropout": Arm("JERP, rule dropout", "jerp", rule_dropout=0.3),
    "jerp-misled": Arm("JERP, 10% wrong rules", "jerp", misled=0.1),
    "rules-only-misled": Arm(
        "rules only, 10% wrong", "rules-only", policy=False, misled=0.1
    ),
}
"""By name. The paper has RLOO, GRPO, JERP and, as curves, JERP with a frozen pool."""

DEFAULT_ARMS = (
    *("rules-only", "grpo", "jerp", "jerp-frozen", "jerp-alone", "jerp-dropout"),
    *("jerp-misled", "rules-only-misled"),
)


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    Attributes:
      iterations: of an arm.
      every: iterations between two evaluations along the way; a divisor of them.
      num_groups: tasks an iteration.
      group_size: episodes of a task that are compared.
      train_tasks: of the split "train".
      held_out: tasks of each of the splits "seen" and "unseen".
      samples: episodes a held-out task; tasks tell more than episodes of one do.
      curve_tasks: of the split "seen", an episode each, for the curves.
      probe_tasks: whose oracle's steps show how probable what a rule says has become.
      removal: measure what every rule's removal costs.
      oracle_tasks: in which the oracle shows what is right.
      demonstrations: episodes of the follower of rules that the base is cloned from.
      noise: share of the follower's steps that are random.
      epochs: of cloning.
      arms: that are compared.
      worlds: in which they are.
    """

    iterations: int = 200
    every: int = 25
    num_groups: int = 16
    group_size: int = 8
    train_tasks: int = 512
    held_out: int = 4096
    samples: int = 1
    curve_tasks: int = 512
    probe_tasks: int = 256
    removal: bool = True
    oracle_tasks: int = 8192
    demonstrations: int = 12000
    noise: float = 0.3
    epochs: int = 12
    arms: tuple[str, ...] = DEFAULT_ARMS
    worlds: tuple[str, ...] = ("house",)

    def __post_init__(self):
        if self.every < 1 or self.iterations % self.every:
            raise ConfigError(
                f"every: expected a divisor of {self.iterations} iterations, got "
                f"{self.every}"
            )


SIZES = {
    "default": Sizes(),
    "smoke": Sizes(
        iterations=4,
        every=2,
        num_groups=4,
        group_size=4,
        # As many of each, so that few programs are compiled.
        **dict.fromkeys(("train_tasks", "oracle_tasks", "demonstrations"), 512),
        **dict.fromkeys(("held_out", "curve_tasks", "probe_tasks"), 16),
        samples=1,
        epochs=6,
        arms=("rules-only", "grpo", "jerp"),
    ),
    "full": Sizes(arms=tuple(ARMS), worlds=("house", "shop")),
}


@dataclass(frozen=True)
class JerpConfig(ReaderConfig):
    """Learns rules and a policy together in a household: trains arms and reports.

    Attributes:
      seeds: training seeds, each with a base of its own; None gives 3, and 5 with
        `full`.
      workers: processes side by side.
      by: what has a pool of its own: a "type" of tasks, or, as the paper has it, every
        "instance", whose rules then serve on the training tasks alone.
      policy: "tiny" is a decoder of 0.1 M parameters that reads fields. "smollm2-135m",
        or the path of a model, trains adapters of a language model that reads house and
        rules in words: a few instances, to show that every part works.
      env: a benchmark in text instead, in which rules are learned for a frozen model
        that `executor` names: `alfworld`, `webshop`, `textworld-express`, `textworld`,
        `scienceworld`.
      data: of the benchmark: folder of its files; None takes what its variable or
        package has.
      executor: of a benchmark: an address such as http://localhost:8000/v1, `smollm2`,
        or a path to weights.
      plan: of a benchmark: print what would be asked, and what it would cost.
      endpoint: of an address.
      rules: a .json or .md file with rules of some types of tasks, to begin with, in
        the words of the world (see docs/rules.md).
      out: run folder; None gives `jerp-runs/jerp`. The same command in the same folder
        resumes.
      smoke: check the plumbing, with one seed unless `seeds` says more, in about a
        minute; numbers mean nothing.
      full: five seeds, more arms, and a shop too; of a language model the paper's
        numbers, for a large accelerator.
      seed: root of all random keys; in [0, 2^32).
    """

    name = "jerp"
    options = (
        *("seeds", "by", "policy", "rules", "env", "data", "executor", "endpoint"),
        *("seed", "smoke", "full", "out"),
    )
    single = ("seeds", "workers", "by", "rules")

    seeds: int | None = None
    workers: int = 2
    by: By = "type"
    policy: str = "tiny"
    rules: Path | None = None
    env: str = ""
    data: Path | None = None
    executor: str = ""
    plan: bool = False
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0
    endpoint: EndpointOptions = NO_ENDPOINT

    def __post_init__(self):
        super().__post_init__()
        self._check_benchmark()
        if self.by not in ("type", "instance"):
            raise UnknownNameError("by", self.by, ("type", "instance"))
        if self.rules is not None and self.by == "instance":
            raise ConfigError(
                "rules: expected none with by='instance': a file has rules by type"
            )

    def _check_benchmark(self) -> None:
        if not self.env:
            for name in ("data", "executor", "plan", "endpoint"):
                if getattr(self, name) != getattr(type(self), name):
                    raise ConfigError(
                        f"{name}: expected with a benchmark: add --env webshop"
                    )
            return
        if self.env not in ENVS:
            raise UnknownNameError("env", self.env, ENVS)
        for name in ("seeds", "by", "policy", "rules"):
            if (value := getattr(self, name)) != getattr(type(self), name):
                raise ConfigError(
                    f"{name}: expected none with --env, where a frozen model plays "
                    f"and writes the rules of each type, got {value}"
                )
        if not self.executor:
            raise ConfigError(
                "executor: expected who plays: an address such as "
                "http://localhost:8000/v1, smollm2, or a path to weights"
            )
        check_executor(self.executor, self.endpoint)

    @property
    def benchmark_sizes(self) -> BenchmarkSizes:
        """Numbers of a run in a benchmark."""
        return benchmark_sizes(self.env, self.scale)

    @property
    def sizes(self) -> Sizes:
        """Numbers of tasks, episodes and iterations."""
        return SIZES[self.scale]

    @property
    def reader_sizes(self) -> ReaderSizes:
        """Numbers of a language model's run."""
        if self.full:
            return PAPER
        return READER_SMOKE if self.smoke else ReaderSizes()

    @property
    def variant(self) -> str:
        """The model's name, and what has a pool, unless it is a type."""
        if self.env:
            return f"-{self.env}"
        return super().variant + ("-instance" if self.by == "instance" else "")
