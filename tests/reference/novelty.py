"""Novelty, contributions and break-even as loops over dicts, in float64."""

import itertools
import math
from collections import Counter


def distinct(runs, draws):
    """Mean number of different runs over all choices of `draws` of them."""
    counts = [len(set(chosen)) for chosen in itertools.combinations(runs, draws)]
    return sum(counts) / len(counts)


def overlap(a, b):
    """Share of A's runs that B has, and the common mass."""
    in_a, in_b = Counter(a), Counter(b)
    known = sum(count for s, count in in_a.items() if s in in_b) / len(a)
    common = sum(min(in_a[s] / len(a), in_b[s] / len(b)) for s in in_a)
    return known, common


def perplexity(tokens):
    """Of a list of log-probabilities."""
    return math.exp(-sum(tokens) / len(tokens))


def contributions(value):
    """Mean of what each part brings, over both orders of exchange."""
    parts = [0.0, 0.0]
    for order in ((0, 1), (1, 0)):
        state = [0, 0]
        for part in order:
            before = value[state[0]][state[1]]
            state[part] = 1
            parts[part] += (value[state[0]][state[1]] - before) / 2
    return parts


def samples_needed(curve, ks, target):
    """Between grid points by bisection of the straight line in log2 k."""
    if curve[0] >= target:
        return ks[0]
    for (k, low), (k_next, high) in itertools.pairwise(zip(ks, curve, strict=True)):
        if high >= target:
            left, right = math.log2(k), math.log2(k_next)
            start, width = left, right - left
            for _ in range(60):
                middle = (left + right) / 2
                value = low + (high - low) * (middle - start) / width
                left, right = (left, middle) if value >= target else (middle, right)
            return 2**right
    return math.nan


def uses(base, trained, ks, base_cost, trained_cost, training_cost):
    """Uses from which training has paid; None where the base never gets there."""
    number = len(base)
    curve = [sum(row[i] for row in base) / number for i in range(len(ks))]
    target = sum(row[0] for row in trained) / number
    needed = samples_needed(curve, ks, target)
    saving = needed * sum(base_cost) / number - sum(trained_cost) / number
    return training_cost / saving
