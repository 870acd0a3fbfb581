"""Settings of the study of PASS@(k, T).

    jerp run pass-surface

Did training move the capability boundary, or only its efficiency? All arms of a seed
start from one weak base, a decoder of 0.2 M parameters. Questions are of three kinds:
A, which of two given values is smaller or larger (nothing to look up, and trained by no
arm: the static control); B, which of the values of two entities is (two look-ups in any
order); C, the value of the entity that an entity links to (the second look-up depends
on the first).

Reference: Zhai, Yan, Shao, Wang, arXiv:2604.14877. Named departures: a simulated world
stands in for HotPotQA and MATH-500; what can be looked up is redrawn at every visit of
a training question, in every arm, so that the expert's trajectories for SFT are played
anew, too; a search fails with probability .25; policies write no reasoning, so that
the mechanism splits queries from answers, whose first word, the choice to search no
more, counts as answer: the paper's 2.07 and 3.08 are not comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from experiments.jobs.config import JobsConfig
from jerp.errors import ConfigError
from jerp.ops.checks import check_choice

__all__ = [
    "ARMS",
    "CATEGORIES",
    "FAILURE",
    "HORIZONS",
    "TRAINED_LIMIT",
    "PassSurfaceConfig",
    "Sizes",
]

ARMS = {"base": "base", "sft": "SFT", "grpo": "GRPO", "ppo": "PPO"}
"""Policies and their names in tables; all but the first are trained from it."""

CATEGORIES = {"A": (0,), "B": (0, 1, 2, 3, 5), "C": (0, 1, 2, 3, 5)}
"""Kinds of questions, and the budgets T of look-ups with which they are asked."""

HORIZONS = CATEGORIES["C"]

TRAINED_LIMIT = HORIZONS[-1]
"""Look-ups that are allowed in training."""

FAILURE = 0.25
"""The probability that a search fails."""


@dataclass(frozen=True)
class Sizes:
    """How much of everything.

    Attributes:
      demonstrations: episodes that the base is cloned from.
      lazy: share of them that answer after at most one look-up.
      careless: share of the answers to questions A in them that are any value.
      epochs: of cloning the base.
      train_questions: of each of the kinds B and C.
      sft_visits: how often SFT comes to a question; several numbers are tried, and the
        one that solves most validation questions at the first try is kept.
      validation: questions of each of the kinds B and C, for that choice.
      iterations: of reinforcement learning.
      num_groups: questions an iteration.
      group_size: G, episodes of a question that are compared.
      questions: test questions of each kind.
      samples: n, episodes a test question.
      ks: budgets k.
      block: the most episodes that are played at once.
      other_worlds: that the base is cloned in as well, and no arm is trained in.
      other_tasks: tasks of each of them, an episode each, that show forgetting.
      read_samples: runs a question that the arms read of each other, to see how they
        solve it; at most `samples`.
    """

    demonstrations: int = 3000
    lazy: float = 0.7
    careless: float = 0.5
    epochs: int = 5
    train_questions: int = 100
    sft_visits: tuple[int, ...] = (20,)
    validation: int = 50
    iterations: int = 160
    num_groups: int = 32
    group_size: int = 8
    questions: int = 100
    samples: int = 128
    ks: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    block: int = 512
    other_worlds: tuple[str, ...] = ("tools", "house")
    other_tasks: int = 512
    read_samples: int = 16


SIZES = {
    "default": Sizes(),
    "smoke": Sizes(
        demonstrations=64,
        epochs=1,
        train_questions=8,
        sft_visits=(1,),
        validation=4,
        iterations=2,
        num_groups=4,
        group_size=4,
        questions=4,
        samples=8,
        ks=(1, 2, 4),
        block=32,
        other_worlds=("tools",),
        other_tasks=8,
        # As many as there are: one program plays both.
        read_samples=8,
    ),
    "full": Sizes(questions=300, sft_visits=(10, 20, 40, 80, 160), iterations=240),
}


@dataclass(frozen=True)
class PassSurfaceConfig(JobsConfig):
    """Asks whether training moved the capability boundary: trains, samples, reports.

    Attributes:
      seeds: training seeds, each with a base and questions of its own; None gives 3,
        and 5 with `full`.
      workers: processes side by side.
      arms: what is trained from the base: "sft" (cloning on 200 questions), "grpo" (on
        the same ones), "ppo".
      executor: "smollm2" asks it of the frozen SmolLM2-135M, from its recorded
        responses: does a learned controller around it solve tasks that the base
        sequence never does? Then `seeds` are those of the controllers, 5 if None.
      out: run folder; None gives `jerp-runs/pass-surface`. The same command in the same
        folder resumes.
      smoke: check the plumbing, with one seed unless `seeds` says more, in a minute or
        two; numbers mean nothing.
      full: five seeds, 300 questions a kind, SFT's steps chosen on validation.
      seed: root of all random keys; in [0, 2^32).
    """

    name = "pass-surface"
    options = ("seeds", "arms", "executor", "seed", "smoke", "full", "out")

    seeds: int | None = None
    workers: int = 2
    arms: tuple[str, ...] = ("sft", "grpo")
    executor: Literal["none", "smollm2"] = "none"
    out: Path | None = None
    smoke: bool = False
    full: bool = False
    seed: int = 0

    def __post_init__(self):
        super().__post_init__()
        trained = tuple(ARMS)[1:]
        for arm in self.arms:
            check_choice("arms", arm, trained)
        if not self.arms or len({*self.arms}) < len(self.arms):
            raise ConfigError(
                f"arms: expected some of {', '.join(trained)}, each once, got "
                f"{' '.join(self.arms) or 'none'}"
            )
        check_choice("executor", self.executor, ("none", "smollm2"))
        if self.executor != "none":
            self._check_frozen()

    def _check_frozen(self) -> None:
        """What is recorded has one size, and arms of its own."""
        if self.full:
            raise ConfigError(
                "full: expected none with an executor, whose recorded responses have "
                "one size"
            )
        if self.arms != PassSurfaceConfig.arms:
            raise ConfigError(
                "arms: expected none with an executor: base, cloning and advantage "
                f"weighting are compared, got {' '.join(self.arms)}"
            )

    @property
    def sizes(self) -> Sizes:
        """Numbers of questions, episodes and iterations."""
        return SIZES[self.scale]

    @property
    def policies(self) -> tuple[str, ...]:
        """The base, then what was trained from it."""
        return ("base", *self.arms)

    @property
    def variant(self) -> str:
        """The frozen model, if one is asked."""
        return "" if self.executor == "none" else f"-{self.executor}"
