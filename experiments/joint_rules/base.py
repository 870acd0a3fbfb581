"""A policy that follows the rules in its prompt, cloned from someone who does.

Prompts of the demonstrations hold rules of all sorts, right and wrong ones, so that a
rule has to be read to be followed; in what rules are for the demonstrator knows nothing
without one. What is right in the held types and in no other is in none of them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.joint_rules.config import Sizes
from experiments.joint_rules.oracle import oracle_moves, right_moves
from experiments.joint_rules.places import NUM_RULES, Place
from jerp.rollout.rule_demonstrations import rule_demonstrations
from jerp.training.cloning import clone_policy
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome

__all__ = ["all_rules", "cloned_base", "draw_prompts", "left_to_rules", "may_be_told"]

LEAST_POSSIBLE = 20
NO_RULES, RIGHT = 0.2, 0.15
"""Chances of a prompt without rules, and of a rule to be the right one."""

BATCH = 32
"""Episodes an update of the clone."""


def all_rules(sizes: tuple[int, int]) -> np.ndarray:
    """`[S * M, 2]` int32, every pair of situation and move; rule `s * M + m`."""
    return np.indices(sizes).reshape(2, -1).T.astype(np.int32)


def left_to_rules(right: np.ndarray) -> tuple[int, ...]:
    """Situations whose right move depends on the type of task."""
    moves = [{int(m) for m in column if m} for column in right.T]
    return tuple(s for s, known in enumerate(moves) if len(known) > 1)


def may_be_told(
    right: np.ndarray, possible: np.ndarray, held: tuple[int, ...]
) -> np.ndarray:
    """`[S, M]` bool: moves that can be made, but what only held types have right."""
    situations = np.arange(right.shape[1])
    told = possible >= LEAST_POSSIBLE
    told[0] = told[:, 0] = False
    own = np.zeros_like(told)
    for kind in held:
        own[situations, right[kind]] = True
    for kind in set(range(len(right))) - set(held):
        own[situations, right[kind]] = False
    return told & ~own


@jax.jit
def draw_prompts(key: Key, types: Array, right: Array, told: Array) -> Array:
    """`[N, R]` int32 working sets of `all_rules`, for tasks of types `[N]`.

    Situations of a prompt are different ones, in random order. Consumes `key`.
    """
    keys = jax.random.split(key, 5)
    number, moves = len(types), told.shape[1]
    chance = jax.random.uniform(keys[0], (number, told.shape[0]))
    some = jnp.any(told, axis=1)
    # Situations of which nothing may be said come last.
    order = jnp.argsort(jnp.where(some[None], chance, 2.0), axis=1)
    situation = order[:, :NUM_RULES]
    logits = jnp.where(told, 0.0, -jnp.inf)[situation]
    move = jax.random.categorical(keys[1], logits)
    best = right[types[:, None], situation]
    may = told[situation, best]
    prefers = jax.random.uniform(keys[2], situation.shape) < RIGHT
    move = jnp.where(may & prefers, best, move)
    size = jax.random.randint(keys[3], (number, 1), 1, NUM_RULES + 1)
    size = jnp.where(jax.random.uniform(keys[4], (number, 1)) < NO_RULES, 0, size)
    used = (jnp.arange(NUM_RULES)[None] < size) & some[situation]
    return jnp.where(used, situation * moves + move, -1).astype(jnp.int32)


def cloned_base(key: Key, place: Place, sizes: Sizes) -> tuple[Any, dict[str, float]]:
    """Clones a base; `key` is consumed.

    Args:
      key: of all that is drawn.
      place: where.
      sizes: numbers of tasks, demonstrations and epochs, and their noise.

    Returns:
      Parameters, and by name the last `loss` and the demonstrations' `success`.
    """
    keys = jax.random.split(key, 6)
    found = oracle_moves(keys[0], place, sizes.oracle_tasks)
    right = right_moves(found)
    told = may_be_told(right, found.possible, place.held)
    tasks = place.tasks(keys[1], sizes.demonstrations, "train")
    prompts = draw_prompts(keys[2], place.type_of(tasks), right, told)
    data = _shown(
        *(keys[3], tasks, prompts, np.float32(sizes.noise)),
        place=place,
        unknown=left_to_rules(right),
    )
    params, loss = _cloned(keys[5], keys[4], data, place=place, epochs=sizes.epochs)
    success = np.mean(np.asarray(data.outcome) == Outcome.SUCCESS)
    return params, {"loss": float(loss[-1]), "success": float(success)}


@partial(jax.jit, static_argnames=("place", "unknown"))
def _shown(
    key: Key,
    tasks: Any,
    prompts: Array,
    noise: Array,
    *,
    place: Place,
    unknown: tuple[int, ...],
) -> Trajectory:
    return rule_demonstrations(
        *(key, place.env, tasks, jnp.asarray(all_rules(place.rule_sizes)), prompts),
        num_steps=place.horizon,
        batch_size=prompts.shape[0],
        noise=noise,
        unknown=unknown,
    )


@partial(jax.jit, static_argnames=("place", "epochs"))
def _cloned(
    init_key: Key, key: Key, data: Trajectory, *, place: Place, epochs: int
) -> tuple[Any, Array]:
    policy, table = place.policy(), jnp.asarray(all_rules(place.rule_sizes))
    return clone_policy(
        *(key, policy, policy.init(init_key), data),
        epochs=epochs,
        batch_size=BATCH,
        frozen={"rules": table},
    )
