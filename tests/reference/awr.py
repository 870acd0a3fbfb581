"""AWR by dicts, loops and float64; imports nothing from jerp."""

import math

import numpy as np


def weights(advantage, temperature, min_weight, max_weight, standardize=False):
    advantage = [float(a) for a in advantage]
    if standardize:
        mean = sum(advantage) / len(advantage)
        variance = sum((a - mean) ** 2 for a in advantage) / len(advantage)
        advantage = [(a - mean) / (math.sqrt(variance) + 1e-5) for a in advantage]
    log_max = math.log(max_weight)
    return [max(min_weight, math.exp(min(a / temperature, log_max))) for a in advantage]


def task_mean_baseline(returns, task_id, leave_one_out=False):
    by_task = {}
    for index, task in enumerate(task_id):
        by_task.setdefault(task, []).append(index)
    baseline = []
    for index, task in enumerate(task_id):
        used = by_task[task]
        if leave_one_out and len(used) > 1:
            used = [i for i in used if i != index]
        baseline.append(sum(float(returns[i]) for i in used) / len(used))
    return baseline


def masked_softmax(logits, legal):
    out = np.zeros_like(logits)
    for row, allowed in zip(range(len(logits)), legal, strict=True):
        z = logits[row][allowed]
        e = np.exp(z - z.max())
        out[row][allowed] = e / e.sum()
    return out


def policy_loss_and_gradient(params, feature, action, legal, weight, entropy_weight):
    """Loss of a two-layer ReLU policy and its gradient, derived by hand."""
    w1, b1, w2, b2 = params
    before = feature @ w1 + b1
    hidden = np.maximum(before, 0)
    p = masked_softmax(hidden @ w2 + b2, legal)
    rows = np.arange(len(action))
    log_p = np.log(np.where(p > 0, p, 1))
    entropy = -(p * log_p).sum(1)
    loss = np.mean(-weight * log_p[rows, action] - entropy_weight * entropy)
    one_hot = np.zeros_like(p)
    one_hot[rows, action] = 1
    d_logits = weight[:, None] * (p - one_hot)
    d_logits += entropy_weight * p * (log_p + entropy[:, None])
    d_logits /= len(action)
    d_hidden = (d_logits @ w2.T) * (before > 0)
    gradient = (
        feature.T @ d_hidden,
        d_hidden.sum(0),
        hidden.T @ d_logits,
        d_logits.sum(0),
    )
    return loss, gradient


def full_batch_adam(params, loss_and_gradient, learning_rate, steps):
    """Adam with its usual constants; returns the parameters and the losses met."""
    params = [np.array(p, np.float64) for p in params]
    first = [np.zeros_like(p) for p in params]
    second = [np.zeros_like(p) for p in params]
    losses = []
    for step in range(1, steps + 1):
        loss, gradient = loss_and_gradient(params)
        losses.append(loss)
        for i, g in enumerate(gradient):
            first[i] = 0.9 * first[i] + 0.1 * g
            second[i] = 0.999 * second[i] + 0.001 * g**2
            m = first[i] / (1 - 0.9**step)
            v = second[i] / (1 - 0.999**step)
            params[i] -= learning_rate * m / (np.sqrt(v) + 1e-8)
    return params, losses
