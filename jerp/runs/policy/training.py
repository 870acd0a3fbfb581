"""Trains a policy in a world: episodes, updates, metrics, checkpoints.

    <folder>/metrics.jsonl          a row an iteration
    <folder>/checkpoints/           parameters, optimizer, key, counters (Orbax)
    <folder>/nan-batch.safetensors  the episodes that made a loss NaN, if one did

Iterations are played and learned from in one compiled program, a chunk of them a call,
or played from the host, for policies that read text. A run of k iterations that resumes
to n equals one of n, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jerp.errors import ConfigError, TrainingError
from jerp.runs.policy.description import run_description
from jerp.runs.policy.groups import Play, PolicyTask
from jerp.runs.policy.iterations import LEARN, compiled_iterations, host_iterations
from jerp.runs.policy.warnings import collapse_warnings
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.metrics import MetricsLog, Mirror
from jerp.storage.tensors import save_tree
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupHyper
from jerp.training.state import TrainState
from jerp.typing import Key

__all__ = ["train_policy"]


def train_policy(
    folder: Path | str,
    key: Key,
    task: PolicyTask,
    hyper: GroupHyper,
    env_params: Any,
    params: Any,
    *,
    iterations: int,
    chunk: int = 20,
    play: Play | None = None,
    reference: Any = None,
    frozen: Mapping[str, Any] | None = None,
    mirrors: Sequence[Mirror] = (),
    on_progress: Callable[[int], None] = lambda done: None,
) -> tuple[TrainState, list[str]]:
    """Trains for `iterations`, or goes on where an earlier session stopped.

    Args:
      folder: of this run alone.
      key: of the run; not consumed, so that a resumed run has it again.
      task: see `PolicyTask`.
      hyper: numbers of the algorithm.
      env_params: leaves `[N, ...]`, the training tasks.
      params: to start from.
      iterations: in all, those of earlier sessions included.
      chunk: iterations between two checkpoints.
      play: plays episodes from the host, such as `jerp.bridge.world_episodes` with a
        view of the world as text; None plays them inside the compiled program.
      reference: parameters to stay near to, with `hyper.kl_weight`.
      frozen: entries of the policy's parameters that are not trained and not in
        `params`, such as the decoder beside adapters; no checkpoint holds them.
      mirrors: see `jerp.storage.metrics`.
      on_progress: called with the number of iterations just finished or found.

    Returns:
      The state, and warnings about the run, such as of a collapse.

    Raises:
      ConfigError: fewer tasks than groups, or what `make_group_step` refuses.
      TrainingError: a loss became NaN or infinite; the batch that did it is kept.
      StorageError: files that cannot be read or written, or are of another config.
    """
    folder = Path(folder)
    number = jax.tree.leaves(env_params)[0].shape[0]
    if number < task.config.num_groups:
        raise ConfigError(
            f"env_params: expected at least num_groups={task.config.num_groups} tasks, "
            f"got {number}"
        )
    init, _ = make_group_step(task.config, task.policy)
    state = init(jax.random.fold_in(key, LEARN), hyper, params)
    loop = compiled_iterations if play is None else partial(host_iterations, play)
    run = partial(loop, task, key, hyper, env_params, reference, frozen)
    config = run_description(task, hyper, key, env_params)
    with Checkpoints(folder / "checkpoints", config=config) as checkpoints:
        done = checkpoints.latest or 0
        if done:
            state = checkpoints.restore(state, done)
        log = MetricsLog(folder / "metrics.jsonl", first=done, mirrors=mirrors)
        rows: list[dict[str, Any]] = []
        on_progress(done)
        while done < iterations:
            size = min(chunk, iterations - done)
            after, metrics = run(state, done, size=size)
            made = _rows(jax.device_get(metrics), done)
            _check(folder, run, state, done, made)
            log.write(made)
            checkpoints.save(done + size, after)
            state, done, rows = after, done + size, [*rows, *made]
            on_progress(size)
    return state, collapse_warnings(rows, num_actions=task.env.num_actions)


def _rows(metrics: dict[str, np.ndarray], first: int) -> list[dict[str, Any]]:
    size = len(metrics["loss"])
    return [
        {"step": first + i, **{name: float(x[i]) for name, x in metrics.items()}}
        for i in range(size)
    ]


def _check(
    folder: Path, run: Any, state: TrainState, first: int, rows: list[dict[str, Any]]
) -> None:
    """Stops at a loss that is no number, and keeps the episodes that made it."""
    bad = [i for i, row in enumerate(rows) if not np.isfinite(row["loss"])]
    if not bad:
        return
    if bad[0]:
        state, _ = run(state, first, size=bad[0])
    number = first + bad[0]
    _, (_, data) = run(state, number, size=1, keep=True)
    path = folder / "nan-batch.safetensors"
    tree = jax.device_get(jax.tree.map(lambda x: x[0], vars(data)))
    save_tree(path, tree, {"iteration": number})
    raise TrainingError(
        f"iteration {number}: the loss is {rows[bad[0]]['loss']}; its episodes are in "
        f"{path}, the state before is the last checkpoint; a smaller learning rate or "
        "max_grad_norm may help"
    )
