"""Cluster bootstrap by enumerating every resample, in float64, with loops and dicts.

Imports nothing from jerp. With C clusters there are C^C equally likely resamples, so
the bootstrap distribution is exact for small C.
"""

import itertools
from statistics import NormalDist

import numpy as np

NORMAL = NormalDist()


def group(values, cluster):
    """Cluster id to its values, in order of first appearance."""
    groups = {}
    for value, name in zip(values, cluster, strict=True):
        if not np.isnan(value):
            groups.setdefault(name, []).append(float(value))
    return groups


def every_resample_mean(values, cluster):
    """Sorted means over all C^C resamples of whole clusters."""
    groups = list(group(values, cluster).values())
    means = []
    for drawn in itertools.product(groups, repeat=len(groups)):
        pooled = [value for members in drawn for value in members]
        means.append(sum(pooled) / len(pooled))
    return np.sort(means)


def percentile_interval(values, cluster, level):
    means = every_resample_mean(values, cluster)
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2])


def bca_interval(values, cluster, level):
    groups = group(values, cluster)
    means = every_resample_mean(values, cluster)
    point = float(np.mean([v for members in groups.values() for v in members]))
    tolerance = 1e-9
    below = np.mean(means < point - tolerance)
    ties = np.mean(np.abs(means - point) <= tolerance)
    bias = NORMAL.inv_cdf(below + ties / 2)
    left_out = []
    for name in groups:
        rest = [
            v for other, members in groups.items() if other != name for v in members
        ]
        left_out.append(sum(rest) / len(rest))
    offsets = [sum(left_out) / len(left_out) - value for value in left_out]
    square = sum(u**2 for u in offsets)
    skew = sum(u**3 for u in offsets) / (6 * square**1.5)
    limits = []
    for tail in ((1 - level) / 2, (1 + level) / 2):
        shifted = bias + NORMAL.inv_cdf(tail)
        limits.append(NORMAL.cdf(bias + shifted / (1 - skew * shifted)))
    return np.quantile(means, limits)


def clustered_standard_error(values, cluster):
    groups = group(values, cluster)
    pooled = [value for members in groups.values() for value in members]
    mean = sum(pooled) / len(pooled)
    squares = 0.0
    for members in groups.values():
        squares += sum(value - mean for value in members) ** 2
    number = len(groups)
    return float(np.sqrt(number / (number - 1) * squares) / len(pooled))


def two_sided_p(values, cluster):
    """Twice the smaller share of resamples at or beyond zero, without the added one."""
    means = every_resample_mean(values, cluster)
    return min(1.0, 2 * min(np.mean(means <= 1e-12), np.mean(means >= -1e-12)))
