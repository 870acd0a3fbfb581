"""Gains and losses of one seed's questions as tables of chances, in float64.

Symbols: `N` questions, each a gain with chance g, a loss with chance l, or neither.
Tables leave out what is eight standard deviations away. Nothing here can be traced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["SeedTable", "critical_gains", "draw_changes", "seed_tables"]

POINTS = 15
"""At which a spread between seeds is taken."""


class SeedTable(NamedTuple):
    """Counts of a seed and how likely they are.

    Attributes:
      weight: chance that a seed is of this table.
      gains: `[G]`, successive counts.
      losses: `[L]`, likewise.
      mass: `[G, L]`, their chances.
    """

    weight: float
    gains: NDArray[np.int64]
    losses: NDArray[np.int64]
    mass: NDArray[np.float64]


def seed_tables(
    number: int, gain: float, loss: float, spread: float
) -> list[SeedTable]:
    """One table; with a spread of gain - loss between seeds, one a point of it.

        g_s = clip(g + e_s / 2, 0, g + l),  l_s = g + l - g_s,  e_s ~ Normal(0, spread)

    with e_s at the points of Gauss and Hermite.

    Args:
      number: N.
      gain: g.
      loss: l.
      spread: standard deviation of e_s.

    Example:
      >>> (table,) = seed_tables(2, 0.5, 0.25, 0.0)
      >>> table.mass.round(4).tolist()
      [[0.0625, 0.125, 0.0625], [0.25, 0.25, 0.0], [0.25, 0.0, 0.0]]
    """
    if spread == 0:
        return [_table(number, gain, loss, 1.0)]
    points, weights = np.polynomial.hermite_e.hermegauss(POINTS)
    both = gain + loss
    shifted = np.clip(gain + spread * points / 2, 0, both)
    return [
        _table(number, g, both - g, weight)
        for g, weight in zip(
            shifted.tolist(), (weights / weights.sum()).tolist(), strict=True
        )
    ]


def draw_changes(
    tables: Sequence[SeedTable], uniform: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Counts of many seeds by inverting the tables.

    Args:
      tables: of `seed_tables`.
      uniform: `[2, ...]` in [0, 1): the first picks the table, the second the cell.

    Returns:
      Gains and losses, `[...]`.

    Example:
      >>> tables = seed_tables(2, 0.5, 0.25, 0.0)
      >>> uniform = np.array([[0.5, 0.5], [0.0, 0.99]])
      >>> [count.tolist() for count in draw_changes(tables, uniform)]
      [[0, 2], [0, 0]]
    """
    bounds = np.cumsum([table.weight for table in tables])[:-1]
    which = np.searchsorted(bounds, uniform[0], side="right")
    gains = np.zeros(which.shape, np.int64)
    losses = np.zeros_like(gains)
    for i, table in enumerate(tables):
        here = which == i
        below = np.cumsum(table.mass.ravel())
        cell = np.searchsorted(below, uniform[1][here] * below[-1], side="right")
        cell = np.minimum(cell, below.size - 1)
        gains[here] = table.gains[cell // len(table.losses)]
        losses[here] = table.losses[cell % len(table.losses)]
    return gains, losses


def critical_gains(low: int, high: int, level: float) -> NDArray[np.int64]:
    """The fewest gains among n discordant questions that a test at `level` rejects.

        min {b : P(X >= b) < level},  X ~ Binomial(n, 1 / 2);  n + 1 if there is none

    Args:
      low: the first n.
      high: the last n.
      level: in [1e-9, 1/2].

    Example:
      >>> critical_gains(4, 9, 0.05).tolist()
      [5, 5, 6, 7, 7, 8]
    """
    n = np.arange(low, high + 1)[:, None]
    reach = min(high, 4 * math.isqrt(high) + 40)
    b = (n + 1) // 2 + np.arange(reach + 1)
    log = _log_factorials(high)
    inside = np.minimum(b, n)
    term = np.exp(log[n] - log[inside] - log[n - inside] - n * math.log(2))
    tail = np.cumsum(np.where(b <= n, term, 0.0)[:, ::-1], axis=1)[:, ::-1]
    return np.minimum(b[:, :1] + (tail < level).argmax(1)[:, None], n + 1)[:, 0]


def _table(number: int, gain: float, loss: float, weight: float) -> SeedTable:
    gains, losses = _window(number, gain), _window(number, loss)
    log = _log_factorials(number)
    b, c = gains[:, None], losses
    rest = number - b - c
    neither = max(1 - gain - loss, 0.0)
    value = log[number] - log[b] - log[c] - log[np.maximum(rest, 0)]
    value = value + _times_log(b, gain) + _times_log(c, loss)
    value = value + _times_log(np.maximum(rest, 0), neither)
    return SeedTable(weight, gains, losses, np.where(rest < 0, 0.0, np.exp(value)))


def _window(number: int, chance: float) -> NDArray[np.int64]:
    """Counts that are likelier than 1e-15; the tail of few is that of Poisson."""
    mean = number * chance
    reach = 8 * math.sqrt(mean * (1 - chance)) + 30
    first, last = max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), number)
    return np.arange(first, last + 1)


def _times_log(count: NDArray[np.int64], chance: float) -> NDArray[Any]:
    """The product of count and log(chance), with 0 log(0) = 0."""
    if chance > 0:
        return count * math.log(chance)
    return np.where(count > 0, -np.inf, 0.0)


def _log_factorials(most: int) -> NDArray[Any]:
    """log(i!) for i up to `most`."""
    logs = np.log(np.maximum(np.arange(most + 1.0), 1.0))
    return np.cumsum(logs)
