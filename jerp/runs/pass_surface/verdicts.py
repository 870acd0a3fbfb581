"""The verdict on each pair of agents in each part, by the rule fixed beforehand.

`jerp.estimators.verdict` has the rule. Here are the counts and intervals it asks for,
all at the largest k and T, and what would have been enough where nothing was shown.
The rule's own intervals are at 95% whatever the level of the bands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.estimators.intervals import paired_difference
from jerp.estimators.student import student_interval
from jerp.estimators.surface import PassSurface
from jerp.estimators.verdict import (
    SEED_LEVEL,
    BoundaryVerdict,
    boundary_test,
    boundary_verdict,
    task_changes,
)
from jerp.records import Interval
from jerp.runs.pass_surface.inputs import Inputs
from jerp.runs.pass_surface.needed import needed
from jerp.runs.pass_surface.numbers import band_lists, plain_lists
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.runs.pass_surface.shared_runs import rows_to_test
from jerp.runs.pass_surface.verdict_words import NAMES, verdict_words
from jerp.typing import Key

__all__ = ["add_verdicts", "num_distinct", "part_key"]

LEAST_JOINT = 10
"""Tasks that both solve; of fewer an interval from resamples is above 0 too easily: of
three where nothing moved in one case of ten, of ten in one of twenty-two."""

_interval = jax.jit(student_interval, static_argnames="level")
_changes = jax.jit(task_changes)


def part_key(settings: PassktSettings, number: int) -> Key:
    """The key that everything random of a part comes from."""
    return jax.random.fold_in(jax.random.key(settings.seed), number)


def add_verdicts(
    settings: PassktSettings,
    inputs: Inputs,
    surfaces: Sequence[PassSurface],
    parts: Sequence[dict[str, Any]],
) -> None:
    """Adds `seeds` and `verdict` to the comparisons of all parts.

    A pair's tests in all parts are one family of Holm's.
    """
    for row, pair in enumerate(inputs.compared):
        two = [surfaces[number] for number in pair]
        seen = []
        for number, part in enumerate(parts):
            kept = np.zeros(len(inputs.tasks), bool)
            kept[part["tasks"]] = True
            key = jax.random.fold_in(part_key(settings, number), len(surfaces) + row)
            stream = 1 + len(inputs.horizons)
            found, seeds = _observed(
                jax.random.fold_in(key, stream), settings, inputs, pair, two, kept
            )
            part["comparisons"][row]["seeds"] = seeds
            seen.append(found)
        for part, found in zip(parts, _judged(settings, inputs, seen), strict=True):
            part["comparisons"][row]["verdict"] = found


def _observed(
    key: Key,
    settings: PassktSettings,
    inputs: Inputs,
    pair: tuple[int, int],
    surfaces: Sequence[PassSurface],
    kept: np.ndarray,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """What one part shows, and the differences of its seeds."""
    solved, solved_by_second = (_solved_at_last(inputs, number) for number in pair)
    gain, loss = kept & solved_by_second & ~solved, kept & solved & ~solved_by_second
    tested, shared = rows_to_test(inputs, pair, kept)
    changes = _changes(gain, loss, cluster=inputs.cluster, mask=tested)
    jointly = kept & solved & solved_by_second
    found = {
        "k": inputs.ks[-1],
        "horizon": inputs.horizons[-1],
        "num_tasks": num_distinct(inputs, kept),
        "gains": int(changes.gains),
        "losses": int(changes.losses),
        "shared_runs": shared,
        "seeds": None,
        "efficiency": _efficiency(key, settings, inputs, surfaces, jointly),
    }
    names, members = _seeds(inputs, kept)
    if len(names) < 2:
        return found, None
    mean = partial(_seed_means, members=members)
    net = mean(gain.astype(np.float32) - loss)
    found["seeds"] = {"values": plain_lists(net), **_limits(net, SEED_LEVEL)}
    first, second = (np.asarray(surface.estimate) for surface in surfaces)
    return found, {
        "names": names,
        "num_tasks": [int(rows.sum()) for rows in members],
        "difference": _limits(mean(second - first), settings.level),
    }


def _solved_at_last(inputs: Inputs, number: int) -> np.ndarray:
    """`[N]` bool, at the largest k and T."""
    agent = inputs.agents[number]
    return agent.solved(inputs.ks[-1], inputs.horizons, inputs.protocol)[:, -1]


def num_distinct(inputs: Inputs, which: np.ndarray) -> int:
    """Tasks that have a row in `which` `[N]`, each once for all its seeds."""
    rows = np.arange(len(which)) if inputs.cluster is None else inputs.cluster
    return len(np.unique(rows[which]))


def _efficiency(
    key: Key,
    settings: PassktSettings,
    inputs: Inputs,
    surfaces: Sequence[PassSurface],
    jointly: np.ndarray,
) -> dict[str, Any]:
    """The difference of Pass@(1, T) on tasks that both agents solve."""
    once = [
        np.asarray(s.num_correct)[:, -1] / np.maximum(s.num_samples, 1)[:, -1]
        for s in surfaces
    ]
    found = paired_difference(
        key,
        once[1],
        once[0],
        cluster=inputs.cluster,
        mask=jointly,
        num_resamples=settings.resamples,
        level=SEED_LEVEL,
    )
    return {"num_tasks": num_distinct(inputs, jointly), **band_lists(found)}


def _seeds(inputs: Inputs, kept: np.ndarray) -> tuple[list[str], list[np.ndarray]]:
    """Names of the training seeds that have a row that counts, and these rows."""
    if inputs.replicate is None:
        return [], []
    names = list(dict.fromkeys(inputs.replicate[kept].tolist()))
    return [str(n) for n in names], [kept & (inputs.replicate == n) for n in names]


def _seed_means(values: np.ndarray, *, members: Sequence[np.ndarray]) -> np.ndarray:
    return np.stack([values[rows].mean(0, dtype=np.float64) for rows in members])


def _limits(values: np.ndarray, level: float) -> dict[str, Any]:
    interval: Interval = _interval(np.float32(values), level=level)
    return band_lists(interval)


@jax.jit
def _rule(
    gains: jax.Array,
    losses: jax.Array,
    mask: jax.Array,
    low: jax.Array,
    high: jax.Array,
    efficiency: jax.Array,
) -> Any:
    test = boundary_test(gains, losses, mask=mask)
    return test, boundary_verdict(
        test, seed_low=low, seed_high=high, efficiency_low=efficiency
    )


def _shown_efficiency(found: dict[str, Any]) -> float | None:
    """The lower limit, if it rests on tasks enough."""
    return found["low"] if found["num_tasks"] >= LEAST_JOINT else None


def _judged(
    settings: PassktSettings, inputs: Inputs, seen: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The tests of a pair in all parts as one family, and what they come to."""
    counted = [found["num_tasks"] > 0 for found in seen]
    limits = [found["seeds"] or {"low": None, "high": None} for found in seen]
    test, verdict = _rule(
        jnp.array([found["gains"] for found in seen]),
        jnp.array([found["losses"] for found in seen]),
        jnp.array(counted),
        *(
            jnp.array([np.nan if x is None else x for x in values], jnp.float32)
            for values in (
                [each["low"] for each in limits],
                [each["high"] for each in limits],
                [_shown_efficiency(found["efficiency"]) for found in seen],
            )
        ),
    )
    judged = []
    for i, found in enumerate(seen):
        name = BoundaryVerdict(int(verdict[i]))
        each = {
            "verdict": NAMES[name],
            **found,
            "num_tests": sum(counted),
            **{
                field: plain_lists(getattr(test, field)[i])
                for field in ("p_up", "p_down", "p_up_holm", "p_down_holm")
            },
        }
        each["needed"] = needed(
            jax.random.fold_in(jax.random.key(settings.seed), len(inputs.parts) + i),
            name,
            each,
            new_questions=inputs.cluster is None,
        )
        judged.append({**each, "words": verdict_words(name, each)})
    return judged
