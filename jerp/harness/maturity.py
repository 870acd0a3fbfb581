"""Harness Maturity Score (HMS): how an episode was worked, not what it scored.

A weighted share of the process events that fired (`jerp.harness.events`): six count +1,
the penalty EarlySubmit counts -1. Measured after the fact on the host, never a reward.
The score hangs on its thresholds, so they are arguments, and a `threshold_sensitivity`
belongs beside every table.

Reference: arXiv 2607.05458 and its released code.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, get_args

from jerp.errors import ConfigError, UnknownNameError
from jerp.harness.events import EVENTS, Event, MaturityThresholds, process_events
from jerp.records import ProcessStep, ProcessTrace

__all__ = [
    "EVENT_WEIGHTS",
    "Event",
    "Maturity",
    "MaturityThresholds",
    "Normalisation",
    "maturity",
    "maturity_score",
    "threshold_sensitivity",
]

EVENT_WEIGHTS: Mapping[str, float] = {
    name: -1.0 if name == "EarlySubmit" else 1.0 for name in EVENTS
}

Normalisation = Literal["attainable", "released"]


@dataclass(frozen=True)
class Maturity:
    """What `maturity` found.

    Attributes:
      events: name to `Event`, in the order of `EVENTS`.
      score: the Harness Maturity Score; NaN where nothing is applicable.
      useless_runs: runs of one call with the same arguments that learned nothing new.
      useless_steps: steps of such runs after each run's first.
      cost: total, in the units of the trace.
      cost_overrun: the cost is above `cost_factor` times the budget.
    """

    events: Mapping[str, Event]
    score: float
    useless_runs: int
    useless_steps: int
    cost: float
    cost_overrun: bool


def maturity(
    trace: ProcessTrace,
    *,
    thresholds: MaturityThresholds | None = None,
    weights: Mapping[str, float] | None = None,
    normalisation: Normalisation = "attainable",
) -> Maturity:
    """Process maturity of one episode.

    Args:
      trace: the episode. One without steps has no event fired.
      thresholds: None takes the defaults of `MaturityThresholds`.
      weights: overrides of `EVENT_WEIGHTS` by event name.
      normalisation: see `maturity_score`; the released code's is "released".

    Returns:
      `Maturity`.
    """
    thresholds = thresholds or MaturityThresholds()
    events = process_events(trace, thresholds)
    runs, steps = _useless_repeats(trace.steps)
    cost = math.fsum(step.cost for step in trace.steps)
    return Maturity(
        events=events,
        score=maturity_score(events, weights=weights, normalisation=normalisation),
        useless_runs=runs,
        useless_steps=steps,
        cost=cost,
        cost_overrun=cost > thresholds.cost_factor * trace.cost_budget,
    )


def maturity_score(
    events: Mapping[str, Event],
    *,
    weights: Mapping[str, float] | None = None,
    normalisation: Normalisation = "attainable",
) -> float:
    """Weighted share of the applicable events that fired.

        HMS = sum_applicable w fired / Z
        released:   Z = sum_applicable |w|, penalties included, so that a perfect
                    episode with m other events gets m / (m + 1), never 1
        attainable: Z = sum_applicable max(w, 0), so that it gets 1

    Args:
      events: name to `Event`.
      weights: overrides of `EVENT_WEIGHTS` by event name.
      normalisation: "attainable" or "released".

    Returns:
      At most 1; NaN where Z is 0. Tasks with other applicable events have another
      scale: compare within tasks.

    Example:
      >>> seen = {"ValidToolUse": Event(True, True), "EarlySubmit": Event(True, False)}
      >>> maturity_score(seen), maturity_score(seen, normalisation="released")
      (1.0, 0.5)
    """
    if normalisation not in get_args(Normalisation):
        raise UnknownNameError("normalisation", normalisation, get_args(Normalisation))
    for name in weights or {}:
        if name not in EVENT_WEIGHTS:
            raise UnknownNameError("event", name, EVENT_WEIGHTS)
    weight = {**EVENT_WEIGHTS, **(weights or {})}
    applicable = [name for name, event in events.items() if event.applicable]
    total = sum(weight[name] for name in applicable if events[name].fired)
    if normalisation == "released":
        scale = sum(abs(weight[name]) for name in applicable)
    else:
        scale = sum(max(weight[name], 0.0) for name in applicable)
    return total / scale if scale else math.nan


def threshold_sensitivity(
    traces: Sequence[ProcessTrace],
    *,
    name: str,
    values: Sequence[float],
    thresholds: MaturityThresholds | None = None,
    weights: Mapping[str, float] | None = None,
    normalisation: Normalisation = "attainable",
) -> tuple[tuple[float, tuple[float, ...]], ...]:
    """HMS of the same episodes while one threshold moves.

    Args:
      traces: episodes.
      name: field of `MaturityThresholds` to move.
      values: what it takes in turn.
      thresholds: the others; None takes the defaults.
      weights: see `maturity_score`.
      normalisation: see `maturity_score`.

    Returns:
      `(value, one score an episode)` for each value, ready for a paired interval.
    """
    known = [field.name for field in fields(MaturityThresholds)]
    if name not in known:
        raise UnknownNameError("threshold", name, known)
    if not values:
        raise ConfigError(f"values: expected at least one value of {name}, got none")

    def score(trace: ProcessTrace, moved: MaturityThresholds) -> float:
        events = process_events(trace, moved)
        return maturity_score(events, weights=weights, normalisation=normalisation)

    base = thresholds or MaturityThresholds()
    settings = [replace(base, **{name: value}) for value in values]
    return tuple(
        (value, tuple(score(trace, moved) for trace in traces))
        for value, moved in zip(values, settings, strict=True)
    )


def _useless_repeats(steps: Sequence[ProcessStep]) -> tuple[int, int]:
    """Runs of one call that bring no fact after their first step; steps so wasted."""
    runs = wasted = start = 0
    for end in range(1, len(steps) + 1):
        if end < len(steps) and _same_call(steps[start], steps[end]):
            continue
        repeats = steps[start + 1 : end]
        if repeats and not any(step.new_facts for step in repeats):
            runs, wasted = runs + 1, wasted + len(repeats)
        start = end
    return runs, wasted


def _same_call(a: ProcessStep, b: ProcessStep) -> bool:
    return (a.action, a.arguments) == (b.action, b.arguments)
