"""The settings of `jerp passkt plan`, light to import.

The defaults are the published study: 100 questions of each of three categories, 64
samples, five questions gained and one lost (arXiv 2604.14877).
"""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, fields
from pathlib import Path

from jerp.errors import ConfigError
from jerp.runs.seeds import check_seed

__all__ = ["PlanSettings", "check_plan", "plan_command"]

MOST_SAMPLES, MOST_QUESTIONS = 65_536, 20_000


@dataclass(frozen=True)
class PlanSettings:
    """Questions and samples that an expansion of a given size needs to be seen.

    Attributes:
      questions: of a category, other ones for each training seed.
      samples: runs a question, of either agent.
      expansion: share of questions that training makes solvable.
      loss: share of questions that training makes unsolvable.
      new_rate: chance that a run solves such a question, while it is solvable.
      rare: share of questions that both agents solve, but rarely: luck.
      rare_rate: chance that a run solves one of these.
      categories: tested side by side; in the others nothing moves.
      seeds: trainings with seeds of their own.
      seed_spread: standard deviation between seeds of gains - losses, as a share of
        questions, beyond what other questions bring.
      power: wanted chance of the verdict "expanded".
      seed: of the studies that are drawn if there are several training seeds.
      json: a file for the numbers; replaced if it is there.
    """

    questions: int = 100
    samples: int = 64
    expansion: float = 0.05
    loss: float = 0.01
    new_rate: float = 0.1
    rare: float = 0.0
    rare_rate: float = 0.01
    categories: int = 3
    seeds: int = 1
    seed_spread: float = 0.0
    power: float = 0.8
    seed: int = 0
    json: Path | None = None


def check_plan(settings: PlanSettings) -> None:
    """Refuses what cannot be, naming the option.

    Raises:
      ConfigError: a value out of range, or shares of more than all questions.
    """
    check_seed(settings.seed)
    limits = (
        ("questions", 1, MOST_QUESTIONS),
        ("samples", 1, MOST_SAMPLES),
        ("categories", 1, 10_000),
        ("seeds", 1, 100),
    )
    for name, least, most in limits:
        if not least <= (got := getattr(settings, name)) <= most:
            raise ConfigError(f"--{name}: expected {least} to {most:,}, got {got}")
    for name in ("expansion", "loss", "new_rate", "rare", "rare_rate", "seed_spread"):
        if not 0 <= (got := getattr(settings, name)) <= 1:
            option = name.replace("_", "-")
            raise ConfigError(f"--{option}: expected in [0, 1], got {got}")
    if not 0 < settings.power < 1:
        raise ConfigError(f"--power: expected in (0, 1), got {settings.power}")
    shares = settings.expansion, settings.loss, settings.rare
    if math.fsum(shares) > 1 + 1e-9:
        raise ConfigError(
            f"--expansion, --loss, --rare: expected shares of at most 1 together, got "
            f"{', '.join(f'{share:g}' for share in shares)}"
        )


def plan_command(settings: PlanSettings) -> str:
    """The command line of this plan, without what is left to default."""
    words = ["jerp", "passkt", "plan"]
    for field in fields(settings):
        value = getattr(settings, field.name)
        if field.name != "json" and value != field.default:
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return shlex.join(words)
