"""The sup-t band from every resample of a few rows, in float64 with loops."""

import itertools

import numpy as np


def half_widths(values, level):
    """One a column: all rows are clusters, all C^C resamples equally likely."""
    rows = np.asarray(values, np.float64)
    number, columns = rows.shape
    means = np.array(
        [
            [sum(rows[i, j] for i in drawn) / number for j in range(columns)]
            for drawn in itertools.product(range(number), repeat=number)
        ]
    )
    point = [sum(rows[:, j]) / number for j in range(columns)]
    spread = [float(np.std(means[:, j])) for j in range(columns)]
    largest = []
    for mean in means:
        shares = [
            abs(mean[j] - point[j]) / spread[j]
            for j in range(columns)
            if spread[j] > 1e-9
        ]
        largest.append(max(shares, default=0.0))
    factor = float(np.quantile(largest, level))
    return np.array([factor * s if s > 1e-9 else 0.0 for s in spread])
