"""The harness-control loop of one domain: buffer, controllers, prediction, evaluation.

    <out>/<domain>/buffer/       behaviour episodes on the training tasks
    <out>/<domain>/base-train/   the base sequence on the same tasks
    <out>/<domain>/<arm>/        evaluation episodes on the held-out tasks
    <out>/<domain>/controllers/  <arm>-<seed>/, folders of `load_controller`

Controllers learn from the buffer alone, and from it alone their value is predicted
before any is evaluated. Every arm asks the executor with the same sample indices, so
that arms differ by their decisions and not by sampling luck.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jerp.harness import baselines
from jerp.records import Task
from jerp.runs.harness.arms import LEARNED_ARMS, Arm, scripted_arms
from jerp.runs.harness.collection import evaluation_plan, split_tasks, training_plan
from jerp.runs.harness.comparison import (
    arm_summary,
    buffer_support,
    by_difficulty,
    contrast,
    detectable_q,
    mix_summary,
)
from jerp.runs.harness.domain_run import DomainRun
from jerp.runs.harness.episodes import EpisodeTable, read_episodes
from jerp.runs.harness.learning import train_controllers
from jerp.runs.harness.prediction import predict_arms
from jerp.runs.harness.report import prediction_table
from jerp.runs.harness.sensitivity import threshold_rows
from jerp.runs.harness.simulator import simulator_match
from jerp.storage.documents import defined
from jerp.storage.trajectories import TrajectoryFolder

__all__ = ["run_domain"]

CONTRASTS = (("awr", "bc"), ("awr-step", "bc"), ("awr-step", "awr"))
"""Differences in Q that a table says beside those against base."""

ARMS, PREDICTION, SIMULATION = range(3)
"""Streams of random keys of the analysis."""


def run_domain(run: DomainRun, tasks: Sequence[Task]) -> dict[str, Any]:
    """Collects, trains, predicts, evaluates; the domain's part of `results.json`."""
    sizes, domain = run.sizes, run.domain
    train_index, test_index = split_tasks(
        tasks, num_tasks=sizes.num_tasks, held_out=sizes.held_out
    )
    sequence = baselines.BASE_SEQUENCES[domain.name]
    scripted = scripted_arms(
        sequence, run.seeds, epsilon=sizes.epsilon, max_steps=domain.max_steps
    )
    base, perturbed = (
        next(arm for arm in scripted if arm.name == name)
        for name in ("base", "perturbed")
    )
    buffer = run.episodes(
        "buffer", perturbed.policy_fn, [()], training_plan(tasks, train_index, sizes)
    )
    base_train = run.episodes(
        "base-train", base.policy_fn, [()], evaluation_plan(tasks, train_index, sizes)
    )
    arms: tuple[Arm, ...] = (*scripted, *train_controllers(run, buffer))
    predictions = _predict(run, buffer, arms)
    plan = evaluation_plan(tasks, test_index, sizes)
    tables = {}
    for arm in arms:
        folder = run.episodes(arm.name, arm.policy_fn, arm.params, plan)
        tables[arm.name] = read_episodes(folder, domain)
    difficulty = np.asarray([task.difficulty for task in tasks], np.int32)
    numbers = _numbers(
        run, buffer, read_episodes(base_train, domain), tables, difficulty
    )
    return {
        "base_sequence": baselines.describe(sequence),
        "tasks": {
            "train": len(train_index),
            "held_out": len(test_index),
            "samples": sizes.eval_samples or sizes.samples,
            "held_out_keys": [tasks[i].key for i in test_index],
        },
        "prediction": predictions,
        **numbers,
        "simulator": simulator_match(
            jax.random.fold_in(jax.random.key(run.seed), SIMULATION),
            buffer.load(),
            difficulty,
            arms,
            tables,
            numbers["arms"],
            max_steps=domain.max_steps,
        ),
    }


def _predict(
    run: DomainRun, buffer: TrajectoryFolder, arms: Sequence[Arm]
) -> dict[str, list[dict[str, Any]]]:
    """What the buffer alone says of each learned controller, printed at once."""
    learned = [arm for arm in arms if arm.name in LEARNED_ARMS]
    key = jax.random.fold_in(jax.random.key(run.seed), PREDICTION)
    predictions = defined(predict_arms(key, buffer.load(), learned))
    run.progress.console.print(prediction_table(run.domain.name, predictions))
    return predictions


def _numbers(
    run: DomainRun,
    buffer: TrajectoryFolder,
    base_train: EpisodeTable,
    tables: dict[str, EpisodeTable],
    difficulty: np.ndarray,
) -> dict[str, Any]:
    base = tables["base"]
    root = jax.random.fold_in(jax.random.key(run.seed), ARMS)
    keys = iter(jax.random.split(root, len(tables) + len(CONTRASTS)))
    weight = np.asarray(buffer.annotations()["weight"], np.float32)
    behaviour = read_episodes(buffer, run.domain)
    return {
        "mix": mix_summary({"train": base_train, "held out": base}),
        "buffer": buffer_support(behaviour, weight, base_train, difficulty),
        "arms": {
            name: arm_summary(next(keys), table, None if name == "base" else base)
            for name, table in tables.items()
        },
        "contrasts": {
            f"{a} - {b}": contrast(next(keys), tables[a], tables[b])
            for a, b in CONTRASTS
        },
        "gain_by_difficulty": {
            name: by_difficulty(tables[name], base, difficulty) for name in LEARNED_ARMS
        },
        "detectable_q": detectable_q(tables["awr"], base),
        "sensitivity": threshold_rows(tables),
    }
