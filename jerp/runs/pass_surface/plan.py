"""`jerp passkt plan`: is an expansion of this size seen, and what would show it?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

import jerp
from jerp.estimators.changes import expected_changes
from jerp.estimators.power import (
    boundary_power,
    questions_for_power,
    samples_for_power,
)
from jerp.estimators.verdict import ALPHA, SEED_LEVEL
from jerp.runs.pass_surface.agents import counted
from jerp.runs.pass_surface.plan_settings import (
    MOST_QUESTIONS,
    MOST_SAMPLES,
    PlanSettings,
    check_plan,
    plan_command,
)
from jerp.storage.documents import write_json

__all__ = ["FORMAT", "VERSION", "plan", "render_plan"]

FORMAT, VERSION = "jerp passkt plan", 1

STUDIES = 100_000
"""Drawn for each power, if there are several training seeds."""

MULTIPLES = (0.5, 1, 2, 4, 8)


def plan(settings: PlanSettings) -> dict[str, Any]:
    """All numbers of a plan, JSON-able; in a file too, if the settings name one.

    Raises:
      ConfigError: a setting is wrong.
      OSError: the file cannot be written.
    """
    check_plan(settings)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "jerp": jerp.__version__,
        "command": plan_command(settings),
        "settings": {
            name: value for name, value in vars(settings).items() if name != "json"
        },
        **_numbers(settings),
    }
    if settings.json is not None:
        write_json(settings.json, document)
    return document


def _numbers(settings: PlanSettings) -> dict[str, Any]:
    new, rare = settings.new_rate, settings.rare_rate
    rest = max(1 - settings.expansion - settings.loss - settings.rare, 0.0)
    # New, lost, rare, and the rest, which no number of samples turns either way.
    base, trained = np.array([[0.0, new, rare, 1.0], [new, 0.0, rare, 1.0]])
    weight = np.array([settings.expansion, settings.loss, settings.rare, rest])
    changes = expected_changes(
        base, trained, weight=weight, num_samples=settings.samples
    )
    key = partial(jax.random.key, settings.seed)  # The same draws for every number.
    rule = {
        "num_categories": settings.categories,
        "num_seeds": settings.seeds,
        "seed_spread": settings.seed_spread,
    }

    def power(questions: int) -> float:
        return boundary_power(key(), questions, *changes, **rule, num_studies=STUDIES)

    sizes = {max(int(settings.questions * multiple), 1) for multiple in MULTIPLES}
    return {
        "gain": changes.gain,
        "loss": changes.loss,
        "power": power(settings.questions),
        "questions_needed": questions_for_power(
            key(), *changes, power=settings.power, **rule
        ),
        "samples_needed": samples_for_power(
            key(),
            settings.questions,
            base,
            trained,
            weight=weight,
            power=settings.power,
            **rule,
        ),
        "by_questions": [
            {"questions": size, "power": power(size)}
            for size in sorted(sizes)
            if size <= MOST_QUESTIONS
        ],
    }


def render_plan(document: Mapping[str, Any]) -> RenderableType:
    """A plan at the width of a terminal."""
    given = document["settings"]
    each = " for each seed" if given["seeds"] > 1 else ""
    gains, losses = (given["questions"] * document[name] for name in ("gain", "loss"))
    main = RichTable(box=None, pad_edge=False, show_header=False)
    main.add_column()
    main.add_column(justify="right")
    main.add_row(
        f"expected gains : losses of {given['questions']} questions, at "
        f"{given['samples']} samples",
        f"{gains:.1f} : {losses:.1f}",
    )
    main.add_row("power: chance of the verdict expanded", f"{document['power']:.3f}")
    main.add_row(
        f"questions of a category{each} for a power of {given['power']:g}",
        _needed(document["questions_needed"], MOST_QUESTIONS),
    )
    main.add_row(
        f"samples a question for a power of {given['power']:g}",
        _needed(document["samples_needed"], MOST_SAMPLES),
    )
    sizes = RichTable(box=None, pad_edge=False)
    sizes.add_column(f"questions of a category{each}")
    sizes.add_column("power", justify="right")
    for row in document["by_questions"]:
        sizes.add_row(str(row["questions"]), f"{row['power']:.3f}")
    return Group(Text(_rule_words(given) + "\n"), main, Text(), sizes)


def _rule_words(given: Mapping[str, Any]) -> str:
    words = (
        f"{counted(given['seeds'], 'training seed')}, {given['categories']} "
        f"{'category' if given['categories'] == 1 else 'categories'}; exact test under "
        f"{ALPHA:g}, Holm"
    )
    if given["seeds"] == 1:
        return f"{words}; no interval between seeds"
    return (
        f"{words}, and Student's {100 * SEED_LEVEL:g}% interval between seeds; "
        f"{STUDIES:,} drawn studies"
    )


def _needed(number: int | None, most: int) -> str:
    return f"none up to {most:,}" if number is None else f"{number:,}"
