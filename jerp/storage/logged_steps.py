"""What a log of episodes notes of steps and ends, and the `Trajectory` of many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jerp.errors import ConfigError, InputError, UnknownNameError
from jerp.models.acting import Decision
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

__all__ = [
    "LoggedEnd",
    "LoggedStep",
    "as_trajectory",
    "check_decision",
    "check_reward",
    "usage_row",
]

# Two of them have a sum in float32, as the rewards of a last step and of its end.
LARGEST = 1e38


@dataclass(frozen=True)
class LoggedStep:
    """One decision: `feature` `[F]`, `legal` `[A]`, `usage` `[U]`, and the text."""

    feature: np.ndarray
    legal: np.ndarray
    action: int
    log_prob: float
    reward: float
    usage: np.ndarray
    text: Mapping[str, Any]


@dataclass(frozen=True)
class LoggedEnd:
    """How an episode ended; `reward` comes on top of the last step's.

    `feature` is what came after the last step, None where nobody will ask.
    """

    task_id: int
    outcome: Outcome
    score: float
    reward: float
    feature: np.ndarray | None = None

    @classmethod
    def checked(
        cls,
        score: float | None,
        outcome: Outcome | None,
        reward: float | None,
        *,
        task_id: int,
        num_steps: int,
    ) -> LoggedEnd:
        """The end that `OpenEpisode.end` was told of.

        Raises:
          ConfigError, InputError: see `OpenEpisode.end`.
        """
        if outcome == Outcome.INFRASTRUCTURE:
            score = np.nan if score is None else score
            return cls(task_id, outcome, float(score), 0.0)
        if num_steps == 0:
            raise ConfigError(
                "end: expected at least one step, got none; an episode that broke "
                "before it began has the outcome INFRASTRUCTURE"
            )
        if score is None or not 0 <= score <= 1:
            raise InputError(f"score: expected a number in [0, 1], got {score}")
        if outcome is None:
            outcome = Outcome.SUCCESS if score == 1 else Outcome.FAILURE
        reward = float(score if reward is None else reward)
        check_reward(reward)
        return cls(task_id, Outcome(outcome), float(score), reward)


def check_decision(decision: Decision, legal: np.ndarray, names: Sequence[str]) -> None:
    """The decision is one of this layout, legal and possible.

    Raises:
      ConfigError, InputError: see `OpenEpisode.step`.
    """
    action = decision.action
    if not 0 <= action < len(names) or names[action] != decision.name:
        raise ConfigError(
            f"decision: expected an action of {tuple(names)} with its index, got "
            f"{decision.name!r} as number {action}; is it of another layout?"
        )
    if not legal[action]:
        raise InputError(f"decision: expected a legal action, got {decision.name!r}")
    if not -LARGEST <= decision.log_prob <= 0:
        raise InputError(
            f"decision.log_prob: expected a number in [-{LARGEST}, 0], got "
            f"{decision.log_prob}"
        )


def check_reward(reward: float) -> None:
    """Raises `InputError` unless float32 can hold it, and the sum of two."""
    if not abs(reward) <= LARGEST:
        raise InputError(
            f"reward: expected a finite number of at most {LARGEST} in size, got "
            f"{reward}"
        )


def usage_row(usage: Mapping[str, float]) -> np.ndarray:
    """`[U]` float32 amounts.

    Raises:
      UnknownNameError: there is no such kind.
      InputError: an amount is negative, or float32 cannot hold it.
    """
    for kind, amount in usage.items():
        if kind not in USAGE_KINDS:
            raise UnknownNameError("kind of usage", kind, USAGE_KINDS)
        if not 0 <= amount <= LARGEST:
            raise InputError(
                f"usage[{kind!r}]: expected at least 0 and at most {LARGEST}, got "
                f"{amount}"
            )
    return np.array([usage.get(kind, 0.0) for kind in USAGE_KINDS], np.float32)


def as_trajectory(
    episodes: Sequence[tuple[Sequence[LoggedStep], LoggedEnd]],
    *,
    num_features: int,
    num_actions: int,
    version: int,
) -> Trajectory:
    """`Trajectory` of `B` episodes, padded with zeros to the longest.

    Anchors are all different, because a log knows no states beyond their features.
    """
    lengths = np.array([[len(steps)] for steps, _ in episodes])
    batch, longest = len(episodes), max(1, int(lengths.max()))
    mask: Any = np.arange(longest) < lengths
    flat = [step for steps, _ in episodes for step in steps]

    def of_steps(name: str, dtype: Any, *axes: int) -> Any:
        padded = np.zeros((batch, longest, *axes), dtype)
        if flat:
            padded[mask] = np.stack([getattr(step, name) for step in flat])
        return padded

    def of_ends(name: str, dtype: Any) -> Any:
        return np.array([getattr(end, name) for _, end in episodes], dtype)

    feature = of_steps("feature", np.float32, num_features)
    reward = of_steps("reward", np.float32)
    every, last = np.arange(batch), np.maximum(lengths[:, 0] - 1, 0)
    reward[every, last] += of_ends("reward", np.float32)
    final = feature[every, last]
    for row, (_, end) in enumerate(episodes):
        if end.feature is not None:
            final[row] = end.feature
    outcome = of_ends("outcome", np.int32)
    cut = np.isin(outcome, (Outcome.TRUNCATED, Outcome.INFRASTRUCTURE))[:, None]
    is_last = mask & (np.arange(longest) == last[:, None])
    anchor: Any = np.arange(batch * longest, dtype=np.int32)
    return Trajectory(
        observation=feature,
        action=of_steps("action", np.int32),
        reward=reward,
        terminated=is_last & ~cut,
        truncated=is_last & cut,
        mask=mask,
        anchor=anchor.reshape(batch, longest),
        usage=of_steps("usage", np.float32, len(USAGE_KINDS)),
        final_observation=final,
        task_id=of_ends("task_id", np.int32),
        group_id=of_ends("task_id", np.int32),
        seed=anchor[:batch],
        outcome=outcome,
        score=of_ends("score", np.float32),
        version=np.full_like(outcome, version),
        legal=of_steps("legal", bool, num_actions),
        log_prob=of_steps("log_prob", np.float32),
    )
