"""Losses of the PPO family by lists and loops in float64; imports nothing from jerp.

Rows are lists of tokens. `frozen` is what the parts without a gradient see of the
learning policy's log-probabilities, so that a finite difference moves the others alone.
"""

import math

import numpy as np

from tests.reference import kl


def aggregate(loss, mask, aggregation, constant=None):
    """Total and weight."""
    total = weight = 0.0
    for row, keep in zip(loss, mask, strict=True):
        kept = [float(x) for x, k in zip(row, keep, strict=True) if k]
        if not kept:
            continue
        if aggregation == "token_mean":
            total, weight = total + sum(kept), weight + len(kept)
        elif aggregation == "sequence_mean_token_mean":
            total, weight = total + sum(kept) / len(kept), weight + 1
        elif aggregation == "sequence_mean_token_sum":
            total, weight = total + sum(kept), weight + 1
        else:
            total, weight = total + sum(kept), weight + constant
    return total, weight


def _ratio(row, frozen, old, t, kind):
    if kind == "token":
        return math.exp(row[t] - old[t])
    seen = row if kind == "sequence" else frozen
    of_sequence = math.exp(
        sum(s - o for s, o in zip(seen, old, strict=True)) / len(row)
    )
    return (
        of_sequence if kind == "sequence" else of_sequence * math.exp(row[t] - seen[t])
    )


def _surrogate(r, frozen_r, log_prob, advantage, s):
    low, high = 1 - s["clip_low"], 1 + s["clip_high"]
    if s["form"] == "cispo":
        return -min(max(frozen_r, low), high) * advantage * log_prob
    loss = -min(r * advantage, min(max(r, low), high) * advantage)
    if s["dual_clip"] is not None and advantage < 0:
        loss = min(loss, -s["dual_clip"] * advantage)
    return loss


DEFAULTS = {
    "clip_low": 0.2,
    "clip_high": 0.2,
    "dual_clip": None,
    "form": "ppo",
    "ratio": "token",
    "sampler_log_prob": None,
    "max_importance": 2.0,
    "reference_log_prob": None,
    "kl_weight": 0.0,
    "kl_estimator": "k3",
    "aggregation": "token_mean",
    "constant": None,
}


def policy_loss(log_prob, old, advantage, mask, frozen=None, **settings):
    """Total and weight."""
    s = {**DEFAULTS, **settings}
    frozen = log_prob if frozen is None else frozen
    losses = np.zeros(np.shape(mask))
    for i, keep in enumerate(mask):
        index = [t for t, k in enumerate(keep) if k]
        row, still, before = (
            [float(x[i][t]) for t in index] for x in (log_prob, frozen, old)
        )
        for n, t in enumerate(index):
            r = _ratio(row, still, before, n, s["ratio"])
            frozen_r = _ratio(still, still, before, n, s["ratio"])
            loss = _surrogate(r, frozen_r, row[n], float(advantage[i][t]), s)
            if s["sampler_log_prob"] is not None:
                weight = math.exp(before[n] - float(s["sampler_log_prob"][i][t]))
                loss *= min(weight, s["max_importance"])
            if s["reference_log_prob"] is not None:
                reference = float(s["reference_log_prob"][i][t])
                estimate = kl.estimate(row[n], reference, s["kl_estimator"])
                loss += s["kl_weight"] * estimate
            losses[i, t] = loss
    return aggregate(losses, mask, s["aggregation"], s["constant"])


def policy_gradient(log_prob, old, advantage, mask, step=1e-6, **settings):
    """Of total / weight by each log-probability, by central differences."""
    log_prob = np.array(log_prob, np.float64)
    gradient = np.zeros_like(log_prob)
    for i, t in np.argwhere(mask):
        sides = []
        for sign in (1, -1):
            moved = log_prob.copy()
            moved[i, t] += sign * step
            total, weight = policy_loss(
                moved, old, advantage, mask, frozen=log_prob, **settings
            )
            sides.append(total / weight)
        gradient[i, t] = (sides[0] - sides[1]) / (2 * step)
    return gradient


def value_loss(value, target, old_value=None, clip=None):
    """Mean loss and clipped share of a list of values."""
    total, clipped = 0.0, 0
    for i in range(len(value)):
        error = (value[i] - target[i]) ** 2
        if clip is not None:
            bounded = old_value[i] + min(max(value[i] - old_value[i], -clip), clip)
            clipped += (bounded - target[i]) ** 2 > error
            error = max(error, (bounded - target[i]) ** 2)
        total += error / 2
    return total / len(value), clipped / len(value)


def entropy(logits, legal):
    """Of one token."""
    z = [float(x) for x, k in zip(logits, legal, strict=True) if k]
    exponentials = [math.exp(x - max(z)) for x in z]
    p = [e / sum(exponentials) for e in exponentials]
    return -sum(x * math.log(x) for x in p if x > 0)


def overlong_penalty(length, max_length, buffer):
    if length <= max_length - buffer:
        return 0.0
    if length <= max_length:
        return (max_length - buffer - length) / buffer
    return -1.0
