"""Verdicts by loops, in rational numbers; Student's t by a table and by integration."""

from fractions import Fraction
from math import comb, gamma, pi, sqrt

from tests.reference.boundary import holm

# Two-sided 95% and 99% quantiles as printed in tables, by degrees of freedom.
TABLE = {
    1: (12.706, 63.657),
    2: (4.303, 9.925),
    3: (3.182, 5.841),
    4: (2.776, 4.604),
    5: (2.571, 4.032),
    9: (2.262, 3.250),
    10: (2.228, 3.169),
    30: (2.042, 2.750),
    120: (1.980, 2.617),
}


def student_within(limit, degrees, steps=4000):
    """P(|t| <= limit) by Simpson's rule over the density."""
    scale = gamma((degrees + 1) / 2) / (sqrt(degrees * pi) * gamma(degrees / 2))
    width = limit / steps
    total = 0.0
    for i in range(steps + 1):
        weight = 1 if i in (0, steps) else (4 if i % 2 else 2)
        total += weight * (1 + (i * width) ** 2 / degrees) ** (-(degrees + 1) / 2)
    return 2 * scale * total * width / 3


def task_changes(gain, loss, cluster, mask):
    votes = {}
    for won, lost, task, kept in zip(gain, loss, cluster, mask, strict=True):
        if kept:
            votes[task] = votes.get(task, 0) + int(won) - int(lost)
    signs = list(votes.values())
    return sum(v > 0 for v in signs), sum(v < 0 for v in signs)


def tail(gains, losses):
    total = gains + losses
    return Fraction(sum(comb(total, i) for i in range(gains, total + 1)), 2**total)


def verdicts(pairs, seeds, efficiency, alpha=Fraction(1, 20)):
    """Names, from (gains, losses), (low, high) or None, and a low limit or None."""
    ups = holm([tail(b, c) for b, c in pairs])
    downs = holm([tail(c, b) for b, c in pairs])
    names = []
    for up, down, seed, low in zip(ups, downs, seeds, efficiency, strict=True):
        if up < alpha and (seed is None or seed[0] > 0):
            names.append("EXPANDED")
        elif down < alpha and (seed is None or seed[1] < 0):
            names.append("REGRESSED")
        elif low is not None and low > 0:
            names.append("MORE_EFFICIENT")
        else:
            names.append("NOT_ENOUGH_SAMPLES")
    return names
