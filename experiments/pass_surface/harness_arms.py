"""Arms whose weights are one frozen model's: who decides when it reads, writes, checks.

The executor is the same in every arm, and so are its answers to equal requests: the
arms of one task, seed and sample differ by their controller's decisions alone. The
numbers are those of `jerp run harness`: the same keys, buffer, controllers and
held-out tasks. A row is a task and a training seed; the base sequence has no
seed, and its runs stand beside those of every seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.progress import Progress

from experiments.executors.opened import OpenExecutor
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import NUM_TASKS, make_domain
from jerp.bridge.session import Session
from jerp.harness.baselines import BASE_SEQUENCES
from jerp.runs.harness.arms import LEARNED_ARMS, scripted_arms
from jerp.runs.harness.collection import evaluation_plan, split_tasks, training_plan
from jerp.runs.harness.domain_run import DomainRun
from jerp.runs.harness.learning import train_controllers
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import USAGE_KINDS

__all__ = ["HARNESS_ARMS", "UNITS", "ArmRuns", "joined", "play_arms"]

HARNESS_ARMS = ("base", "perturbed", *LEARNED_ARMS)
"""The base sequence first: every other arm is compared with it. Its perturbation learns
nothing, and shows what variety alone brings to k runs."""

UNITS = ("steps", "tokens")
"""What T counts: decisions of the controller, the last one that submits included; or
tokens that the executor read and wrote."""

_TOKENS = [USAGE_KINDS.index(kind) for kind in ("tokens_in", "tokens_out")]


@dataclass(frozen=True)
class ArmRuns:
    """Runs of one arm, rows in the same order in all arms.

    Attributes:
      task: names of the tasks, `N` of them.
      category: the domain of each.
      replicate: `[N]` int32, the training seed of each.
      spent: `[N, M]` int32 by unit.
      outcome: `[N, M]` int32, see `jerp.typing.Outcome`.
    """

    task: tuple[str, ...]
    category: tuple[str, ...]
    replicate: np.ndarray
    spent: Mapping[str, np.ndarray]
    outcome: np.ndarray


def play_arms(
    config: HarnessConfig, opened: OpenExecutor, progress: Progress
) -> dict[str, ArmRuns]:
    """Plays, or finds played, the runs of every arm in every domain of `config`."""
    each = [_of_domain(name, config, opened, progress) for name in config.domain]
    return {arm: joined([runs[arm] for runs in each]) for arm in HARNESS_ARMS}


def joined(parts: Sequence[ArmRuns]) -> ArmRuns:
    """The rows of several domains, one after another."""
    return ArmRuns(
        task=tuple(name for part in parts for name in part.task),
        category=tuple(name for part in parts for name in part.category),
        replicate=np.concatenate([part.replicate for part in parts]),
        spent={
            unit: np.concatenate([part.spent[unit] for part in parts]) for unit in UNITS
        },
        outcome=np.concatenate([part.outcome for part in parts]),
    )


def _of_domain(
    name: str, config: HarnessConfig, opened: OpenExecutor, progress: Progress
) -> dict[str, ArmRuns]:
    """The buffer, the controllers it teaches, and the runs of all arms."""
    domain, sizes = make_domain(name, opened.store), config.sizes
    tasks = domain.generate(config.generator_seed, NUM_TASKS)
    train, test = split_tasks(tasks, num_tasks=sizes.num_tasks, held_out=sizes.held_out)
    with Session(domain, opened.executor) as session:
        run = DomainRun(
            domain=domain,
            session=session,
            folder=config.folder / name,
            sizes=sizes,
            seeds=config.seeds,
            seed=config.seed,
            progress=progress,
        )
        sequence, epsilon = BASE_SEQUENCES[name], sizes.epsilon
        made = scripted_arms(
            sequence, config.seeds, epsilon=epsilon, max_steps=domain.max_steps
        )
        scripted = {arm.name: arm for arm in made}
        learns_from = training_plan(tasks, train, sizes)
        behaviour = scripted["perturbed"].policy_fn
        buffer = run.episodes("buffer", behaviour, [()], learns_from)
        arms = (
            scripted["base"],
            scripted["perturbed"],
            *train_controllers(run, buffer),
        )
        plan = evaluation_plan(tasks, test, sizes)
        names = tuple(tasks[i].key for i in test)
        return {
            arm.name: _runs(
                run.episodes(arm.name, arm.policy_fn, arm.params, plan),
                names,
                name,
                test,
                config.seeds,
            )
            for arm in arms
        }


def _runs(
    folder: TrajectoryFolder,
    names: tuple[str, ...],
    category: str,
    test: np.ndarray,
    seeds: int,
) -> ArmRuns:
    """Episodes by seed and task; one set of them is repeated for every seed."""
    found: Any = folder.load()
    place = np.searchsorted(test, np.asarray(found.task_id))
    own = (np.asarray(found.version), place, np.asarray(found.seed))
    mask = np.asarray(found.mask)
    usage = np.where(mask[..., None], np.asarray(found.usage), 0).sum(1)
    values = {
        "steps": mask.sum(1),
        "tokens": usage[:, _TOKENS].sum(1),
        "outcome": np.asarray(found.outcome),
    }
    shape = (own[0].max() + 1, len(test), own[2].max() + 1)

    def rows(value: np.ndarray) -> np.ndarray:
        table = np.full(shape, -1, np.int32)
        table[own] = value
        assert (table >= 0).all()  # every seed, task and sample was played
        table = np.broadcast_to(table, (seeds, *shape[1:]))
        return table.reshape(-1, shape[2])

    return ArmRuns(
        task=names * seeds,
        category=(category,) * (len(names) * seeds),
        replicate=np.repeat(np.arange(seeds, dtype=np.int32), len(names)),
        spent={unit: rows(values[unit]) for unit in UNITS},
        outcome=rows(values["outcome"]),
    )
