"""What a log of episodes notes of steps and ends, and the `Trajectory` of many."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from jerp.errors import ConfigError, InputError, UnknownNameError
from jerp.models.acting import Decision
from jerp.models.acting_checks import check_features, check_legal
from jerp.storage.trajectory_meta import TrajectoryMeta
from jerp.storage.transcripts import encode_transcripts
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["LoggedEnd", "LoggedStep", "as_trajectory"]

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

    @classmethod
    def checked(
        cls,
        features: ArrayLike,
        legal: ArrayLike,
        decision: Decision,
        reward: float,
        usage: Mapping[str, float] | None,
        text: Mapping[str, Any] | None,
        *,
        meta: TrajectoryMeta,
    ) -> LoggedStep:
        """The step that `OpenEpisode.step` was told of.

        Raises:
          ConfigError, InputError, ShapeError, TrajectoryError: see there.
        """
        allowed = check_legal(legal, meta.action_names, rows=())
        action, log_prob = _checked_decision(decision, allowed, meta.action_names)
        step = cls(
            feature=check_features(features, meta.feature_names, ndim=1),
            legal=allowed,
            action=action,
            log_prob=log_prob,
            reward=_checked_reward(reward),
            usage=_usage_row(_mapping("usage", usage)),
            text={"action": decision.name, **_mapping("text", text)},
        )
        encode_transcripts([[step.text]], num_steps=1)
        return step


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
          ConfigError, InputError: see there.
        """
        outcome = None if outcome is None else _checked_outcome(outcome)
        is_broken = outcome == Outcome.INFRASTRUCTURE
        if num_steps == 0 and not is_broken:
            raise ConfigError(
                "end: expected at least one step, got none; an episode that broke "
                "before it began has the outcome INFRASTRUCTURE"
            )
        value = np.nan if score is None else _number("score", score)
        if not (0 <= value <= 1 or (is_broken and np.isnan(value))):
            raise InputError(f"score: expected a number in [0, 1], got {score}")
        if is_broken:
            return cls(task_id, Outcome.INFRASTRUCTURE, value, 0.0)
        if outcome is None:
            outcome = Outcome.SUCCESS if value == 1 else Outcome.FAILURE
        earned = _checked_reward(value if reward is None else reward)
        return cls(task_id, outcome, value, earned)


def _checked_outcome(outcome: Any) -> Outcome:
    try:
        return Outcome(outcome)
    except ValueError as error:
        names = ", ".join(known.name for known in Outcome)
        raise InputError(
            f"outcome: expected a jerp.typing.Outcome ({names}), got {outcome!r}"
        ) from error


def _checked_decision(
    decision: Decision, legal: np.ndarray, names: Sequence[str]
) -> tuple[int, float]:
    """Action and log-probability of a decision of this layout, legal and possible."""
    if not isinstance(decision, Decision):
        raise InputError(
            "decision: expected a jerp.Decision, as HarnessController.act returns it, "
            f"got {decision!r}"
        )
    try:
        action = operator.index(decision.action)
    except TypeError as error:
        raise InputError(
            "decision.action: expected the index of an action, a whole number, got "
            f"{decision.action!r}"
        ) from error
    if not 0 <= action < len(names) or names[action] != decision.name:
        raise ConfigError(
            f"decision: expected an action of {tuple(names)} with its index, got "
            f"{decision.name!r} as number {action}; is it of another layout?"
        )
    if not legal[action]:
        raise InputError(f"decision: expected a legal action, got {decision.name!r}")
    log_prob = _number("decision.log_prob", decision.log_prob)
    if not -LARGEST <= log_prob <= 0:
        raise InputError(
            f"decision.log_prob: expected a number in [-{LARGEST}, 0], got {log_prob}"
        )
    return action, log_prob


def _checked_reward(reward: float) -> float:
    """Refuses what float32 cannot hold, or not the sum of two."""
    value = _number("reward", reward)
    if not abs(value) <= LARGEST:
        raise InputError(
            f"reward: expected a finite number of at most {LARGEST} in size, got "
            f"{value}"
        )
    return value


def _usage_row(usage: Mapping[str, float]) -> np.ndarray:
    """`[U]` float32 amounts; refuses unknown kinds and impossible amounts."""
    amounts = dict.fromkeys(USAGE_KINDS, 0.0)
    for kind, given in usage.items():
        if kind not in amounts:
            raise UnknownNameError("kind of usage", str(kind), USAGE_KINDS)
        amounts[kind] = _number(f"usage[{kind!r}]", given)
        if not 0 <= amounts[kind] <= LARGEST:
            raise InputError(
                f"usage[{kind!r}]: expected at least 0 and at most {LARGEST}, got "
                f"{given}"
            )
    return np.array([*amounts.values()], np.float32)


def _mapping(name: str, given: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{name}: expected a dict, or None, got {given!r}")
    return given or {}


def _number(name: str, given: Any) -> float:
    """What counts as one number: of Python, or an array's without axes; no text."""
    is_single = hasattr(given, "__float__") and np.ndim(given) == 0
    if is_single and not isinstance(given, str | bytes):
        try:
            return float(given)
        except (TypeError, ValueError, OverflowError):
            pass
    raise InputError(f"{name}: expected a number, got {given!r}")


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
