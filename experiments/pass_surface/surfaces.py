"""From what the policies answered to surfaces, as `jerp passkt` makes them of files.

Three ways to vary T: runs of their own for each T, with the budget shown or hidden, and
the longest runs with a hidden budget, cut at T. Runs of their own are read a second
time, with evidence: a right answer of a run that had not found what its question needs
was luck, and counts as a failure. Every variant gives an outcome file a policy, of
which `jerp passkt` makes the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

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

__all__ = [
    "EVIDENCE",
    "OUTCOMES",
    "VARIANT_RUNS",
    "Rows",
    "VariantRuns",
    "surfaces",
    "write_outcomes",
]

OUTCOMES = "outcomes"
"""In the run folder."""


class VariantRuns(NamedTuple):
    """Which runs a variant has, and which of them count as solved.

    Attributes:
      protocol: how T is varied.
      budget: hidden or announced.
      evidence: only what was answered after all had been found that was needed.
    """

    protocol: Literal["rerun", "nested"]
    budget: Literal["hidden", "announced"]
    evidence: bool = False


VARIANT_RUNS = {
    "rerun-hidden": VariantRuns("rerun", "hidden"),
    "rerun-announced": VariantRuns("rerun", "announced"),
    "nested": VariantRuns("nested", "hidden"),
    "rerun-hidden-evidence": VariantRuns("rerun", "hidden", evidence=True),
    "rerun-announced-evidence": VariantRuns("rerun", "announced", evidence=True),
}

EVIDENCE = {
    "rerun-hidden": "rerun-hidden-evidence",
    "rerun-announced": "rerun-announced-evidence",
}
"""By variant the one that reads the same runs with evidence."""

NO_TOOL = (
    "category A needs no look-up and is asked at T = 0 alone: its runs there stand at "
    "every T"
)

WITH_EVIDENCE = (
    "with evidence: a run counts as solved where it is right and had found what its "
    "question needs before it answered (both paragraphs that help of B and C, nothing "
    "of A); right answers without are luck and count as failures"
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
    which = VARIANT_RUNS[variant]
    paths = [_path(Path(), variant, arm) for arm in evaluations]
    settings = PassktSettings(
        *paths[:2],
        by="category",
        replicates="seed",
        ks=",".join(map(str, config.sizes.ks)),
        announced="yes" if which.budget == "announced" else "no",
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
        protocol=which.protocol,
        ks=config.sizes.ks,
        horizons=tuple(map(float, HORIZONS)),
        notes=(NO_TOOL, WITH_EVIDENCE) if which.evidence else (NO_TOOL,),
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
    which = VARIANT_RUNS[variant]
    limits = HORIZONS if which.protocol == "rerun" else (TRAINED_LIMIT,)
    stacked = [
        [
            _asked(evaluation, category, which, limit)
            for evaluation in evaluations
            for category in CATEGORIES
        ]
        for limit in limits
    ]
    spent, outcome = (
        np.stack([np.concatenate([part[i] for part in row]) for row in stacked])
        for i in range(2)
    )
    if which.protocol == "nested":
        spent, outcome = spent[0], outcome[0]
    horizons = tuple(map(float, HORIZONS)) if which.protocol == "rerun" else None
    whole = np.ones(outcome.shape, bool)
    return SampleArrays(
        spent.astype(np.float32), outcome.astype(np.int32), whole, horizons
    )


def _asked(
    evaluation: Evaluation, category: str, which: VariantRuns, limit: int
) -> tuple[np.ndarray, np.ndarray]:
    """Look-ups and outcomes `[Q, n]`; see `NO_TOOL` and `WITH_EVIDENCE`."""
    largest = min(limit, max(CATEGORIES[category]))
    found = evaluation[category][which.budget][str(largest)]
    outcome = found["outcome"]
    if which.evidence:
        luck = (outcome == Outcome.SUCCESS) & ~found["supported"]
        outcome = np.where(luck, Outcome.FAILURE, outcome).astype(outcome.dtype)
    return found["lookups"], outcome


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
