"""Settings of the experiment on skills and an optimizer that learns to write them."""

from __future__ import annotations

from dataclasses import dataclass

from jerp.errors import ConfigError

__all__ = ["ExecutorSizes"]


@dataclass(frozen=True)
class ExecutorSizes:
    """What the frozen executor is cloned from.

    Attributes:
      demonstrations: episodes of the follower of lines.
      epochs: passes over them.
      noise: share of the follower's steps that are random.
      without: share of the episodes that have no line.
      right: chance of a line to be the right one for its error.
      foreign: chance of a line to be any pair of situation and move of the language,
        which seldom means anything in the domain.
    """

    demonstrations: int = 8000
    epochs: int = 8
    noise: float = 0.05
    without: float = 0.2
    right: float = 0.35
    foreign: float = 0.1

    def __post_init__(self):
        for name in ("demonstrations", "epochs"):
            if (value := getattr(self, name)) < 1:
                raise ConfigError(f"{name}: expected at least 1, got {value}")
        for name in ("noise", "without", "right", "foreign"):
            if not 0 <= (value := getattr(self, name)) <= 1:
                raise ConfigError(f"{name}: expected a share in [0, 1], got {value}")
