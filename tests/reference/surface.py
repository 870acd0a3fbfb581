"""PASS@(k, T) by walking all k-subsets of each task's runs, with loops.

Imports nothing from jerp. A run is `(spent, outcome)`; outcomes are 0 failure,
1 success, 2 truncated, 3 malformed, 4 infrastructure.
"""

from math import isnan, nan

import numpy as np

from tests.reference.passk import over_subsets


def by_horizon(spent, outcome, horizon, *, nested):
    """True solved, False not solved, None nobody knows."""
    if nested and not isnan(spent) and spent > horizon:
        return False
    return None if outcome == 4 else outcome == 1


def runs_of(spent, outcome, mask, task, h, *, nested):
    """The `(spent, outcome)` of a task's samples that exist, at horizon number h."""
    at = (task,) if nested else (h, task)
    rows = zip(spent[at], outcome[at], mask[at], strict=True)
    return [(s, o) for s, o, real in rows if real]


def at_least_one(solved, k):
    return float(over_subsets(solved, k, any))


def cell(statuses, k, min_coverage):
    """Estimate and bounds from the statuses of all samples of a task."""
    answered = [s for s in statuses if s is not None]
    covered = statuses and len(answered) / len(statuses) >= min_coverage
    return (
        at_least_one(answered, k) if covered else nan,
        at_least_one([bool(s) for s in statuses], k),
        at_least_one([s is None or s for s in statuses], k),
    )


def surface(spent, outcome, mask, *, ks, horizons, nested, min_coverage):
    """Estimate, low and high, `[N, K, H]` each."""
    num_tasks = spent.shape[-2]
    found = np.empty((3, num_tasks, len(ks), len(horizons)))
    for task in range(num_tasks):
        for h, horizon in enumerate(horizons):
            runs = runs_of(spent, outcome, mask, task, h, nested=nested)
            statuses = [by_horizon(*run, horizon, nested=nested) for run in runs]
            for i, k in enumerate(ks):
                found[:, task, i, h] = cell(statuses, k, min_coverage)
    return found
