"""One small batch of tokens that the tests of losses share.

Four sequences of at most five tokens: a full one, a short one, one with a hole (an
observation between two actions) and an empty one. No ratio lies on a bound.
"""

import numpy as np

MASK = np.array(
    [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool
)
OLD = np.array(
    [
        [-1.0, -2.0, -0.5, -1.5, -3.0],
        [-0.75, -1.25, -9.0, -9.0, -9.0],
        [-0.25, -9.0, -2.0, -1.0, -9.0],
        [-9.0, -9.0, -9.0, -9.0, -9.0],
    ],
    np.float32,
)
SHIFT = np.array(
    [
        [0.125, -0.5, 0.0, 0.5, 1.5],
        [-0.375, 0.4375, 0.0, 0.0, 0.0],
        [0.0625, 0.0, 0.3125, -0.625, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ],
    np.float32,
)
LOG_PROB = OLD + SHIFT
ADVANTAGE = np.array(
    [
        [1.0, 0.5, -1.0, 2.0, -0.5],
        [-1.5, -0.75, 9.0, 9.0, 9.0],
        [0.25, 9.0, -2.0, -1.25, 9.0],
        [9.0, 9.0, 9.0, 9.0, 9.0],
    ],
    np.float32,
)
SAMPLER = OLD - np.array(
    [
        [0.0625, 1.0, 0.0, -0.25, 0.25],
        [-0.5, 0.125, 0.0, 0.0, 0.0],
        [0.5, 0.0, 0.75, 0.0625, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ],
    np.float32,
)
REFERENCE = OLD + np.array(
    [
        [0.25, 0.0, -0.5, -1.0, 2.0],
        [0.5, -0.25, 0.0, 0.0, 0.0],
        [-0.125, 0.0, 1.0, 0.375, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ],
    np.float32,
)
BATCH = (LOG_PROB, OLD, ADVANTAGE, MASK)
FULL = {
    "sampler_log_prob": SAMPLER,
    "reference_log_prob": REFERENCE,
    "kl_weight": 0.25,
}
AGGREGATIONS = {
    "token_mean": {"aggregation": "token_mean"},
    "sequence_mean_token_mean": {"aggregation": "sequence_mean_token_mean"},
    "sequence_mean_token_sum": {"aggregation": "sequence_mean_token_sum"},
    "sum_over_constant": {"aggregation": "sum_over_constant", "constant": 7.0},
}
POISONS = (np.nan, 1e30, np.inf, -np.inf)


def poisoned(x, poison, mask=MASK):
    return np.where(mask, x, np.float32(poison))
