"""From an order of jobs to start and end times, and what they violate.

Crews take the jobs in the given order: a job starts as soon as a crew is free and the
jobs that must come before it, as far as they are placed already, have ended. No more
jobs run at once than there are crews, by construction; rules and deadlines can break.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

__all__ = [
    "Span",
    "late_jobs",
    "parse_order",
    "rules_broken",
    "schedule",
    "sorted_rules",
]


class Span(NamedTuple):
    """Hours at which a job starts and ends, counted from 0."""

    start: int
    end: int


def parse_order(jobs: Sequence[str], text: str) -> tuple[str, ...] | None:
    """The jobs in the order of `text`, None unless each is named exactly once.

    Args:
      jobs: all that there are.
      text: whatever the executor wrote; other words are passed over.
    """
    named = tuple(w for w in re.findall(r"[a-z]+", text.lower()) if w in jobs)
    return named if sorted(named) == sorted(jobs) else None


def schedule(plan: Mapping[str, Any], order: Sequence[str]) -> dict[str, Span]:
    """Start and end of every job.

    Args:
      plan: `rules` (pairs: the first ends before the second starts), `hours` by job,
        `crews`.
      order: every job once.
    """
    free = [0] * plan["crews"]
    spans: dict[str, Span] = {}
    for job in order:
        before = [first for first, then in plan["rules"] if then == job]
        ready = max((spans[first].end for first in before if first in spans), default=0)
        crew = min(range(len(free)), key=free.__getitem__)
        start = max(free[crew], ready)
        free[crew] = start + plan["hours"][job]
        spans[job] = Span(start, free[crew])
    return spans


def rules_broken(
    plan: Mapping[str, Any], order: Sequence[str]
) -> list[tuple[str, str]]:
    """Rules whose second job starts before the first has ended, as listed."""
    spans = schedule(plan, order)
    return [(a, b) for a, b in plan["rules"] if spans[b].start < spans[a].end]


def late_jobs(plan: Mapping[str, Any], order: Sequence[str]) -> list[str]:
    """Jobs that end after their deadline, by name."""
    spans = schedule(plan, order)
    return sorted(
        job for job, hour in plan["deadlines"].items() if spans[job].end > hour
    )


def sorted_rules(plan: Mapping[str, Any], *, due: bool) -> list[tuple[str, str]]:
    """The rules along an order that keeps them: each after those it builds on.

    Args:
      plan: see `schedule`.
      due: the deadlines are known, so that the order keeps them too.
    """
    order = next(
        order
        for order in permutations(plan["jobs"])
        if not rules_broken(plan, order) and not (due and late_jobs(plan, order))
    )
    place = {job: number for number, job in enumerate(order)}
    return sorted(
        ((first, then) for first, then in plan["rules"]),
        key=lambda rule: (place[rule[1]], place[rule[0]]),
    )
