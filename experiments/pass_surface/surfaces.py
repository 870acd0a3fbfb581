"""From what the policies answered to surfaces, as `jerp passkt` makes them of files.

Three ways to vary T: runs of their own for each T, with the budget shown or hidden, and
the longest runs with a hidden budget, cut at T. Every way gives an outcome file a
policy, of which `jerp passkt` makes the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.pass_surface.config import (
    ARMS,
    CATEGORIES,
    HORIZONS,
    TRAINED_LIMIT,
    PassSurfaceConfig,
)
from jerp.readers.outcomes import SampleArrays
from jerp.runs.pass_surface.agents import Agent
from jerp.runs.pass_surface.analysis import analyse
from jerp.runs.pass_surface.inputs import Inputs
from jerp.runs.pass_surface.settings import PassktSettings
from jerp.storage.atomic import make_folder, write_bytes
from jerp.typing import Outcome

__all__ = ["OUTCOMES", "VARIANT_RUNS", "Rows", "surfaces", "write_outcomes"]

OUTCOMES = "outcomes"
"""In the run folder."""

VARIANT_RUNS = {
    "rerun-hidden": ("rerun", "hidden"),
    "rerun-announced": ("rerun", "announced"),
    "nested": ("nested", "hidden"),
}
"""By variant the protocol, and which runs: with a hidden or an announced budget."""

NO_TOOL = (
    "category A needs no look-up and is asked at T = 0 alone: its runs there stand at "
    "every T"
)

Evaluation = Mapping[str, Mapping[str, Mapping[str, Mapping[str, np.ndarray]]]]
"""What a policy answered, as `evaluation.evaluate` returns it."""


class Rows(NamedTuple):
    """Test questions of all seeds, `[N]`.

    Attributes:
      task: names such as "s0-C-017".
      category: of each.
      seed: int32, the training seed whose policies were asked.
    """

    task: tuple[str, ...]
    category: tuple[str, ...]
    seed: np.ndarray

    @classmethod
    def of(cls, num_seeds: int, questions: int) -> Rows:
        """Seed after seed, kind after kind."""
        each = [
            (f"s{seed}-{category}-{number:03d}", category, seed)
            for seed in range(num_seeds)
            for category in CATEGORIES
            for number in range(questions)
        ]
        task, category, seed = zip(*each, strict=True)
        return cls(task, category, np.asarray(seed, np.int32))


def surfaces(
    config: PassSurfaceConfig, evaluations: Mapping[str, Sequence[Evaluation]]
) -> dict[str, Any]:
    """A document of `jerp passkt` a variant.

    Args:
      config: of the run.
      evaluations: by policy, in the order of tables, of every seed.
    """
    return {
        variant: _document(config, evaluations, variant) for variant in VARIANT_RUNS
    }


def _document(
    config: PassSurfaceConfig,
    evaluations: Mapping[str, Sequence[Evaluation]],
    variant: str,
) -> dict[str, Any]:
    protocol, budget = VARIANT_RUNS[variant]
    paths = [_path(Path(), variant, arm) for arm in evaluations]
    settings = PassktSettings(
        *paths[:2],
        by="category",
        replicates="seed",
        ks=",".join(map(str, config.sizes.ks)),
        announced="yes" if budget == "announced" else "no",
        unit="calls",
        seed=config.seed,
    )
    rows = Rows.of(config.num_seeds, config.sizes.questions)
    category = np.asarray(rows.category)
    inputs = Inputs(
        agents=tuple(
            Agent(ARMS[arm], _runs(found, variant), ())
            for arm, found in evaluations.items()
        ),
        tasks=rows.task,
        parts=tuple((name, category == name) for name in CATEGORIES),
        protocol=protocol,  # pyright: ignore[reportArgumentType]
        ks=config.sizes.ks,
        horizons=tuple(map(float, HORIZONS)),
        notes=(NO_TOOL,),
        pairs=_pairs([*evaluations]),
        replicate=rows.seed,
    )
    files = [str(path) for path in paths]
    return {**analyse(settings, inputs), "command": config.command, "files": files}


def _pairs(arms: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Every arm against the base, and reinforcement learning against SFT."""
    later = range(1, len(arms))
    against_base = [(0, second) for second in later]
    if "sft" not in arms:
        return tuple(against_base)
    sft = arms.index("sft")
    return (*against_base, *((sft, second) for second in later if second != sft))


def _runs(evaluations: Sequence[Evaluation], variant: str) -> SampleArrays:
    """The runs of all seeds, in the order of `Rows`."""
    protocol, budget = VARIANT_RUNS[variant]
    limits = HORIZONS if protocol == "rerun" else (TRAINED_LIMIT,)
    stacked = [
        [
            _asked(evaluation, category, budget, limit)
            for evaluation in evaluations
            for category in CATEGORIES
        ]
        for limit in limits
    ]
    spent, outcome = (
        np.stack([np.concatenate([part[i] for part in row]) for row in stacked])
        for i in range(2)
    )
    if protocol == "nested":
        spent, outcome = spent[0], outcome[0]
    horizons = tuple(map(float, HORIZONS)) if protocol == "rerun" else None
    whole = np.ones(outcome.shape, bool)
    return SampleArrays(
        spent.astype(np.float32), outcome.astype(np.int32), whole, horizons
    )


def _asked(
    evaluation: Evaluation, category: str, budget: str, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Look-ups and outcomes `[Q, n]`; see `NO_TOOL`."""
    largest = min(limit, max(CATEGORIES[category]))
    found = evaluation[category][budget][str(largest)]
    return found["lookups"], found["outcome"]


def write_outcomes(
    config: PassSurfaceConfig, evaluations: Mapping[str, Sequence[Evaluation]]
) -> None:
    """Writes `outcomes/<variant>/<arm>.csv`, a row a run."""
    rows = Rows.of(config.num_seeds, config.sizes.questions)
    for variant in VARIANT_RUNS:
        for arm, found in evaluations.items():
            path = _path(config.folder, variant, arm)
            make_folder(path.parent)
            text = "\n".join(_lines(rows, _runs(found, variant))) + "\n"
            write_bytes(path, text.encode())


def _path(folder: Path, variant: str, arm: str) -> Path:
    return folder / OUTCOMES / variant / f"{arm}.csv"


def _lines(rows: Rows, runs: SampleArrays) -> Iterator[str]:
    """Of a table of runs, by hand: there are a million of them."""
    words = [outcome.name.lower() for outcome in Outcome]
    rerun = runs.horizons is not None
    yield f"task,sample,spent,outcome,category,seed{',horizon' * rerun}"
    shape = (-1, *runs.outcome.shape[-2:])
    layers = zip(
        runs.horizons or (None,),
        runs.spent.reshape(shape).astype(int).tolist(),
        runs.outcome.reshape(shape).tolist(),
        strict=True,
    )
    for horizon, spent, outcome in layers:
        end = "" if horizon is None else f",{horizon:g}"
        for row, (task, category, seed) in enumerate(zip(*rows, strict=True)):
            last = f"{category},{seed}{end}"
            pairs = zip(spent[row], outcome[row], strict=True)
            for sample, (used, one) in enumerate(pairs):
                yield f"{task},{sample},{used},{words[one]},{last}"
