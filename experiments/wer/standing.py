"""Where the clones of a run stand, before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.jobs.job_files import read_job_tree
from experiments.wer.answers import seed_folders, shares, streams
from experiments.wer.base import TOLD
from experiments.wer.config import DOMAINS, WerConfig
from jerp.typing import Key

__all__ = ["base_standing"]

FEW, MANY = 0.2, 0.6
"""Outside of them too few drafts of the clone both succeed and fail, or so many that
two runs say little of a draft."""

Numbers = dict[str, Any]


def base_standing(key: Key, config: WerConfig) -> Numbers:
    """Where the clones stand: whether skills matter, and what drafts are worth.

    Args:
      key: consumed.
      config: of a run whose base jobs are done.

    Returns:
      `success` by what was told, in all and by domain; `parsed` and `mixed`, by seed
      the shares of drafts that have a skill and that succeeded once in two runs;
      `mixed_by_domain`; `warnings`.
    """
    folders, keys = seed_folders(config, "base"), streams(key)
    read = [read_job_tree(path, "evaluation.safetensors")[0] for path in folders]
    domain, drafted = (
        np.concatenate([one[name] for one in read])
        for name in ("domain", "draft_domain")
    )
    answered = {
        told: np.concatenate([one[told] for one in read]).mean(axis=1) for told in TOLD
    }
    success = {told: shares(keys, rate, domain) for told, rate in answered.items()}
    mixed = [one["success"].sum(axis=1) == 1 for one in read]
    by_seed = [float(one.mean()) for one in mixed]
    return {
        "success": success,
        "parsed": [float(one["parsed"].mean()) for one in read],
        "mixed": by_seed,
        "mixed_by_domain": {
            name: float(np.concatenate(mixed)[drafted == d].mean())
            for d, name in enumerate(DOMAINS)
        },
        "warnings": [*_deaf(success), *_unmixed(by_seed)],
    }


def _deaf(success: Numbers) -> Iterator[str]:
    """Of an executor that does not do as it is told."""
    none, right, wrong = (success[told]["all"]["point"] for told in TOLD)
    if not wrong < none < right:
        yield (
            "expected that right lines raise the executor's success and wrong ones "
            f"lower it, got {right:.2f} and {wrong:.2f}, {none:.2f} with no skill: it "
            "does not follow skills"
        )


def _unmixed(by_seed: Sequence[float]) -> Iterator[str]:
    """Of seeds whose first drafts tell little of what is better."""
    for seed, share in enumerate(by_seed):
        if not FEW <= share <= MANY:
            yield (
                f"seed {seed}: {share:.0%} of the clone's seed drafts both succeeded "
                f"and failed in two runs, expected from {FEW:.0%} to {MANY:.0%}"
            )
