"""What a training run cannot mean is refused before it begins, and how one begins."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.errors import ConfigError
from jerp.ops.checks import check_whole
from jerp.runs.policy.groups import PolicyTask
from jerp.runs.policy.iterations import LEARN
from jerp.training.frozen import check_apart
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupHyper
from jerp.training.state import TrainState
from jerp.typing import Key

__all__ = ["begun", "check_numbers", "check_params", "check_tasks", "placed"]


def check_numbers(hyper: GroupHyper, key: Key, iterations: int, chunk: int) -> None:
    """Raises `ConfigError` for numbers of a run that are out of range."""
    check_whole("iterations", iterations, least=0)
    check_whole("chunk", chunk, least=1)
    if not jnp.issubdtype(getattr(key, "dtype", np.dtype(int)), jax.dtypes.prng_key):
        raise ConfigError(
            f"key: expected a typed key (jax.random.key), got {type(key).__name__}"
        )
    rate = np.asarray(hyper.learning_rate)
    if not (np.isfinite(rate).all() and (rate >= 0).all()):
        raise ConfigError(
            f"hyper.learning_rate: expected a number from 0 on, got {rate}"
        )


def check_tasks(task: PolicyTask, env_params: Any) -> None:
    """Raises `ConfigError` unless there is a task for every group."""
    shapes = {np.shape(leaf)[:1] for leaf in jax.tree.leaves(env_params)}
    if len(shapes) != 1 or shapes == {()}:
        raise ConfigError(
            "env_params: expected leaves [N, ...], one row a task, got first axes "
            f"{sorted(shapes)}"
        )
    ((number,),) = shapes
    if number < task.config.num_groups:
        raise ConfigError(
            f"env_params: expected at least num_groups={task.config.num_groups} tasks, "
            f"got {number}"
        )


def check_params(
    policy: Any, hyper: GroupHyper, params: Any, reference: Any, frozen: Any
) -> None:
    """Raises `ConfigError` for parameters that are not the policy's."""
    if reference is None and np.any(np.asarray(hyper.kl_weight)):
        raise ConfigError(
            f"hyper.kl_weight: expected 0 without a reference, got {hyper.kl_weight}; "
            "give the parameters to stay near to as `reference`"
        )
    if frozen is not None:
        check_apart(params, frozen)
    make = getattr(policy, "init", None)
    if make is None:
        return
    wanted = _shapes(jax.eval_shape(make, jax.random.key(0)))
    trees = {"params": params}
    if reference is not None:
        trees["reference"] = reference
    for argument, tree in trees.items():
        given = _shapes(tree if frozen is None else {**frozen, **tree})
        for name in sorted({*wanted, *given}):
            if wanted.get(name) != given.get(name):
                raise ConfigError(
                    f"{argument}: expected {name} to be "
                    f"{wanted.get(name, 'absent')}, got {given.get(name, 'absent')}; "
                    "they are another policy's, or of a world of other sizes"
                )


def _shapes(tree: Any) -> dict[str, tuple[int, ...]]:
    """Of every leaf, by its path."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): np.shape(leaf)
        for path, leaf in leaves
    }


def begun(key: Key, task: PolicyTask, hyper: GroupHyper, params: Any) -> TrainState:
    """The state before the first iteration.

    Of a copy of `params`: what is trained on is consumed, and these are the caller's.
    """
    init, _ = make_group_step(task.config, task.policy)
    mine = jax.tree.map(jnp.copy, params)
    return init(jax.random.fold_in(key, LEARN), hyper, mine)


def placed(state: Any) -> Any:
    """On the devices where it is, by intention, as what is restored.

    Otherwise the programs of a run that goes on would all be compiled again.
    """

    def place(x: Any) -> Any:
        return jax.device_put(x, x.sharding)

    return jax.tree.map(place, jax.tree.map(jnp.asarray, state))
