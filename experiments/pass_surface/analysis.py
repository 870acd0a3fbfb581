"""Numbers of the study, from the files of its jobs alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from experiments.jobs.job import Job
from experiments.jobs.job_files import (
    read_job_json,
    read_job_metrics,
    read_job_tree,
)
from experiments.pass_surface.arms import TRAINING
from experiments.pass_surface.config import (
    CATEGORIES,
    TRAINED_LIMIT,
    PassSurfaceConfig,
)
from experiments.pass_surface.costs import Runs, TrainingTokens, arm_costs
from experiments.pass_surface.figures import CUT, LEAD
from experiments.pass_surface.forgetting import forgetting_numbers
from experiments.pass_surface.jobs import ELSEWHERE, MECHANISM, WORLD
from experiments.pass_surface.luck import luck_numbers
from experiments.pass_surface.mechanism import NUM_SEARCHES, SEARCHED
from experiments.pass_surface.mechanism_analysis import arm_numbers
from experiments.pass_surface.surfaces import EVIDENCE, Evaluation, surfaces
from jerp.estimators.passk import pass_at_k
from jerp.typing import Key, Outcome

__all__ = ["analyse", "base_standing", "evaluations_of", "verdict_rows"]

WEAK, STRONG = 0.02, 0.6
"""Outside of them the base solves a kind of question too rarely, or too reliably, for
training to have much to show."""

LAST = 20
"""Iterations at the end whose training success a table gives."""

PROCESS = ("peak_memory_bytes", "compilations", "compile_seconds")

Evaluations = Mapping[str, Sequence[Evaluation]]
"""By policy, of every seed."""


def evaluations_of(config: PassSurfaceConfig) -> dict[str, list[Evaluation]]:
    """What the policies of a run answered, the base first."""
    return {
        arm: [
            read_job_tree(_folder(config, arm, seed), "evaluation.safetensors")[0]
            for seed in range(config.num_seeds)
        ]
        for arm in config.policies
    }


def analyse(
    key: Key, config: PassSurfaceConfig, evaluations: Evaluations
) -> dict[str, Any]:
    """All numbers of `results.json` but sizes and versions.

    Args:
      key: consumed.
      config: of a run whose jobs are done.
      evaluations: see `evaluations_of`.
    """
    keys = jax.random.split(key, 3)
    variants = surfaces(config, evaluations)
    return {
        "base_standing": base_standing(evaluations["base"]),
        "variants": variants,
        "verdicts": verdict_rows(variants),
        "luck": luck_numbers(config.sizes.ks, evaluations),
        "mechanism": _mechanism(keys[0], config, evaluations),
        "cost": _cost(keys[1], config, evaluations),
        "forgetting": forgetting_numbers(keys[2], _elsewhere(config)),
        "training": {arm: _training(config, arm) for arm in config.policies},
    }


def base_standing(found: Sequence[Evaluation]) -> dict[str, Any]:
    """Where the base stands at the largest T, hidden: it must have something to gain.

    Args:
      found: of each seed, the base's evaluation.

    Returns:
      By category `pass_1`, `pass_64` (or at as many samples as there are), `samples`,
      the share of questions that are `never` solved, `pass_1_by_seed`; and `warnings`.
    """
    standing: dict[str, Any] = {}
    warnings = []
    for category, horizons in CATEGORIES.items():
        each = [
            (one[category]["hidden"][str(max(horizons))]["outcome"] == Outcome.SUCCESS)
            for one in found
        ]
        right = np.concatenate(each)
        most = min(64, right.shape[1])
        value = np.asarray(pass_at_k(right.shape[1], right.sum(axis=1), k=(1, most)))
        first, last = (float(x) for x in value.mean(axis=0))
        standing[category] = {
            "pass_1": first,
            "pass_64": last,
            "k": most,
            "samples": right.shape[1],
            "never": float((~right.any(axis=1)).mean()),
            "pass_1_by_seed": [float(one.mean()) for one in each],
        }
        if not WEAK <= first <= STRONG:
            why = (
                "what it never finds, reward cannot reinforce"
                if first < WEAK
                else "there is little left to gain"
            )
            warnings.append(
                f"the base's Pass@1 in category {category} is {first:.3f}, outside of "
                f"[{WEAK}, {STRONG}]: {why}"
            )
    return {**standing, "warnings": warnings}


def verdict_rows(variants: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row a variant, category and comparison, the leading variant first."""
    order = sorted(variants, key=lambda variant: variant != LEAD)
    # At the largest T nothing is cut; with evidence runs are read a second time.
    same = {CUT: LEAD} | {beside: plain for plain, beside in EVIDENCE.items()}
    return [
        {
            "variant": variant,
            "with_evidence": variant in EVIDENCE.values(),
            "category": part["name"],
            "first": comparison["first_label"],
            "second": comparison["second_label"],
            "crossing_k": comparison["boundary"][-1]["crossing_k"],
            "verdict": comparison["verdict"],
            "same_runs_as": same.get(variant),
        }
        for variant in order
        for part in variants[variant]["parts"]
        for comparison in part["comparisons"]
    ]


