"""The settings of `jerp ope`: what is typed.

Light to import, because `jerp --help` shows them. What is wrong with them is refused
after parsing, as a `ConfigError` in one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from jerp.errors import ConfigError
from jerp.runs.seeds import check_seed

__all__ = ["OpeSettings", "check_settings"]


@dataclass(frozen=True)
class OpeSettings:
    """Estimates a controller's mean return from episodes that another policy logged.

    Attributes:
      trajectories: trajectory folders of one layout, with the behaviour's
        probabilities, such as OTHER_RUN/coding/buffer; best of episodes that the
        controller did not learn from.
      controller: folder of `jerp train harness`, such as
        RUN/coding/controllers/awr-0.
      out: folder for results.json and report.md; nothing is written without.
      discount: of rewards.
      min_effective: effective sample size under which the answer is a refusal.
      min_support: least share of the controller's episodes that the behaviour could
        have produced.
      level: of intervals and of the lower bound.
      lower_bound: bootstrap, or bernstein, which is wide, holds at any size, and is
        there for ordinary and per-decision importance sampling alone.
      resamples: of tasks.
      seed: of the resampling.
    """

    trajectories: Positional[tuple[Path, ...]]
    controller: Path
    out: Path | None = None
    discount: float = 1.0
    min_effective: float = 50.0
    min_support: float = 0.95
    level: float = 0.95
    lower_bound: Literal["bootstrap", "bernstein"] = "bootstrap"
    resamples: int = 2000
    seed: int = 0


def check_settings(settings: OpeSettings) -> None:
    """Raises `ConfigError` naming the flag whose value cannot be meant."""
    check_seed(settings.seed)
    ranges = {
        "--discount": (0 <= settings.discount <= 1, "in [0, 1]", settings.discount),
        "--min-effective": (
            settings.min_effective >= 0,
            ">= 0",
            settings.min_effective,
        ),
        "--min-support": (
            0 < settings.min_support <= 1,
            "in (0, 1]",
            settings.min_support,
        ),
        "--level": (0.5 < settings.level < 1, "in (0.5, 1)", settings.level),
        "--resamples": (settings.resamples >= 1, ">= 1", settings.resamples),
    }
    for flag, (holds, expected, value) in ranges.items():
        if not holds:
            raise ConfigError(f"{flag}: expected {expected}, got {value}")
    if not settings.trajectories:
        raise ConfigError("TRAJECTORIES: expected at least one folder, got none")
