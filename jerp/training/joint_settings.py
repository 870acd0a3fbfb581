"""Settings of joint learning: what is done with rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from jerp.errors import ConfigError
from jerp.ops.checks import check_choice, check_whole

__all__ = ["RuleConfig"]


@dataclass(frozen=True)
class RuleConfig:
    """What is done with rules; the defaults are ExpeL's where it has the number.

    Attributes:
      num_rules: R, rules in a prompt; 0 for a policy that reads none.
      rule_dropout: chance of a rule to be left out of an episode group's prompts, see
        `jerp.rules.selection.leave_out`; the paper leaves out none.
      capacity: rules of a pool that stay, the best. A pool that has so many is full: a
        reflector is told, and a DOWNVOTE costs `full_downvote`.
      max_ops: E, operations of one reflection.
      max_merged: Q, rules that one MERGE can take; at least 2.
      min_score: a rule has to have more.
      prompt_tokens: of the rules of a working set, at most; None for no bound.
      pool_tokens: of the rules of a pool, at most; None for no bound.
      initial_score, upvote, downvote, full_downvote, edit_bonus, merge, order: see
        `jerp.rules.edits.apply_edits`.
    """

    num_rules: int
    rule_dropout: float = 0.0
    capacity: int = 20
    max_ops: int = 4
    max_merged: int = 8
    min_score: float = 0.0
    prompt_tokens: int | None = None
    pool_tokens: int | None = None
    initial_score: float = 2.0
    upvote: float = 1.0
    downvote: float = 1.0
    full_downvote: float = 3.0
    edit_bonus: float = 1.0
    merge: Literal["max", "sum"] = "max"
    order: Literal["expel", "given"] = "expel"

    def __post_init__(self):
        least = {"num_rules": 0, "capacity": 1, "max_ops": 1, "max_merged": 2}
        for name, low in least.items():
            check_whole(name, getattr(self, name), least=low)
        for name in ("prompt_tokens", "pool_tokens"):
            check_whole(name, getattr(self, name), least=0, optional=True)
        votes = ("upvote", "downvote", "full_downvote", "edit_bonus")
        for name in ("min_score", "initial_score", *votes):
            value = getattr(self, name)
            if not _is_number(value):
                raise ConfigError(f"{name}: expected a finite number, got {value!r}")
            if name in votes and value < 0:
                raise ConfigError(f"{name}: expected at least 0, got {value}")
        if self.initial_score <= self.min_score:
            raise ConfigError(
                f"initial_score: expected more than min_score, {self.min_score}, or no "
                f"new rule would stay, got {self.initial_score}"
            )
        if not (_is_number(self.rule_dropout) and 0 <= self.rule_dropout <= 1):
            raise ConfigError(
                f"rule_dropout: expected in [0, 1], got {self.rule_dropout!r}"
            )
        check_choice("merge", self.merge, ("max", "sum"))
        check_choice("order", self.order, ("expel", "given"))
        if self.num_rules > self.capacity:
            raise ConfigError(
                f"num_rules: expected at most the capacity, {self.capacity}, since no "
                f"pool holds more, got {self.num_rules}"
            )

    def slots(self, num_groups: int) -> int:
        """C, of the arrays of a pool.

        Room for all that the groups of an iteration can add to one pool, beside what
        stays: new rules compete with old ones by their scores, not by who came first.

        Args:
          num_groups: G, that are reflected on in an iteration.

        Example:
          >>> RuleConfig(num_rules=3, capacity=20, max_ops=4).slots(2)
          28
        """
        return self.capacity + self.max_ops * num_groups


def _is_number(value: Any) -> bool:
    """Whether a setting is a finite number."""
    number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return number and math.isfinite(value)
