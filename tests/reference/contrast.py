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
            beside = [*references, *(won if met(won, lost, s) else [])]
            wins = [last_moves(t[3])[s] for t in beside if s in last_moves(t[3])]
            gain, z = compared(wins, fails, m)
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


def compared(wins, fails, m):
    """Of one table of two rows, with the variance of a draw without replacement."""
    number, made = len(wins) + len(fails), wins.count(m) + fails.count(m)
    if not (wins and fails):
        return 0.0, 0.0
    gain = wins.count(m) / len(wins) - fails.count(m) / len(fails)
    expected = len(wins) * made / number
    share = made / number
    variance = len(wins) * share * (1 - share) * len(fails) / (number - 1)
    z = (wins.count(m) - expected) / math.sqrt(variance) if 0 < made < number else 0.0
    return gain, z
