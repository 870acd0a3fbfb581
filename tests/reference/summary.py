"""Summaries by loops over sorted values and pairs, in float64."""

import numpy as np


def interquartile_mean(values, weight):
    """Walks along the sorted values and counts what lies in the middle half."""
    pairs = sorted(zip(map(float, values), map(float, weight), strict=True))
    total = sum(w for _, w in pairs)
    start, inside, weighed = 0.0, 0.0, 0.0
    for value, w in pairs:
        low, high = max(start, total / 4), min(start + w, 3 * total / 4)
        if high > low:
            inside += (high - low) * value
            weighed += high - low
        start += w
    return inside / weighed


def probability_of_improvement(a, b):
    shares = []
    for left, right in zip(a, b, strict=True):
        wins = [
            1.0 if x > y else 0.5 if x == y else 0.0
            for x in left
            for y in right
            if not (np.isnan(x) or np.isnan(y))
        ]
        shares.append(sum(wins) / len(wins) if wins else np.nan)
    return shares


def performance_profile(scores, thresholds):
    rows = []
    for runs in scores:
        real = [x for x in runs if not np.isnan(x)]
        rows.append(
            [
                sum(x > t for x in real) / len(real) if real else np.nan
                for t in thresholds
            ]
        )
    return rows
