"""Tasks of the planning domain: four jobs, rules on their order, crews, a deadline.

At difficulty 0 the rules are listed along the only order that keeps them; at difficulty
1 they are shuffled and partly worded backwards; at difficulty 2 they leave several
orders open, of which two crews meet the deadline of one job by some alone. Neither the
listed nor the alphabetical order of the jobs, forwards or backwards, keeps the rules.
"""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

from jerp.domains.controlled.planning_schedule import late_jobs, rules_broken
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["generate"]

NUM_DIFFICULTIES = 3
NUM_JOBS = 4
BACKWARDS_SHARE = 0.5
"""How often a rule of difficulty 1 and 2 names the later job first."""

TRADES = {
    "workshop": ("saw", "sand", "glue", "paint", "varnish", "drill", "pack", "polish"),
    "kitchen": ("wash", "peel", "boil", "mash", "season", "plate", "chop", "stir"),
    "garden": ("dig", "rake", "sow", "water", "weed", "prune", "mow", "fence"),
    "print shop": ("write", "edit", "print", "fold", "bind", "trim", "stamp", "ship"),
    "camp": ("pitch", "fetch", "cook", "swim", "row", "climb", "map", "rest"),
    "laundry": ("sort", "soak", "rinse", "spin", "iron", "mend", "hang", "stack"),
}


def generate(seed: int, num_tasks: int) -> tuple[Task, ...]:
    """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
    if num_tasks < 1:
        raise ConfigError(f"num_tasks: expected >= 1, got {num_tasks}")
    return tuple(_task(seed, number) for number in range(num_tasks))


def _task(seed: int, number: int) -> Task:
    difficulty = number % NUM_DIFFICULTIES
    rng = Random(f"planning/{seed}/{number}")
    payload = None
    while payload is None:
        payload = _payload(rng, difficulty)
    listed = ", ".join(payload["jobs"])
    return Task(
        key=f"planning/{seed}/{number:04d}",
        domain="planning",
        difficulty=difficulty,
        prompt=f"Put the jobs of the {payload['trade']} in order: {listed}.",
        payload=payload,
    )


def _payload(rng: Random, difficulty: int) -> dict[str, Any] | None:
    """One draw of a plan, or None where a fixed order or any order would do."""
    trade = rng.choice(sorted(TRADES))
    order = rng.sample(TRADES[trade], NUM_JOBS)
    a, b, c, d = order
    if difficulty < 2:
        rules = [(a, b), (b, c), (c, d)]
    else:
        rules = [(a, b), rng.choice([(a, c), (b, c)]), rng.choice([(a, d), (b, d)])]
    words = []
    if difficulty:
        rng.shuffle(rules)
    for first, then in rules:
        backwards = difficulty > 0 and rng.random() < BACKWARDS_SHARE
        words.append(f"{then} after {first}" if backwards else f"{first} before {then}")
    payload = {
        "trade": trade,
        "jobs": rng.sample(order, NUM_JOBS),
        "rules": [list(rule) for rule in rules],
        "words": words,
        "hours": {job: rng.randint(1, 4) for job in order},
        "crews": 2 if difficulty == 2 else 1,
        "deadlines": {},
    }
    if difficulty == 2 and not _set_deadline(rng, payload):
        return None
    jobs, ordered = payload["jobs"], sorted(order)
    fixed = (jobs, jobs[::-1], ordered, ordered[::-1])
    return payload if all(rules_broken(payload, o) for o in fixed) else None


def _set_deadline(rng: Random, payload: dict[str, Any]) -> bool:
    """Sets the tightest deadline of a job that some order meets and some does not."""
    kept = [o for o in permutations(payload["jobs"]) if not rules_broken(payload, o)]
    for job in rng.sample(payload["jobs"], NUM_JOBS):
        for hour in range(1, 4 * NUM_JOBS):
            payload["deadlines"] = {job: hour}
            met = sum(not late_jobs(payload, order) for order in kept)
            if 0 < met < len(kept):
                return True
            if met:
                break
    return False
