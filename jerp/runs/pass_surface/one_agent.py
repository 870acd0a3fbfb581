"""The numbers of one agent on the tasks of one part, and what they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jerp.estimators.bands import simultaneous_band
from jerp.estimators.boundary import unsolved_upper_bound
from jerp.estimators.marginal import marginal_horizon, marginal_k, saturation_horizon
from jerp.estimators.surface import PassSurface
from jerp.runs.pass_surface.agents import counted, listed
from jerp.runs.pass_surface.inputs import Inputs
from jerp.runs.pass_surface.numbers import band_lists, plain_lists
from jerp.runs.pass_surface.settings import PassktSettings, number_text
from jerp.typing import Key

__all__ = ["TOLERANCE", "agent_numbers", "left_out", "note_bounds"]

TOLERANCE = 0.01
"""How near to the last horizon's value counts as saturated."""


def agent_numbers(
    key: Key,
    settings: PassktSettings,
    inputs: Inputs,
    surface: PassSurface,
    members: np.ndarray,
    kept: np.ndarray,
) -> dict[str, Any]:
    """One agent's surface and what is read off it.

    Args:
      key: consumed.
      settings: resamples and level.
      inputs: which rows are of one task.
      surface: of the agent.
      members: `[N]` bool, the tasks of the part.
      kept: `[N]` bool, those that count.
    """
    estimate, ks = np.asarray(surface.estimate), surface.ks
    doubled = [k for k in ks if 2 * k in ks]

    def band(stream: int, values: np.ndarray) -> dict[str, Any]:
        # Padded to one shape, so that one compiled program serves all three bands; a
        # cell without spread touches no other.
        rows, columns = values.shape[1:]
        padded = np.zeros_like(estimate)
        padded[:, :rows, :columns] = values
        found = simultaneous_band(
            jax.random.fold_in(key, stream),
            padded,
            cluster=inputs.cluster,
            mask=kept,
            num_resamples=settings.resamples,
            level=settings.level,
        )
        return band_lists(found, np.s_[:rows, :columns])

    found = band(0, estimate)
    mean = np.array(found["point"], np.float32)[:, None]
    return {
        "surface": found,
        **_basis(surface, members),
        "marginal_k": {"ks": doubled, **band(1, _doublings(estimate, ks, doubled))},
        "marginal_horizon": band(2, np.asarray(marginal_horizon(estimate))),
        "saturation_horizon": plain_lists(
            saturation_horizon(mean, surface.horizons, tolerance=TOLERANCE)
        ),
        "unsolved": _unsolved(settings, surface, kept),
    }


def _doublings(
    estimate: np.ndarray, ks: Sequence[int], doubled: Sequence[int]
) -> np.ndarray:
    """`[N, D, H]`, what each doubling adds; the grid may have other steps as well."""
    steps = [
        marginal_k(estimate[:, [ks.index(k), ks.index(2 * k)]], (k, 2 * k))
        for k in doubled
    ]
    return np.concatenate([estimate[:, :0], *steps], axis=1)


def _basis(surface: PassSurface, members: np.ndarray) -> dict[str, Any]:
    """What the part's tasks rest on, those that are left out included."""
    samples = np.asarray(surface.num_samples)[members]
    broken = np.asarray(surface.num_infrastructure)[members]
    low, high = (np.asarray(x)[members] for x in (surface.low, surface.high))
    bounded = ~np.isnan(low).any((1, 2))
    every = samples + broken

    def mean(bound: np.ndarray) -> Any:
        shape = bound.shape[1:]
        whole = bound[bounded].astype(np.float64)
        return plain_lists(whole.mean(0) if len(whole) else np.full(shape, np.nan))

    return {
        "bounds": {
            "num_tasks": int(bounded.sum()),
            "low": mean(low),
            "high": mean(high),
        },
        "samples": {"least": int(every.min()), "most": int(every.max())},
        "coverage": plain_lists(samples.sum(0) / np.maximum(every.sum(0), 1)),
        "num_infrastructure": plain_lists(broken.sum(0)),
    }


def _unsolved(
    settings: PassktSettings, surface: PassSurface, kept: np.ndarray
) -> dict[str, Any]:
    """Tasks without a success, and what the least sampled of them may still be."""
    never = np.asarray(surface.num_correct == 0) & kept[:, None]
    bound = np.asarray(unsolved_upper_bound(surface.num_samples, level=settings.level))
    largest = np.where(never, bound, -np.inf).max(0)
    return {
        "num_tasks": plain_lists(never.sum(0)),
        "bound": plain_lists(np.where(never.any(0), largest, np.nan)),
    }


def left_out(
    inputs: Inputs,
    surface: PassSurface,
    members: np.ndarray,
    about: str,
    notes: list[str],
) -> dict[str, list[str]]:
    """Names of tasks without an estimate in some cell, by the reason."""
    coverage = np.asarray(surface.coverage)
    refused = ~(coverage >= np.float32(surface.min_coverage)).all(1)
    whole = ~np.isnan(np.asarray(surface.estimate)).any((1, 2))
    reasons = {
        "coverage": (
            refused & members,
            f"a coverage under {number_text(surface.min_coverage)} (--min-coverage)",
        ),
        "samples": (
            ~whole & ~refused & members,
            f"fewer than {inputs.ks[-1]} valid samples",
        ),
    }
    names = {}
    for reason, (which, words) in reasons.items():
        names[reason] = [inputs.tasks[i] for i in np.flatnonzero(which)]
        if names[reason]:
            notes.append(
                f"{about}: {len(names[reason])} of "
                f"{counted(int(members.sum()), 'task')} left out for {words}: "
                f"{listed(names[reason])}"
            )
    return names


def note_bounds(
    inputs: Inputs,
    numbers: dict[str, Any],
    num_kept: int,
    settings: PassktSettings,
    about: str,
    notes: list[str],
) -> None:
    """Notes the widest pair of bounds, if the infrastructure could have moved any."""
    bounds = numbers["bounds"]
    low, high = (np.array(bounds[name], float) for name in ("low", "high"))
    width = np.nan_to_num(high - low)
    if width.max() < 1e-6:
        return
    i, j = np.unravel_index(width.argmax(), width.shape)
    point = numbers["surface"]["point"][i][j]
    shown = "undefined" if point is None else f"{point:.3f}"
    if bounds["num_tasks"] != num_kept:
        shown += f" (bounds over {bounds['num_tasks']} tasks, estimate over {num_kept})"
    notes.append(
        f"{about}: infrastructure runs leave Pass@({inputs.ks[i]}, "
        f"{number_text(inputs.horizons[j])} {settings.unit}) between {low[i, j]:.3f} "
        f"and {high[i, j]:.3f}; the estimate is {shown}"
    )