def _folder(config: PassSurfaceConfig, arm: str, seed: int) -> Any:
    return Job(WORLD, arm, seed).folder(config.folder)


def _mechanism(
    key: Key, config: PassSurfaceConfig, evaluations: Evaluations
) -> dict[str, dict[str, Any]]:
    seeds = range(config.num_seeds)
    read = [
        read_job_tree(_folder(config, MECHANISM, seed), "evaluation.safetensors")[0]
        for seed in seeds
    ]
    keys = iter(jax.random.split(key, len(SEARCHED) * len(evaluations)))
    return {
        category: {
            arm: arm_numbers(
                next(keys),
                arm,
                [one[category] for one in read],
                [_actions(evaluations, category, seed) for seed in seeds],
                num_searches=NUM_SEARCHES,
            )
            for arm in evaluations
        }
        for category in SEARCHED
    }


def _actions(
    evaluations: Evaluations, category: str, seed: int
) -> dict[str, np.ndarray]:
    """`[Q, n, T]` by policy."""
    return {
        arm: found[seed][category]["hidden"][str(TRAINED_LIMIT)]["actions"]
        for arm, found in evaluations.items()
    }


def _cost(
    key: Key, config: PassSurfaceConfig, evaluations: Evaluations
) -> dict[str, Any]:
    training = {arm: _tokens(config, arm) for arm in config.arms}
    ks = config.sizes.ks
    keys = iter(jax.random.split(key, len(CATEGORIES) * len(training)))
    return {
        "ks": list(ks),
        "training": {arm: one._asdict() for arm, one in training.items()},
        "categories": {
            category: {
                arm: arm_costs(
                    next(keys),
                    _longest(evaluations["base"], category),
                    _longest(evaluations[arm], category),
                    ks,
                    taken,
                )
                for arm, taken in training.items()
            }
            for category in CATEGORIES
        },
    }


def _longest(found: Sequence[Evaluation], category: str) -> list[Runs]:
    """Runs at the largest T, hidden, of every seed."""
    limit = str(max(CATEGORIES[category]))
    each = [one[category]["hidden"][limit] for one in found]
    return [Runs(one["outcome"], one["tokens"]) for one in each]


def _tokens(config: PassSurfaceConfig, arm: str) -> TrainingTokens:
    notes = _notes(config, arm)
    return TrainingTokens(
        *(
            float(np.mean([note[f"{name}_tokens"] for note in notes]))
            for name in ("generated", "learned")
        )
    )


def _notes(config: PassSurfaceConfig, arm: str) -> list[dict[str, Any]]:
    fields = ("generated_tokens", "learned_tokens")
    return [
        read_job_json(_folder(config, arm, seed), TRAINING, fields)
        for seed in range(config.num_seeds)
    ]


def _elsewhere(config: PassSurfaceConfig) -> list[dict[str, dict[str, np.ndarray]]]:
    return [
        {
            arm: read_job_tree(_folder(config, arm, seed), ELSEWHERE)[0]
            for arm in config.policies
        }
        for seed in range(config.num_seeds)
    ]


def _training(config: PassSurfaceConfig, arm: str) -> dict[str, Any]:
    """What it took, and how it went."""
    folders = [_folder(config, arm, seed) for seed in range(config.num_seeds)]
    notes = [read_job_json(path, "process.json", PROCESS) for path in folders]
    numbers: dict[str, Any] = {
        "peak_memory_bytes": max(note["peak_memory_bytes"] for note in notes),
        "compilations": sum(note["compilations"] for note in notes),
        "compile_seconds": sum(note["compile_seconds"] for note in notes),
    }
    if arm == "base":
        cloned = [read_job_tree(path, "params.safetensors")[1] for path in folders]
        return numbers | {
            name: [one[name] for one in cloned] for name in sorted(cloned[0])
        }
    taken = _notes(config, arm)
    if arm == "sft":
        names = ("visits", "updates", "validation")
        return numbers | {name: [one[name] for one in taken] for name in names}
    rows = [read_job_metrics(path, config.sizes.iterations) for path in folders]
    return numbers | {
        "iterations": config.sizes.iterations,
        "success": [
            float(np.mean([row["success"] for row in one[-LAST:]])) for one in rows
        ],
        "curve": np.mean([[row["success"] for row in one] for one in rows], 0).tolist(),
        "warnings": [
            f"seed {seed}: {sentence}"
            for seed, one in enumerate(taken)
            for sentence in one["warnings"]
        ],
    }
