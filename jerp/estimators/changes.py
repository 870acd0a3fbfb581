"""How often a question counts as gained or lost, on the host, in float64.

Symbols: `Q` kinds of question, p and p' their success rates before and after training,
n samples of each agent. Nothing here can be traced.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jerp.errors import InputError, ShapeError
from jerp.ops.checks import check_count
from jerp.typing import ArrayLike

__all__ = ["Changes", "expected_changes"]


class Changes(NamedTuple):
    """What a question contributes on average.

    Attributes:
      gain: chance that the trained agent alone solves it.
      loss: chance that the base agent alone does.
    """

    gain: float
    loss: float


def expected_changes(
    base: ArrayLike,
    trained: ArrayLike,
    *,
    num_samples: int,
    weight: ArrayLike | None = None,
) -> Changes:
    """Chances of a gain and of a loss, from success rates that are known.

        gain = sum_q w_q (1 - p_q)^n (1 - (1 - p'_q)^n),  loss its mirror

    A question that both can solve counts as gained or lost where n samples of one
    agent met no success: luck is part of both chances.

    Args:
      base: `[Q]`, p: success rate of one sample, of each kind of question.
      trained: `[Q]`, p', of the trained agent.
      num_samples: n >= 1, of each agent.
      weight: `[Q]`, share of each kind among the questions; None weighs all alike.

    Returns:
      `Changes`.

    Raises:
      InputError: rates outside [0, 1], weights that are negative or all 0, a number of
        samples that is none. `ShapeError`, one of them: other axes.

    Reference: arXiv:2604.14877, section 2: solved is solved at least once in n.

    Example:
      >>> found = expected_changes([0.0, 0.5], [0.5, 0.5], num_samples=1)
      >>> found.gain, found.loss
      (0.375, 0.125)
    """
    check_count("num_samples", num_samples)
    p, q = (np.asarray(x, np.float64) for x in (base, trained))
    w = np.ones_like(p) if weight is None else np.asarray(weight, np.float64)
    for name, x in (("base", p), ("trained", q), ("weight", w)):
        if x.shape != p.shape or x.ndim != 1 or not len(x):
            raise ShapeError(
                f"{name}: expected axes [Q] = [{p.size}], a number for each kind of "
                f"question, got {list(x.shape)}"
            )
        if not ((x >= 0) & (x <= (np.inf if name == "weight" else 1))).all():
            expected = ">= 0" if name == "weight" else "in [0, 1]"
            raise InputError(f"{name}: expected {expected}, got {x.tolist()}")
    if not 0 < w.sum() < np.inf:
        raise InputError(f"weight: expected a finite sum > 0, got {w.tolist()}")
    w = w / w.sum()
    never, never_trained = (1 - p) ** num_samples, (1 - q) ** num_samples
    return Changes(
        gain=float(w @ (never * (1 - never_trained))),
        loss=float(w @ (never_trained * (1 - never))),
    )
