"""KL estimates of one token and their slopes, in Python floats; imports no jerp."""

import math


def estimate(log_prob, reference, estimator):
    d = reference - log_prob
    if estimator == "k1":
        return -d
    if estimator == "k2":
        return d * d / 2
    if abs(d) < 1e-3:  # in float64 expm1(d) - d loses as many digits as d is small
        return sum(d**n / math.factorial(n) for n in range(2, 8))
    if d > 80:
        return math.exp(80) * (1 + d - 80) - 1 - d
    return math.expm1(d) - d


def slope(log_prob, reference, estimator):
    """Derivative by `log_prob`."""
    d = reference - log_prob
    if estimator == "k1":
        return 1.0
    if estimator == "k2":
        return -d
    return -math.expm1(min(d, 80.0))
