"""The fitted simulator's values by plain dictionaries; imports nothing from jerp.

An episode is a list of steps `(key0, key1, key2, key3, action, legal)` and how it
ended: `("submit", score)` or `("cut", score)`. Keys are the four levels, finest first.
"""

from collections import defaultdict
from functools import cache

STATUS = ("has_draft", "coverage", "missing_share", "support")


def keyed(difficulty, steps):
    """`steps`: dicts of status, `legal`, `action` and `call`; adds the four keys."""
    calls, made, out = 0, None, []
    for step in steps:
        legal = tuple(step["legal"])
        known = tuple(round(step[name], 2) for name in STATUS)
        facts = round(step["findings"], 2)
        fine = (round(step["draft_length"], 1), round(step["error_share"], 1), made)
        middle = (difficulty, legal, calls, facts, known)
        coarse = (legal, calls, tuple(int(x) for x in known))
        out.append(
            (
                middle + fine,
                middle,
                (difficulty, coarse),
                coarse,
                step["action"],
                legal,
            )
        )
        if step["call"]:
            calls, made = calls + 1, (legal, facts)
    return out


def fit(episodes, *, min_count):
    """`(state of each step, pools, keys of each state)`; a pool is a list of (b, t)."""
    counts = [defaultdict(int) for _ in range(4)]
    for steps, _ in episodes:
        for step in steps:
            for level in range(4):
                counts[level][step[level]] += 1
    state = {}
    pools = [defaultdict(list) for _ in range(4)]
    coarser = {}
    for b, (steps, (ending, _)) in enumerate(episodes):
        for t, step in enumerate(steps):
            level = next(
                (i for i in (0, 1) if counts[i][step[i]] >= min_count),
                2,
            )
            state[b, t] = (level, step[level])
            coarser.setdefault(state[b, t], step[1:4])
            if t == len(steps) - 1 and ending == "cut":
                continue
            pools[0][state[b, t], step[4]].append((b, t))
            for i in (1, 2, 3):
                pools[i][step[i], step[4]].append((b, t))
    return state, pools, coarser


def values(episodes, policy, *, min_count, max_steps, difficulty):
    """Mean score, steps, unsupported steps by difficulty; `policy(t, step)`: dict."""
    state, pools, coarser = fit(episodes, min_count=min_count)
    cuts = [score for _, (ending, score) in episodes if ending == "cut"]
    cut = (sum(cuts) / len(cuts) if cuts else 0.0, 0.0, 0.0)

    def pool(where, action):
        own = pools[0][where, action]
        for i, key in enumerate(coarser[where]):
            own = own or pools[i + 1][key, action]
        return own, not pools[0][where, action]

    @cache
    def value(t, b, i):
        if t == max_steps:
            return cut
        total = [0.0, 0.0, 0.0]
        for action, prob in policy(t, episodes[b][0][i]).items():
            mean, borrowed = after(t, state[b, i], action)
            gains = (mean[0], mean[1] + 1, mean[2] + borrowed)
            total = [x + prob * gain for x, gain in zip(total, gains, strict=True)]
        return tuple(total)

    @cache
    def after(t, where, action):
        rows, borrowed = pool(where, action)
        if not rows:
            return cut, borrowed
        following = []
        for b, i in rows:
            steps, (_, score) = episodes[b]
            last = i == len(steps) - 1
            following.append((score, 0.0, 0.0) if last else value(t + 1, b, i + 1))
        return [sum(x) / len(rows) for x in zip(*following, strict=True)], borrowed

    out = defaultdict(list)
    for b, level in enumerate(difficulty):
        out[level].append(value(0, b, 0))
    return {
        level: [sum(x) / len(starts) for x in zip(*starts, strict=True)]
        for level, starts in out.items()
    }
