"""Limits from t-statistics, errors of sums of ratios: slow, imports nothing of jerp."""

import numpy as np


def value_and_error(numerator, denominator, times):
    """Of rows counted `times`, written out one by one."""
    rows = [i for i, n in enumerate(times) for _ in range(int(n))]
    n, d = (np.asarray(x, np.float64)[rows] for x in (numerator, denominator))
    ratio = n.sum(axis=0) / d.sum(axis=0)
    psi = ((n - ratio * d) / d.mean(axis=0)).sum(axis=-1)
    return ratio.sum(axis=-1), np.sqrt((psi**2).sum() / (len(rows) * (len(rows) - 1)))


def limits(point, error, replicate, replicate_error, level, symmetric):
    t = []
    for theta, s in zip(replicate, replicate_error, strict=True):
        if not np.isnan(theta):
            t.append((theta - point) / s)
    if symmetric:
        size = np.abs(t)
        half = np.quantile(size, level) * error
        least = np.quantile(size, 2 * level - 1) * error
        return point - half, point + half, point - least
    tails = ((1 + level) / 2, (1 - level) / 2, level)
    return tuple(point - np.quantile(t, tail) * error for tail in tails)
