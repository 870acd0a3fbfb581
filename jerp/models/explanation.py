"""Which features move a decision: each replaced by its usual value, one at a time.

No gradient and no sampling: the policy is asked again for every feature, so a change is
exact, for a feature alone. What two features do only together shows in both or in none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from jerp.errors import InputError, UnknownNameError

__all__ = ["Explanation", "FeatureEffect", "explanation"]

USUAL = ("check", "submit")


@dataclass(frozen=True)
class FeatureEffect:
    """What one feature does to the probabilities of the explained actions.

    Attributes:
      feature: its name.
      value: here.
      typical: its mean over the training buffer.
      change: for each action, how much more probable it is with `value` than with
        `typical`.
    """

    feature: str
    value: float
    typical: float
    change: tuple[float, ...]


@dataclass(frozen=True)
class Explanation:
    """The effects of all features, the strongest first; prints as a table.

    Attributes:
      actions: names of the explained actions.
      probability: of each of them.
      rows: one `FeatureEffect` a feature, by the largest change of any of the actions.
    """

    actions: tuple[str, ...]
    probability: tuple[float, ...]
    rows: tuple[FeatureEffect, ...]

    def __str__(self) -> str:
        width = max(len("probability"), *(len(row.feature) for row in self.rows))
        wide = [max(8, len(action)) for action in self.actions]

        def line(name: str, value: str, typical: str, cells: Sequence[str]) -> str:
            ends = (f"  {c:>{w}}" for c, w in zip(cells, wide, strict=True))
            return f"{name:<{width}}  {value:>8}  {typical:>8}{''.join(ends)}"

        head = line("feature", "value", "typical", self.actions)
        total = line("probability", "", "", [f"{p:.3f}" for p in self.probability])
        effects = (
            line(
                row.feature,
                f"{row.value:.3g}",
                f"{row.typical:.3g}",
                [f"{change:+.3f}" for change in row.change],
            )
            for row in self.rows
        )
        return "\n".join([head, total, *effects])

    __repr__ = __str__


def explanation(
    probabilities: Callable[[np.ndarray], np.ndarray],
    features: np.ndarray,
    typical: np.ndarray,
    *,
    feature_names: Sequence[str],
    action_names: Sequence[str],
    actions: Sequence[str] | None = None,
) -> Explanation:
    """`HarnessController.explain` of any policy.

        change_j = pi(a | x) - pi(a | x with x_j = typical_j)

    Args:
      probabilities: `[B, F]` to `[B, A]`.
      features: `[F]`.
      typical: `[F]`.
      feature_names: F of them.
      action_names: A of them.
      actions: which to explain; "check" and "submit" where they exist, or else all.

    Raises:
      UnknownNameError: no action has that name.
      InputError: `actions` are no names, or name one twice.

    Example:
      >>> def policy(x):
      ...     return np.stack([x[:, 0], 1 - x[:, 0]], axis=1)
      >>> explanation(
      ...     policy, np.array([0.75, 2.0]), np.array([0.5, 0.0]),
      ...     feature_names=("doubt", "noise"), action_names=("check", "submit"),
      ... )
      feature         value   typical     check    submit
      probability                         0.750     0.250
      doubt            0.75       0.5    +0.250    -0.250
      noise               2         0    +0.000    +0.000
    """
    actions = _chosen(actions, action_names)
    columns = [action_names.index(name) for name in actions]
    replaced = np.where(np.eye(len(features), dtype=bool), typical, features)
    probability = probabilities(np.concatenate([features[None], replaced]))[:, columns]
    change = probability[0] - probability[1:]
    order = np.argsort(-np.abs(change).max(axis=1), kind="stable")
    return Explanation(
        actions=tuple(actions),
        probability=tuple(probability[0].tolist()),
        rows=tuple(
            FeatureEffect(
                feature_names[j],
                float(features[j]),
                float(typical[j]),
                tuple(change[j].tolist()),
            )
            for j in map(int, order)
        ),
    )


def _chosen(actions: Sequence[str] | None, known: Sequence[str]) -> Sequence[str]:
    if actions is None:
        return [name for name in USUAL if name in known] or known
    is_one = isinstance(actions, str) or not isinstance(actions, Iterable)
    names = [] if is_one else list(actions)
    if not names or not all(isinstance(name, str) for name in names):
        raise InputError(
            f"actions: expected names of actions, such as {[*known[:2]]}, got "
            f"{actions!r}"
        )
    for name in names:
        if name not in known:
            raise UnknownNameError("action", name, known)
    if len(set(names)) < len(names):
        raise InputError(f"actions: expected each name once, got {names}")
    return names
