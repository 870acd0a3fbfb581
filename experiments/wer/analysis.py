"""Numbers of the experiment, from the files of its jobs alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from experiments.jobs.job_files import read_job_tree
from experiments.wer.answers import Answers, Numbers, seed_folders, streams
from experiments.wer.comparisons import ablation_numbers, acceptance_numbers
from experiments.wer.config import DOMAINS, WerConfig
from experiments.wer.jobs import CURVES
from experiments.wer.methods import NONE, WER, cell_name, method_cells
from experiments.wer.training import phase_file
from jerp.estimators.intervals import paired_difference
from jerp.runs.cells import plain_interval
from jerp.typing import Key

__all__ = ["analyse"]


def analyse(key: Key, config: WerConfig) -> Numbers:
    """All numbers of `results.json` but sizes, versions and the base's.

    Args:
      key: consumed.
      config: of a run whose jobs are done.
    """
    keys, answers = streams(key), Answers.read(seed_folders(config, "evaluation"))
    sizes = config.sizes
    methods = method_cells(sizes)
    along = {p: cell_name(f"phase-{p}", sizes.rounds) for p in range(1, sizes.phases)}
    phases = {0: methods["untrained"], **along, sizes.phases: methods[WER]}
    return {
        "domains": list(DOMAINS),
        "methods": {
            name: {
                **answers.success(keys, cell),
                "above_none": answers.difference(keys, cell, NONE),
                "wer_above": answers.difference(keys, methods[WER], cell),
                "by_seed": answers.by_seed(cell),
                "cost": answers.cost(cell),
                "steps": answers.steps(cell),
            }
            for name, cell in methods.items()
        },
        "phases": {
            str(p): {**answers.success(keys, cell), "cost": answers.cost(cell)}
            for p, cell in phases.items()
        },
        "depths": {
            name: [
                {
                    "merged": answers.success(keys, cell),
                    "own": answers.own(keys, cell),
                    "cost": answers.cost(cell),
                }
                for cell in (cell_name(name, d) for d in range(sizes.depths + 1))
            ]
            for name in ("untrained", WER)
        },
        "ablations": ablation_numbers(keys, answers, config),
        "acceptance": acceptance_numbers(keys, answers, config),
        "training": _training(config),
        "chosen": _chosen(keys, answers, methods),
        "tree_seed": answers.best_seed(methods[WER]),
    }


def _training(config: WerConfig) -> Numbers:
    """How it went, mean over seeds, what it took, and what it warned of."""
    folders = seed_folders(config, "train")
    read = [read_job_tree(path, "evaluation.safetensors") for path in folders]
    phases = [
        [read_job_tree(path, phase_file(p))[1] for p in _phases(config)]
        for path in folders
    ]
    seconds = [sum(phase["seconds"] for phase in one) for one in phases]
    return {
        "curves": {
            name: np.mean([one[0][name] for one in read], axis=0).tolist()
            for name in CURVES
        },
        "cost": {
            "calls": float(np.mean([one[1]["calls"] for one in read])),
            "draft_tokens": float(np.mean([one[1]["draft_tokens"] for one in read])),
            "seconds": float(np.mean(seconds)),
        },
        "warnings": [
            f"seed {seed}: {text}"
            for seed, one in enumerate(phases)
            for text in one[-1]["warnings"]
        ],
    }


def _phases(config: WerConfig) -> range:
    return range(1, config.sizes.phases + 1)


def _chosen(
    keys: Iterator[Key], answers: Answers, methods: Mapping[str, str]
) -> Numbers:
    """By domain the skill of all methods and seeds that did best in validation."""
    found = {}
    for d, domain in enumerate(DOMAINS):
        candidates = [
            (one[cell]["validation"][domain], -seed, name)
            for seed, one in enumerate(answers.cells)
            for name, cell in methods.items()
            if cell in one and one[cell]["skills"][domain] is not None
        ]
        if not candidates:
            continue
        share, seed, name = max(candidates, key=lambda c: c[:2])
        arrays, cell = answers.arrays[-seed], methods[name]
        rows = arrays["domain"] == d
        rates = (arrays["test"][c][rows].mean(axis=1) for c in (cell, NONE))
        effect = paired_difference(
            next(keys),
            *(rate.astype(np.float32) for rate in rates),
            cluster=arrays["task"][rows],
        )
        found[domain] = {
            "method": name,
            "seed": -seed,
            "validation": share,
            "effect": plain_interval(effect),
            "tasks": int(rows.sum()),
            "skill": answers.cells[-seed][cell]["skills"][domain],
        }
    return found
