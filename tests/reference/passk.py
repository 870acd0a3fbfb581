"""pass@k and pass^k as rational numbers, by counting and by enumerating subsets.

Imports nothing from jerp. NaN stands for what is undefined.
"""

import itertools
from fractions import Fraction
from math import comb, nan


def at_least_one(num_samples, num_correct, k):
    """1 - C(n - c, k) / C(n, k), exactly."""
    if k > num_samples:
        return nan
    return 1 - Fraction(comb(num_samples - num_correct, k), comb(num_samples, k))


def all_of_them(num_samples, num_correct, k):
    """C(c, k) / C(n, k), exactly."""
    if k > num_samples:
        return nan
    return Fraction(comb(num_correct, k), comb(num_samples, k))


def over_subsets(successes, k, combine):
    """Share of the k-subsets of a list of bools for which `combine` is true."""
    subsets = list(itertools.combinations(successes, k))
    if not subsets:
        return nan
    return Fraction(sum(bool(combine(s)) for s in subsets), len(subsets))


def avoidance(num_samples, num_excluded, k):
    """C(n - x, k) / C(n, k) by the shorter product, for n too large for `comb`."""
    few, many = sorted((num_excluded, k))
    above = below = 1
    for drawn in range(few):
        above *= max(num_samples - many - drawn, 0)
        below *= num_samples - drawn
    return Fraction(above, below)
