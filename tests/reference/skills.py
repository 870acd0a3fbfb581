"""Rewards and retention of skills, run by run in plain Python."""

import math

SUCCESS, INFRASTRUCTURE = 1, 4


def counts(runs):
    """(successes, failures) among the outcomes of one skill."""
    successes = sum(run == SUCCESS for run in runs)
    return successes, sum(run not in (SUCCESS, INFRASTRUCTURE) for run in runs)


def retained(runs, least=1):
    return all(number >= least for number in counts(runs))


def evidence_pair(runs):
    success = failure = -1
    for index, run in reversed(list(enumerate(runs))):
        if run == SUCCESS:
            success = index
        elif run != INFRASTRUCTURE:
            failure = index
    return success, failure


def reward(parsed, runs, tokens, budget=256, weights=(1.0, 1.0, 1.0)):
    """(total, format, task, length, valid) of one draft."""
    if tokens == 0:
        length = 0.0
    elif tokens <= budget:
        length = 1.0
    else:
        length = max(0.0, 1 - (tokens - budget) / budget)
    task = 0.0
    if parsed:
        successes, failures = counts(runs)
        if successes + failures == 0:
            return math.nan, 1.0, math.nan, length, False
        task = successes / (successes + failures)
    terms = (float(parsed), task, length)
    total = sum(w * term for w, term in zip(weights, terms, strict=True)) / 3
    return total, *terms, True
