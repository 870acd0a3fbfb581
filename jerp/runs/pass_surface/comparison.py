"""Two of the agents on the same tasks, paired: the second against the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jerp.estimators.bands import simultaneous_band
from jerp.estimators.boundary import boundary_change
from jerp.estimators.crossing import crossing_k
from jerp.estimators.surface import PassSurface
from jerp.runs.pass_surface.inputs import Inputs
from jerp.runs.pass_surface.numbers import band_lists, plain_lists
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.typing import Key

__all__ = ["comparison"]


def comparison(
    key: Key,
    settings: PassktSettings,
    inputs: Inputs,
    pair: tuple[int, int],
    surfaces: Sequence[PassSurface],
    kept: np.ndarray,
) -> dict[str, Any]:
    """Difference, changes of the capability boundary and crossings, at every T.

    Args:
      key: consumed.
      settings: resamples and level.
      inputs: names of the tasks, and the budgets.
      pair: which agent is the first, and which the second.
      surfaces: of all agents.
      kept: `[N]` bool, the tasks that count.
    """
    labels = [inputs.agents[number].label for number in pair]
    surfaces = [surfaces[number] for number in pair]
    first, second = (np.asarray(surface.estimate) for surface in surfaces)
    resampling = {
        "cluster": inputs.cluster,
        "mask": kept,
        "num_resamples": settings.resamples,
        "level": settings.level,
    }
    difference = simultaneous_band(
        jax.random.fold_in(key, 0), second - first, **resampling
    )
    rows = _boundary(inputs, pair, kept)
    for j, row in enumerate(rows):
        stream = jax.random.fold_in(key, 1 + j)
        ends = (first[:, :, j], second[:, :, j])
        row["crossing_k"] = _crossing(stream, ends, inputs.ks, resampling)
    return {
        "first": pair[0],
        "second": pair[1],
        "first_label": labels[0],
        "second_label": labels[1],
        "difference": band_lists(difference),
        "boundary": rows,
    }


def _crossing(
    key: Key,
    pair: tuple[np.ndarray, np.ndarray],
    ks: Sequence[int],
    resampling: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Where the two curves over k cross; None of a single k."""
    if len(ks) < 2:
        return None
    found = crossing_k(key, *pair, ks, **resampling)
    return {
        **band_lists(found.k),
        "share": plain_lists(found.share),
        "direction": plain_lists(found.direction),
        "count": plain_lists(found.count),
    }


def _boundary(
    inputs: Inputs, pair: tuple[int, int], kept: np.ndarray
) -> list[dict[str, Any]]:
    """Who solves what in the largest k runs, a row a horizon, with McNemar and Holm.

    Of both agents as many runs count: whoever has more solves more by that alone.
    """
    first, second = (
        inputs.agents[number].solved(inputs.ks[-1], inputs.horizons, inputs.protocol)
        for number in pair
    )
    change = jax.tree.map(np.asarray, boundary_change(first, second, mask=kept))

    def names(which: np.ndarray) -> list[str]:
        return [inputs.tasks[i] for i in np.flatnonzero(which & kept)]

    return [
        {
            "horizon": horizon,
            "both": int(change.both[j]),
            "gains": int(change.gains[j]),
            "losses": int(change.losses[j]),
            "neither": int(change.neither[j]),
            "p_value": plain_lists(change.p_value[j]),
            "p_holm": plain_lists(change.p_holm[j]),
            "gained": names(second[:, j] & ~first[:, j]),
            "lost": names(first[:, j] & ~second[:, j]),
        }
        for j, horizon in enumerate(inputs.horizons)
    ]
