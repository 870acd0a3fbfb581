"""From aligned runs to the numbers of `results.json`, documented in docs/passkt.md.

Every number is an estimator's; here tasks are chosen, keys are dealt out and arrays
become lists. What is undefined is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

import jerp
from jerp.errors import InputError
from jerp.estimators.surface import PassSurface, pass_at_k_t
from jerp.runs.pass_surface.agents import Agent
from jerp.runs.pass_surface.comparison import comparison
from jerp.runs.pass_surface.inputs import Inputs
from jerp.runs.pass_surface.numbers import plain_lists
from jerp.runs.pass_surface.one_agent import (
    TOLERANCE,
    agent_numbers,
    left_out,
    note_bounds,
)
from jerp.runs.pass_surface.settings import PassktSettings, command
from jerp.runs.pass_surface.verdicts import add_verdicts, num_distinct, part_key

__all__ = ["FORMAT", "VERSION", "analyse"]

FORMAT = "jerp passkt"
VERSION = 2

_ANNOUNCED = {"yes": True, "no": False, "unknown": None, "auto": None}


def analyse(settings: PassktSettings, inputs: Inputs) -> dict[str, Any]:
    """All numbers of all parts, JSON-able.

    Raises:
      InputError: every task is left out.
    """
    notes = list(inputs.notes)
    surfaces = [_surface(settings, inputs, agent) for agent in inputs.agents]
    parts = [
        _part(settings, inputs, surfaces, number, notes)
        for number in range(len(inputs.parts))
    ]
    if not any(part["num_kept"] for part in parts):
        raise InputError("no task is left to estimate from: " + "; ".join(notes))
    add_verdicts(settings, inputs, surfaces, parts)
    return {
        "format": FORMAT,
        "version": VERSION,
        "jerp": jerp.__version__,
        "command": command(settings),
        "files": settings.file_names,
        "settings": _recorded(settings, inputs),
        "ks": list(inputs.ks),
        "horizons": list(inputs.horizons),
        "notes": notes,
        "tasks": list(inputs.tasks),
        "replicate": None
        if inputs.replicate is None
        else [*map(str, inputs.replicate)],
        "agents": [
            _counts(agent, surface)
            for agent, surface in zip(inputs.agents, surfaces, strict=True)
        ],
        "parts": parts,
    }


def _recorded(settings: PassktSettings, inputs: Inputs) -> dict[str, Any]:
    return {
        "by": settings.by,
        "replicates": settings.replicates,
        "protocol": inputs.protocol,
        "announced": _ANNOUNCED[settings.announced],
        "unit": settings.unit,
        "min_coverage": settings.min_coverage,
        "level": settings.level,
        "resamples": settings.resamples,
        "seed": settings.seed,
        "tolerance": TOLERANCE,
    }


def _counts(agent: Agent, surface: PassSurface) -> dict[str, Any]:
    return {
        "label": agent.label,
        "tasks_alone": list(agent.alone),
        "num_samples": plain_lists(surface.num_samples),
        "num_correct": plain_lists(surface.num_correct),
        "num_infrastructure": plain_lists(surface.num_infrastructure),
    }


def _surface(settings: PassktSettings, inputs: Inputs, agent: Agent) -> PassSurface:
    return pass_at_k_t(
        agent.runs.spent,
        agent.runs.outcome,
        mask=agent.runs.mask,
        ks=inputs.ks,
        horizons=inputs.horizons,
        protocol=inputs.protocol,
        announced=_ANNOUNCED[settings.announced],
        min_coverage=settings.min_coverage,
        unit=settings.unit,
    )


def _part(
    settings: PassktSettings,
    inputs: Inputs,
    surfaces: Sequence[PassSurface],
    number: int,
    notes: list[str],
) -> dict[str, Any]:
    """The numbers of the tasks of one part; a task counts with all agents or none."""
    name, members = inputs.parts[number]
    key = part_key(settings, number)
    whole = [~np.isnan(surface.estimate).any((1, 2)) for surface in surfaces]
    kept = members & np.logical_and.reduce(whole)
    agents = []
    for row, (agent, surface) in enumerate(zip(inputs.agents, surfaces, strict=True)):
        about = agent.label if name is None else f"{agent.label}, {name}"
        missing = left_out(inputs, surface, members, about, notes)
        numbers = agent_numbers(
            jax.random.fold_in(key, row), settings, inputs, surface, members, kept
        )
        note_bounds(inputs, numbers, int(kept.sum()), settings, about, notes)
        agents.append({"label": agent.label, "left_out": missing, **numbers})
    return {
        "name": name,
        "num_tasks": int(members.sum()),
        "num_kept": int(kept.sum()),
        "num_distinct": num_distinct(inputs, kept),
        "tasks": np.flatnonzero(kept).tolist(),
        "agents": agents,
        "comparisons": [
            comparison(
                jax.random.fold_in(key, len(surfaces) + row),
                settings,
                inputs,
                pair,
                surfaces,
                kept,
            )
            for row, pair in enumerate(inputs.compared)
        ],
    }
