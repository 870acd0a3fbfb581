"""Off-policy evaluation by loops in float64, and a table world whose values are exact.

Imports nothing from jerp. An episode is a list of `(state, action, reward)`; policies
and the world are dense tables.
"""

import itertools
from typing import NamedTuple

import numpy as np


class TableWorld(NamedTuple):
    """`start [S]`, `move [S, A, S + 1]` (the last entry ends), `reward [S, A]`."""

    start: np.ndarray
    move: np.ndarray
    reward: np.ndarray
    horizon: int


def exact_value(world, policy, discount=1.0):
    """By dynamic programming, backwards over the steps that are left."""
    value = np.zeros(len(world.start))
    for _ in range(world.horizon):
        q = world.reward + discount * world.move[..., :-1] @ value
        value = (policy * q).sum(axis=1)
    return float(world.start @ value)


def all_episodes(world, policy):
    """`[(probability, episode)]` of everything that can happen under the policy."""
    found = [(p, (), s) for s, p in enumerate(world.start) if p > 0]
    done = []
    for _ in range(world.horizon):
        fresh = []
        for (p, past, s), a in itertools.product(found, range(policy.shape[1])):
            step = (*past, (s, a, float(world.reward[s, a])))
            for after, chance in enumerate(p * policy[s, a] * world.move[s, a]):
                if chance > 0:
                    end = after == len(world.start)
                    (done if end else fresh).append((chance, step, after))
        found = fresh
    return [(p, episode) for p, episode, _ in done + found]


def weights(episode, behaviour, target):
    """rho up to each step."""
    return np.cumprod([target[s, a] / behaviour[s, a] for s, a, _ in episode])


def importance_sampling(episodes, behaviour, target, kind, horizon, discount=1.0):
    """One number; episodes count alike."""
    rho = [weights(e, behaviour, target) for e in episodes]
    returns = [sum(discount**t * r for t, (_, _, r) in enumerate(e)) for e in episodes]
    last = np.array([w[-1] for w in rho])
    if kind == "ordinary":
        return np.mean(last * returns)
    if kind == "weighted":
        return np.sum(last * returns) / np.sum(last)
    total = 0.0
    for t in range(horizon):
        here = np.array([w[min(t, len(w) - 1)] for w in rho])
        reward = np.array([e[t][2] if t < len(e) else 0.0 for e in episodes])
        count = len(episodes) if kind == "per_decision" else np.sum(here)
        total += discount**t * np.sum(here * reward) / count
    return total


def doubly_robust(episodes, behaviour, target, q, discount=1.0):
    """Jiang and Li's recursion, from the end; `q [S, A]`."""
    found = []
    for episode in episodes:
        value = 0.0
        for s, a, r in reversed(episode):
            v = (target[s] * q[s]).sum()
            value = v + target[s, a] / behaviour[s, a] * (
                r + discount * value - q[s, a]
            )
        found.append(value)
    return np.array(found)


def fitted_q(episodes, target, horizon, counts=None, discount=1.0):
    """`(value, q [S, A])` of the world that the episodes' counts describe."""
    counts = np.ones(len(episodes)) if counts is None else counts
    q = np.zeros(target.shape)
    for _ in range(horizon):
        total, number = np.zeros(q.shape), np.zeros(q.shape)
        for episode, count in zip(episodes, counts, strict=True):
            for t, (s, a, r) in enumerate(episode):
                after = episode[t + 1][0] if t + 1 < len(episode) else None
                ahead = 0.0 if after is None else (target[after] * q[after]).sum()
                total[s, a] += count * (r + discount * ahead)
                number[s, a] += count
        q = np.where(number > 0, total / np.maximum(number, 1e-300), 0.0)
    first = [(target[e[0][0]] * q[e[0][0]]).sum() for e in episodes]
    return float(np.average(first, weights=counts)), q


def policy_value(episodes, task_id, behaviour, target, method, horizon, **settings):
    """By any method; the model of a task's episodes never saw its fold of tasks.

    `settings`: `discount`, and `num_folds` for "doubly_robust"; task i is in fold
    `i % num_folds`.
    """
    num_folds = settings.pop("num_folds", None)
    if method == "fitted_q":
        return fitted_q(episodes, target, horizon, **settings)[0]
    if method != "doubly_robust":
        policies = (episodes, behaviour, target)
        return importance_sampling(*policies, method, horizon, **settings)
    corrected = []
    for fold in range(num_folds):
        inside = [i for i, task in enumerate(task_id) if task % num_folds == fold]
        outside = [i for i, task in enumerate(task_id) if task % num_folds != fold]
        others = [episodes[i] for i in outside]
        _, q = fitted_q(others, target, horizon, **settings)
        own = [episodes[i] for i in inside]
        corrected += [*doubly_robust(own, behaviour, target, q, **settings)]
    return np.mean(corrected)


def regressions(features, action, reward, mask, fold, num_actions, ridge):
    """`{(fold left out or None, action): (inverse [F, F], rewarded [F])}`."""
    size = features.shape[-1]
    found = {}
    for out in [*range(max(fold) + 1), None]:
        for a in range(num_actions):
            gram, rewarded = np.zeros((size, size)), np.zeros(size)
            for e, t in zip(*np.nonzero(mask), strict=True):
                if action[e, t] == a and fold[e] != out:
                    x = np.float64(features[e, t])
                    gram += np.outer(x, x)
                    rewarded += x * reward[e, t]
            added = ridge * np.trace(gram) / size
            found[out, a] = np.linalg.inv(gram + added * np.eye(size)), rewarded
    return found
