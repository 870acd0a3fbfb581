"""Boundary changes in rational numbers, and crossings by a walk along the grid."""

from fractions import Fraction
from math import comb, log2


def mcnemar(gains, losses):
    total = gains + losses
    tail = sum(comb(total, i) for i in range(min(gains, losses) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**total))


def mcnemar_one_sided(gains, losses):
    total = gains + losses
    tail = sum(comb(total, i) for i in range(gains, total + 1))
    return Fraction(tail, 2**total)


def holm(p_values):
    """A dict walk: smallest first, each times the number of those left."""
    ordered = sorted(range(len(p_values)), key=lambda i: p_values[i])
    adjusted, largest = {}, 0.0
    for place, index in enumerate(ordered):
        largest = max(largest, (len(p_values) - place) * p_values[index])
        adjusted[index] = min(1.0, largest)
    return [adjusted[i] for i in range(len(p_values))]


def change(a, b):
    """Counts of one cell from two lists of solved tasks."""
    a, b = set(a), set(b)
    return len(b - a), len(a - b), len(a & b)


def crossings(difference, ks):
    """(k, direction) of every crossing, in order."""
    found, side, before = [], 0, None
    for d, k in zip(map(float, difference), ks, strict=True):
        now = (d > 0) - (d < 0)
        if now and side and now != side:
            last, at = before
            share = last / (last - d)
            found.append((2 ** (log2(at) + share * (log2(k) - log2(at))), now))
        side = now or side
        before = (d, k)
    return found


def saturation(curve, horizons, tolerance):
    """Backwards from the last T, for as long as the values stay close to its own."""
    found = horizons[-1]
    for value, horizon in reversed(list(zip(map(float, curve), horizons, strict=True))):
        if abs(value - float(curve[-1])) > tolerance:
            break
        found = horizon
    return found
