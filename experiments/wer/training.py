"""Trains the optimizer of a seed, phase by phase; parameters of each phase stay."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import jax

from experiments.jobs.job_files import read_job_tree
from experiments.wer.ablations import Shown
from experiments.wer.base import words_of_place
from experiments.wer.config import Sizes
from experiments.wer.optimizer import optimizer_policy
from experiments.wer.optimizer_words import MAX_REASONING
from experiments.wer.workplace import ToolsWorkplace
from jerp.runs.skills.loop import train_skills
from jerp.runs.skills.settings import SkillSettings
from jerp.storage.tensors import save_tree
from jerp.training.skill import skill_algorithm
from jerp.typing import Key

__all__ = ["phase_file", "phase_params", "train_optimizer"]

LEARNING_RATE = 5e-4
ENTROPY = 0.02
"""Weight of the entropy: without it drafts of a state soon are all the same."""


def phase_file(phase: int) -> str:
    """Where a training's parameters at the end of a phase are, and what it took."""
    return f"phase-{phase}.safetensors"


def phase_params(seed_folder: Path, phase: int) -> Any:
    """Parameters of a seed's optimizer after a phase; before training for phase 0.

    Raises:
      StorageError: the file is missing or damaged.
    """
    if not phase:
        return read_job_tree(seed_folder / "base", "params.safetensors")[0]["optimizer"]
    return read_job_tree(seed_folder / "train", phase_file(phase))[0]


def train_optimizer(
    where: Path,
    key: Key,
    base: Any,
    tasks: Any,
    *,
    sizes: Sizes,
    shown: Shown,
) -> None:
    """Trains, or goes on; a file a phase has its parameters, seconds and warnings.

    Args:
      where: folder of the job.
      key: not consumed.
      base: parameters of executor and optimizer.
      tasks: leaves `[N, ...]`.
      sizes: numbers of phases, batches and drafts.
      shown: what a revision is written from.
    """
    words, (luck, learn) = words_of_place(), jax.random.split(jax.random.clone(key))
    executor = base["executor"]
    workplace = ToolsWorkplace(luck, words, executor, tasks, misled=shown.misled)
    config, hyper = skill_algorithm(
        sizes.states,
        standardize=True,
        learning_rate=LEARNING_RATE,
        entropy_weight=ENTROPY,
    )
    settings = SkillSettings(
        phases=sizes.phases,
        batches=sizes.batches,
        num_drafts=sizes.num_drafts,
        num_runs=sizes.num_runs,
        evidence=shown.evidence,
        reasoning_budget=float(MAX_REASONING),
    )
    for phase in range(1, sizes.phases + 1):
        if (where / phase_file(phase)).exists():
            continue
        before = time.monotonic()
        trained = train_skills(
            *(where, learn, workplace, optimizer_policy(words), config, hyper),
            base["optimizer"],
            tasks=workplace.tasks,
            settings=settings,
            until=phase * sizes.batches,
            chunk=sizes.chunk,
        )
        noted = {"seconds": time.monotonic() - before, "warnings": trained.warnings}
        params = jax.device_get(trained.state.params)
        save_tree(where / phase_file(phase), params, noted)
