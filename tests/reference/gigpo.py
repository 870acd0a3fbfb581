"""GiGPO by dicts, loops and float64; imports nothing from jerp.

An episode is `(group, task, [(anchor, reward), ...])`, without padding.
"""

import math
from collections import defaultdict


def spread(values, weights, scale, ddof, everything):
    """What the members of a group are divided by, before epsilon; None for nothing."""
    if scale == "none":
        return None
    if scale == "batch_std":
        values, weights = everything, [1.0] * len(everything)
    total = sum(weights)
    mean = sum(w * v for w, v in zip(weights, values, strict=True)) / total
    if scale == "max":
        return max(abs(v - mean) for v in values)
    squares = sum(w * (v - mean) ** 2 for w, v in zip(weights, values, strict=True))
    return math.sqrt(squares / (total - ddof)) if total > ddof else 0.0


def relative(members, scale, ddof, epsilon):
    """`{name: advantage}` of `{name: (group, value, weight)}`."""
    groups = defaultdict(list)
    for group, value, weight in members.values():
        groups[group].append((value, weight))
    everything = [value for _, value, _ in members.values()]
    advantages = {}
    for name, (group, value, _) in members.items():
        values, weights = zip(*groups[group], strict=True)
        if max(values) == min(values):
            advantages[name] = 0.0
            continue
        total = sum(w * v for w, v in zip(weights, values, strict=True))
        divisor = spread(values, weights, scale, ddof, everything)
        divisor = 1.0 if divisor is None else divisor + epsilon
        advantages[name] = (value - total / sum(weights)) / divisor
    return advantages


def returns_to_go(rewards, discount):
    later, found = 0.0, []
    for reward in reversed(rewards):
        later = float(reward) + discount * later
        found.insert(0, later)
    return found


def gigpo(
    episodes,
    discount=0.95,
    step_weight=1.0,
    episode_scale="std",
    step_scale="std",
    weighting="trajectory",
    ddof=0,
    epsilon=1e-6,
):
    """`(total, episode, step)`, each a list of lists as long as the episodes."""
    whole, single = {}, {}
    for i, (group, task, steps) in enumerate(episodes):
        rewards = [reward for _, reward in steps]
        if not steps:
            continue
        weight = float(len(steps)) if weighting == "step" else 1.0
        whole[i] = (group, sum(map(float, rewards)), weight)
        to_go = returns_to_go(rewards, discount)
        for t, ((anchor, _), value) in enumerate(zip(steps, to_go, strict=True)):
            single[i, t] = ((task, anchor), value, 1.0)
    of_episode = relative(whole, episode_scale, ddof, epsilon)
    of_step = relative(single, step_scale, ddof, epsilon)
    episode = [[of_episode[i]] * len(e[2]) for i, e in enumerate(episodes) if e[2]]
    step = [
        [of_step[i, t] for t in range(len(e[2]))]
        for i, e in enumerate(episodes)
        if e[2]
    ]
    total = [
        [a + step_weight * b for a, b in zip(x, y, strict=True)]
        for x, y in zip(episode, step, strict=True)
    ]
    return total, episode, step


def group_sizes(episodes):
    sizes = defaultdict(int)
    for _, task, steps in episodes:
        for anchor, _ in steps:
            sizes[task, anchor] += 1
    return list(sizes.values())
