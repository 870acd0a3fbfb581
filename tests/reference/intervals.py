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


def stratify(cluster, strata):
    """Stratum to its clusters; all clusters in one without strata."""
    stratum_of = dict(
        zip(cluster, strata if strata is not None else [0] * len(cluster), strict=True)
    )
    parts = {}
    for name, stratum in stratum_of.items():
        parts.setdefault(stratum, []).append(name)
    return parts


def every_resample_mean(values, cluster, strata=None):
    """Sorted means over all resamples of whole clusters, stratum by stratum."""
    groups = group(values, cluster)
    choices = [
        itertools.product([groups[name] for name in names], repeat=len(names))
        for names in stratify(cluster, strata).values()
    ]
    means = []
    for drawn in itertools.product(*choices):
        pooled = [value for part in drawn for members in part for value in members]
        means.append(sum(pooled) / len(pooled))
    return np.sort(means)


def every_two_stage_mean(values, cluster):
    """Sorted means when each drawn cluster's values are drawn anew, all of one size."""
    groups = list(group(values, cluster).values())
    assert len({len(members) for members in groups}) == 1
    means = []
    for drawn in itertools.product(groups, repeat=len(groups)):
        within = [itertools.product(m, repeat=len(m)) for m in drawn]
        for chosen in itertools.product(*within):
            pooled = [value for members in chosen for value in members]
            means.append(sum(pooled) / len(pooled))
    return np.sort(means)


def percentile_interval(values, cluster, level, strata=None):
    means = every_resample_mean(values, cluster, strata)
    return np.quantile(means, [(1 - level) / 2, (1 + level) / 2])


def bca_interval(values, cluster, level, strata=None):
    groups = group(values, cluster)
    means = every_resample_mean(values, cluster, strata)
    point = float(np.mean([v for members in groups.values() for v in members]))
    tolerance = 1e-9
    below = np.mean(means < point - tolerance)
    ties = np.mean(np.abs(means - point) <= tolerance)
    bias = NORMAL.inv_cdf(below + ties / 2)
    offsets = []
    for names in stratify(cluster, strata).values():
        left_out = []
        for name in names:
            rest = [
                v for other, members in groups.items() if other != name for v in members
            ]
            left_out.append(sum(rest) / len(rest))
        share = (len(names) - 1) / len(names)
        offsets += [share * (np.mean(left_out) - value) for value in left_out]
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
