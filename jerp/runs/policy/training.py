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
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from jerp.errors import ConfigError, TrainingError
from jerp.runs.policy.checks import (
    begun,
    check_numbers,
    check_params,
    check_tasks,
)
from jerp.runs.policy.description import run_description
from jerp.runs.policy.groups import Play, PolicyTask
from jerp.runs.policy.iterations import (
    compiled_iterations,
    host_iterations,
    is_sound,
)
from jerp.runs.policy.warnings import collapse_warnings
from jerp.storage.atomic import make_folder
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.locks import lock_folder
from jerp.storage.metrics import MetricsLog, Mirror, read_metrics
from jerp.storage.tensors import save_tree
from jerp.training.group_settings import GroupHyper
from jerp.training.sharding import shard
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
    mesh: Mesh | None = None,
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
      mesh: of `jerp.training.sharding.make_mesh`; parameters and episodes are laid out
        on it, and the numbers stay the same up to rounding. The processes of a mesh all
        call this alike, with a folder that they share.
      mirrors: see `jerp.storage.metrics`; told by the first process alone, which also
        writes `metrics.jsonl`.
      on_progress: called with the number of iterations just finished or found.

    Returns:
      The state, and warnings about the run, such as of a collapse; of several processes
      the first one has them.

    Raises:
      ConfigError: fewer tasks than groups, what `make_group_step` refuses, episodes
        that the mesh cannot deal out, several processes that `play` from the host,
        `kl_weight` without `reference`, entries both in `params` and in `frozen`, or
        fewer iterations than are done.
      TrainingError: a loss or its gradient became NaN or infinite; the batch that did
        it is kept.
      StorageError: files that cannot be read or written, or are of another config;
        another process trains in the folder.
    """
    folder = Path(folder)
    check_numbers(hyper, key, iterations, chunk)
    check_tasks(task, env_params)
    _check_processes(play, mesh)
    check_params(task.policy, hyper, params, reference, frozen)
    loop = compiled_iterations if play is None else partial(host_iterations, play)
    context = nullcontext() if mesh is None else jax.set_mesh(mesh)
    laid_out = (lambda tree: tree) if mesh is None else partial(shard, mesh)
    run = partial(loop, task, *laid_out((key, hyper, env_params, reference, frozen)))
    config = run_description(
        *(task, hyper, key, env_params), play=play, reference=reference, frozen=frozen
    )
    kept = folder / "checkpoints"
    with context, _lock(kept), Checkpoints(kept, config=config) as checkpoints:

        def state_at(done: int) -> TrainState:
            state = laid_out(begun(key, task, hyper, params))
            return checkpoints.restore(state, done) if done else state

        done = checkpoints.latest or 0
        if iterations < done:
            raise ConfigError(
                f"iterations: expected at least {done}, which {folder} has done "
                f"already, got {iterations}"
            )
        state = state_at(done)
        log = None
        if jax.process_index() == 0:
            log = MetricsLog(folder / "metrics.jsonl", first=done, mirrors=mirrors)
        on_progress(done)
        while done < iterations:
            size = min(chunk, iterations - done)
            state, metrics = run(state, done, size=size)
            made = _rows(jax.device_get(metrics), done)
            _check(folder, run, partial(state_at, done), done, made)
            if log is not None:
                log.write(made)
            checkpoints.save(done + size, state)
            done += size
            on_progress(size)
    rows = [] if log is None else read_metrics(log.path)
    return state, collapse_warnings(rows, num_actions=task.env.num_actions)


def _check_processes(play: Play | None, mesh: Mesh | None) -> None:
    processes = jax.process_count()
    if processes > 1 and mesh is None:
        raise ConfigError(
            f"mesh: expected one of the devices of all {processes} processes, got None"
        )
    if processes > 1 and play is not None:
        raise ConfigError(
            "play: expected None, to play inside the compiled program, got episodes "
            f"played from the host, in each of {processes} processes"
        )


def _lock(folder: Path) -> AbstractContextManager[Any]:
    """Held by the first process for all of them.

    Not of the run's own folder, which a caller may have locked for more than this.
    """
    if jax.process_index():
        return nullcontext()
    make_folder(folder)
    return lock_folder(folder)


def _rows(metrics: dict[str, np.ndarray], first: int) -> list[dict[str, Any]]:
    size = len(metrics["loss"])
    return [
        {"step": first + i, **{name: float(x[i]) for name, x in metrics.items()}}
        for i in range(size)
    ]


def _check(
    folder: Path,
    run: Any,
    before: Callable[[], TrainState],
    first: int,
    rows: list[dict[str, Any]],
) -> None:
    """Stops where a loss or gradient is no number, and keeps the episodes of it."""
    bad = [i for i, row in enumerate(rows) if not is_sound(row)]
    if not bad:
        return
    state = before()
    if bad[0]:
        state, _ = run(state, first, size=bad[0])
    number = first + bad[0]
    _, (_, data) = run(state, number, size=1, keep=True)
    path = folder / "nan-batch.safetensors"
    tree = jax.device_get(jax.tree.map(lambda x: x[0], vars(data)))
    if jax.process_index() == 0:
        save_tree(path, tree, {"iteration": number})
    row = rows[bad[0]]
    raise TrainingError(
        f"iteration {number}: the loss is {row['loss']}, the norm of its gradient "
        f"{row['grad_norm']}; its episodes are in {path}, the state before is "
        "the last checkpoint; a smaller learning rate or max_grad_norm may help"
    )
