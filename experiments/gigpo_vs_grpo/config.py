"""Settings of the comparison of GiGPO with GRPO.

    jerp run gigpo-vs-grpo

How much of GiGPO's gain over GRPO is owed to comparing steps at equal states, and how
much to step-level discounted credit alone? The control "one anchor" has the second
without the first. All arms of a seed start from one policy, cloned from a noisy oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from jerp.errors import ConfigError
from jerp.runs.seeds import check_seed
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm

__all__ = ["ARMS", "GigpoConfig", "Sizes"]

ARMS = {
    "grpo": "GRPO",
    "one-anchor": "one anchor (control)",
    "gigpo": "GiGPO (std)",
    "gigpo-none": "GiGPO (none)",
    "rloo": "RLOO",
}
"""Arms and their names in tables."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    Attributes:
      iterations: updates of an arm.
      num_groups: tasks an iteration.
      group_size: episodes of a task that are compared.
      train_tasks: of the split "train".
      held_out: tasks of each of the splits "seen" and "unseen".
      samples: episodes a held-out task.
      demonstrations: episodes of the noisy oracle that the base is cloned from.
      noise: share of the oracle's steps that are random.
      epochs: of cloning.
    """

    iterations: int = 400
    num_groups: int = 16
    group_size: int = 8
    train_tasks: int = 512
    held_out: int = 256
    samples: int = 8
    demonstrations: int = 300
    noise: float = 0.4
    epochs: int = 25


SIZES = {
    "default": Sizes(),
    "smoke": Sizes(
        iterations=4,
        num_groups=4,
        group_size=4,
        train_tasks=8,
        held_out=4,
        samples=4,
        demonstrations=16,
        epochs=2,
    ),
    "full": Sizes(iterations=600, held_out=1024, samples=16),
}


@dataclass(frozen=True)
class GigpoConfig:
    """Compares GRPO with GiGPO and its control in a house: trains and reports.

    Attributes:
      seeds: training seeds; each has a base of its own.
      workers: processes side by side.
      out: run folder; None gives `jerp-runs/gigpo-vs-grpo`. The same command in the
        same folder resumes.
      smoke: check the plumbing; numbers mean nothing.
      full: ten seeds, longer, on more tasks.
      seed: root of all random keys; in [0, 2^32).
    """

    seeds: int = 5
    workers: int = 2
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0

    def __post_init__(self):
        for name in ("seeds", "workers"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}: expected at least 1, got {getattr(self, name)}"
                )
        check_seed(self.seed)
        if self.smoke and self.full:
            raise ConfigError("smoke and full exclude each other; give one of them")

    @property
    def sizes(self) -> Sizes:
        """Numbers of tasks, episodes and iterations."""
        return SIZES["smoke" if self.smoke else "full" if self.full else "default"]

    @property
    def num_seeds(self) -> int:
        """Seeds, twice as many with `full`."""
        return 2 * self.seeds if self.full else self.seeds

    @property
    def folder(self) -> Path:
        """The run folder."""
        scale = "-smoke" if self.smoke else "-full" if self.full else ""
        return self.out or Path("jerp-runs") / f"gigpo-vs-grpo{scale}"

    @property
    def command(self) -> str:
        """The command that makes this run."""
        words = ["jerp run gigpo-vs-grpo"]
        if self.seeds != 5:
            words += ["--seeds", str(self.seeds)]
        if self.seed:
            words += ["--seed", str(self.seed)]
        words += ["--smoke"] * self.smoke + ["--full"] * self.full
        if self.out is not None:
            words += ["--out", str(self.out)]
        return " ".join(words)


def arm_algorithm(name: str, sizes: Sizes) -> tuple[GroupConfig, GroupHyper]:
    """The algorithm of an arm: the same numbers, and token means, for all."""
    config, hyper = algorithm(
        name,
        num_groups=sizes.num_groups,
        learning_rate=1e-3,
        entropy_weight=0.003,
        discount=0.95,
    )
    return replace(config, aggregation="token_mean"), hyper
