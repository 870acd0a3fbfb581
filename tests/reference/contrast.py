"""How successes and failures left situations, with loops and dicts."""

import math
from collections import defaultdict

INFRASTRUCTURE = 4


def last_moves(steps):
    """Of `(anchor, situation, move)`; situation 0 is none."""
    return {situation: move for _, situation, move in steps if situation}


def contrast(trials, references, num_situations, num_moves):
    """Rows are `(success, outcome, task, steps)`; a dict by (situation, move)."""
    trials = [t for t in trials if t[1] != INFRASTRUCTURE]
    references = [t for t in references if t[1] != INFRASTRUCTURE and t[0]]
    won = [t for t in trials if t[0]]
    lost = [t for t in trials if not t[0]]
    found = {}
    for s in range(1, num_situations):
        for m in range(num_moves):
            support, share, tasks = successes([*won, *references], s, m)
            fails = [last_moves(t[3])[s] for t in lost if s in last_moves(t[3])]
            strata = [(references, True), (won, met(won, lost, s))]
            gain, z = compared(fails, strata, s, m)
            found[s, m] = (support, share, tasks, fails.count(m), gain, z)
    return found


def successes(rows, s, m):
    by_task = defaultdict(list)
    for _, _, task, steps in rows:
        left = last_moves(steps)
        if s in left:
            by_task[task].append(left[s] == m)
    parts = [sum(made) / len(made) for made in by_task.values()]
    support = sum(map(sum, by_task.values()))
    share = sum(parts) / len(parts) if parts else 0.0
    return support, share, sum(part > 0.5 for part in parts)


def met(won, lost, s):
    def states(rows):
        return {(t[2], step[0]) for t in rows for step in t[3] if step[1] == s}

    return bool(states(won) & states(lost))


def compared(fails, strata, s, m):
    total = weight = variance = 0.0
    for rows, counts in strata:
        wins = [last_moves(t[3])[s] for t in rows if s in last_moves(t[3])]
        if not (counts and wins and fails):
            continue
        number = len(wins) + len(fails)
        pairs = len(wins) * len(fails) / number
        part = (wins.count(m) + fails.count(m)) / number
        gap = wins.count(m) / len(wins) - fails.count(m) / len(fails)
        total += pairs * gap
        weight += pairs
        variance += pairs * part * (1 - part) * number / (number - 1)
    gain = total / weight if weight else 0.0
    return gain, total / math.sqrt(variance) if variance > 1e-12 else 0.0
