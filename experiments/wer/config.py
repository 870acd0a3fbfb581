"""Settings of the experiment on skills and an optimizer that learns to write them."""

from __future__ import annotations

from dataclasses import dataclass

from jerp.errors import ConfigError

__all__ = ["ExecutorSizes", "OptimizerSizes"]


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
        _check_counts(self, "demonstrations", "epochs")
        _check_shares(self, "noise", "without", "right", "foreign")


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
    epochs: int = 6
    blank: float = 0.2
    without: float = 0.2
    kept: float = 0.5
    seen: float = 0.6
    most: int = 4

    def __post_init__(self):
        _check_counts(self, "demonstrations", "epochs", "most")
        _check_shares(self, "blank", "without", "kept", "seen")


def _check_counts(sizes: object, *names: str) -> None:
    for name in names:
        if (value := getattr(sizes, name)) < 1:
            raise ConfigError(f"{name}: expected at least 1, got {value}")


def _check_shares(sizes: object, *names: str) -> None:
    for name in names:
        if not 0 <= (value := getattr(sizes, name)) <= 1:
            raise ConfigError(f"{name}: expected a share in [0, 1], got {value}")
