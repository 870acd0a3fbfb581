"""Settings of the comparison of GiGPO with GRPO.

    jerp run gigpo-vs-grpo

How much of GiGPO's gain over GRPO is owed to comparing steps at equal states, and how
much to step-level discounted credit alone? The control "one anchor" has the second
without the first. All arms of a seed start from one policy, cloned from a noisy oracle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from experiments.jobs.config import ReaderConfig
from jerp.errors import ConfigError
from jerp.training.group_settings import GroupConfig, GroupHyper, algorithm

__all__ = [
    "ARMS",
    "MORE_ARMS",
    "GigpoConfig",
    "ReaderSizes",
    "Sizes",
    "arm_algorithm",
]

ARMS = {
    "grpo": "GRPO",
    "one-anchor": "one anchor (control)",
    "gigpo": "GiGPO (std)",
    "gigpo-none": "GiGPO (none)",
    "rloo": "RLOO",
}
"""Arms and their names in tables."""

MORE_ARMS = {**ARMS, "ppo": "PPO"}
"""Those of `--full`."""


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
      arms: that are compared.
      worlds: in which they are.
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
    arms: tuple[str, ...] = tuple(ARMS)
    worlds: tuple[str, ...] = ("house",)


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
    "full": Sizes(
        iterations=600,
        held_out=1024,
        samples=16,
        arms=tuple(MORE_ARMS),
        worlds=("house", "shop"),
    ),
}


SMOKE_SEEDS = 2
"""At most, of a smoke run."""


@dataclass(frozen=True)
class ReaderSizes:
    """How much of everything, for a language model that reads the house in words.

    Attributes:
      arm: the algorithm.
      iterations: updates.
      num_groups, group_size: as in `Sizes`.
      num_steps: step budget; the oracle needs ten at most.
      num_tokens: of an episode, at most.
      num_observation_tokens, num_action_tokens: of one observation, one action.
      rank: of the adapters, which are beside every matrix.
      demonstrations, noise, epochs: as in `Sizes`.
      train_tasks: of the split "train".
      held_out: tasks of the split "seen".
      samples: episodes a held-out task.
    """

    arm: str = "gigpo-none"
    iterations: int = 60
    num_groups: int = 4
    group_size: int = 4
    num_steps: int = 16
    num_tokens: int = 640
    num_observation_tokens: int = 112
    num_action_tokens: int = 8
    rank: int = 16
    demonstrations: int = 64
    noise: float = 0.0
    epochs: int = 2
    train_tasks: int = 512
    held_out: int = 32
    samples: int = 2


READER_SMOKE = ReaderSizes(
    iterations=2,
    num_groups=2,
    group_size=2,
    num_steps=3,
    num_tokens=256,
    rank=2,
    demonstrations=4,
    epochs=1,
    train_tasks=4,
    held_out=2,
    samples=2,
)


@dataclass(frozen=True)
class GigpoConfig(ReaderConfig):
    """Compares GRPO with GiGPO and its control in a house: trains and reports.

    Attributes:
      seeds: training seeds; each has a base of its own.
      workers: processes side by side.
      out: run folder; None gives `jerp-runs/gigpo-vs-grpo`. The same command in the
        same folder resumes.
      smoke: check the plumbing, with two seeds at most, in about a minute on two idle
        cores; numbers mean nothing.
      full: ten seeds, PPO and a shop too, longer, on more tasks.
      seed: root of all random keys; in [0, 2^32).
      policy: "tiny" compares all arms with a decoder of 0.1 M parameters that reads
        fields. "smollm2-135m", or the path of a model, trains adapters of a language
        model that reads the house in words: one arm, one seed, two hours or so.
    """

    name = "gigpo-vs-grpo"
    options = ("policy", "seeds", "seed", "smoke", "full", "out")

    seeds: int = 5
    workers: int = 2
    policy: str = "tiny"
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        if self.reads and self.full:
            raise ConfigError(
                f"full: expected policy 'tiny', which has more of everything, got "
                f"{self.policy!r}"
            )

    @property
    def sizes(self) -> Sizes:
        """Numbers of tasks, episodes and iterations."""
        return SIZES[self.scale]

    @property
    def reader_sizes(self) -> ReaderSizes:
        """Numbers of a language model's run."""
        return READER_SMOKE if self.smoke else ReaderSizes()

    @property
    def num_seeds(self) -> int:
        """Seeds, twice as many with `full`; two show that there may be several."""
        if self.smoke:
            return min(self.seeds, SMOKE_SEEDS)
        return 2 * self.seeds if self.full else self.seeds


def arm_algorithm(
    name: str, num_groups: int, *, learning_rate: float = 1e-3
) -> tuple[GroupConfig, GroupHyper]:
    """The algorithm of an arm: the same numbers, and token means, for all."""
    config, hyper = algorithm(
        name,
        num_groups=num_groups,
        learning_rate=learning_rate,
        entropy_weight=0.003,
        discount=0.95,
    )
    return replace(config, aggregation="token_mean"), hyper
