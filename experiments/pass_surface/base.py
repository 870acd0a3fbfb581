"""A weak base, cloned from someone who is often too lazy to look things up.

Of the demonstrations in `lookup` most answer after at most one look-up, by a guess that
is as good as can be; of the questions that need none, some are answered carelessly. So
the base solves questions of every kind sometimes, and none reliably. A few episodes of
other worlds' oracles are cloned along: what training on questions makes it forget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import struct

from experiments.pass_surface.config import CATEGORIES, TRAINED_LIMIT, Sizes
from experiments.pass_surface.places import Place, place_named
from jerp.envs.lookup import Lookup
from jerp.envs.lookup_tasks import LookupKind, LookupParams
from jerp.envs.shared_words import SharedWords
from jerp.models.token_policy import TokenPolicy
from jerp.records import LossOutput, WeightedMean
from jerp.rollout.demonstrations import demonstrations
from jerp.training.minibatches import minimize
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, Outcome

__all__ = ["Habits", "cloned_base", "draw_habits", "lazy_episodes"]

AT_ONCE = 8
"""Episodes of questions that are cloned beside one episode of each other world."""

BUNDLES = 4
"""Such bundles an update."""

ROUND = 32
"""Tokens of the longest episode are rounded up to a multiple of it."""

NO_SLIP = -1


class Habits(struct.PyTreeNode):
    """Questions, and how each is answered; leaves `[N, ...]`.

    Attributes:
      tasks: questions.
      patience: `[N]` int32, look-ups after which an answer is given.
      slip: `[N]` int32, the value that is answered, whatever is known; `NO_SLIP` for
        the answer that an oracle gives.
    """

    tasks: LookupParams
    patience: Array
    slip: Array


@dataclass(frozen=True)
class Lazy:
    """`lookup` with an oracle of habits, which are part of the task.

    Attributes:
      env: what is played, in the words of all worlds.
    """

    env: SharedWords

    def __getattr__(self, name: str) -> Any:
        # What habits do not touch is the world's.
        return getattr(self.env, name)

    def reset(self, key: Key, params: Habits) -> Any:
        """Starts an episode. Consumes `key`."""
        return self.env.reset(key, params.tasks)

    def step(self, key: Key, state: Any, action: Array, params: Habits) -> Any:
        """Plays `action`. Consumes `key`."""
        return self.env.step(key, state, action, params.tasks)

    def oracle(self, state: Any, params: Habits) -> Array:
        """`[]` int32: an oracle that has run out of look-ups once patience is over."""
        world: Any = self.env.world
        tasks = params.tasks
        left = tasks.replace(limit=jnp.minimum(tasks.limit, params.patience))
        action, first = world.oracle(state, left), world.size.num_entities
        slips = (action >= first) & (params.slip != NO_SLIP)
        return jnp.where(slips, first + params.slip, action).astype(jnp.int32)


def draw_habits(key: Key, tasks: LookupParams, world: Lookup, sizes: Sizes) -> Habits:
    """How questions are answered in the demonstrations; half hide their budget.

    Args:
      key: consumed.
      tasks: N questions.
      world: says how many values there are.
      sizes: shares of the lazy and of the careless.
    """
    keys = jax.random.split(key, 5)
    number = tasks.kind.shape
    lazy = jax.random.bernoulli(keys[0], sizes.lazy, number)
    few = jax.random.randint(keys[1], number, 0, 2)
    careless = jax.random.bernoulli(keys[2], sizes.careless, number)
    careless &= tasks.kind == LookupKind.DIRECT
    value = jax.random.randint(keys[3], number, 0, world.size.num_values)
    announced = jax.random.bernoulli(keys[4], 0.5, number)
    return Habits(
        tasks=tasks.replace(announced=announced),
        patience=jnp.where(lazy, few, TRAINED_LIMIT),
        slip=jnp.where(careless, value, NO_SLIP),
    )


def lazy_episodes(key: Key, place: Place, habits: Habits) -> Trajectory:
    """Episodes of habits, one of each; `key` is consumed."""
    return _shown(
        *(key, habits),
        env=Lazy(place.env),
        policy=place.policy(),
        num_steps=place.num_steps,
    )


@partial(jax.jit, static_argnames=("env", "policy", "num_steps"))
def _shown(
    key: Key, tasks: Any, *, env: Any, policy: TokenPolicy, num_steps: int
) -> Trajectory:
    """An episode a task, with the tokens that the decoder would write."""
    number = jax.tree.leaves(tasks)[0].shape[0]
    data = demonstrations(*(key, env, tasks), num_steps=num_steps, batch_size=number)
    return policy.with_tokens(data)


def cloned_base(key: Key, sizes: Sizes) -> tuple[Any, dict[str, Any]]:
    """Clones a base; `key` is consumed.

    Returns:
      Parameters, and of the demonstrations of each kind of question the share that
      succeeds, beside the last `loss`.
    """
    keys = jax.random.split(key, 5)
    place, number = place_named("lookup"), sizes.demonstrations
    tasks = place.tasks(keys[0], number, "train")
    habits = draw_habits(keys[1], tasks, place.env.world, sizes)  # pyright: ignore
    data = {"lookup": lazy_episodes(keys[2], place, habits)}
    succeeded = np.asarray(data["lookup"].outcome) == Outcome.SUCCESS
    kinds = np.asarray(tasks.kind)
    notes = {
        f"demonstrated {category}": float(succeeded[kinds == kind].mean())
        for kind, category in enumerate(CATEGORIES)
    }
    for index, world in enumerate(sizes.other_worlds):
        stream = jax.random.fold_in(keys[3], index)
        data[world] = _oracle_episodes(stream, place_named(world), number // AT_ONCE)
    params, loss = _cloned(keys[4], data, epochs=sizes.epochs)
    return params, {**notes, "loss": float(loss[-1])}


def _oracle_episodes(key: Key, place: Place, number: int) -> Trajectory:
    drawing, playing = jax.random.split(key)
    return _shown(
        playing,
        place.tasks(drawing, number, "train"),
        env=place.env,
        policy=place.policy(),
        num_steps=place.num_steps,
    )


def _cloned(
    key: Key, data: Mapping[str, Trajectory], *, epochs: int
) -> tuple[Any, Array]:
    """Clones all worlds at once, a bundle of their episodes after the other."""
    policies = {
        world: replace(place_named(world).policy(), capacity=_longest(rows))
        for world, rows in data.items()
    }
    number = min(len(np.asarray(rows.outcome)) for rows in data.values())
    bundles = jax.tree.map(lambda x: x[: x.shape[0] // number * number], dict(data))
    bundles = jax.tree.map(lambda x: x.reshape(number, -1, *x.shape[1:]), bundles)
    return _minimized(key, tuple(policies.items()), bundles, epochs=epochs)


def _longest(data: Trajectory) -> int:
    """Tokens of the longest episode, up to a round number."""
    seen: Any = data.observation
    count = np.sum(np.asarray(seen) != 0, axis=(1, 2))
    count = count + np.sum(np.asarray(data.token_mask), axis=(1, 2))
    return -ROUND * (-int(count.max()) // ROUND)


@partial(jax.jit, static_argnames=("policies", "epochs"))
def _minimized(
    key: Key,
    policies: tuple[tuple[str, TokenPolicy], ...],
    bundles: dict[str, Trajectory],
    *,
    epochs: int,
) -> tuple[Any, Array]:
    """Parameters and the loss by epoch: the mean over the decisions of all worlds."""
    making, minimizing = jax.random.split(key)

    def loss_fn(params: Any, rows: Any, mask: Array, key: Key) -> LossOutput:
        del key
        losses = [
            _negative_log_likelihood(policy, params, rows[world], mask)
            for world, policy in policies
        ]
        total = sum((one.total for one in losses), jnp.zeros(()))
        return LossOutput(
            WeightedMean(total, sum((one.weight for one in losses), jnp.zeros(()))), {}
        )

    params, _, output = minimize(
        minimizing,
        policies[0][1].init(making),
        lambda _: cast(Any, bundles),
        jnp.int32(jax.tree.leaves(bundles)[0].shape[0]),
        loss_fn=loss_fn,
        optimizer=optax.adam(1e-3),
        epochs=epochs,
        batch_size=BUNDLES,
    )
    return params, output.loss.value()


def _negative_log_likelihood(
    policy: TokenPolicy, params: Any, bundles: Trajectory, mask: Array
) -> WeightedMean:
    """Of the decisions in the bundles `[M, E]` that are real."""
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), bundles)
    found = policy.evaluate(params, rows)
    real = jnp.repeat(mask, rows.mask.shape[0] // mask.shape[0])
    token_mask: Any = rows.token_mask
    decisions = token_mask & (rows.mask & real[:, None])[..., None] & found.choice
    total = -jnp.sum(jnp.where(decisions, found.log_prob, 0.0))
    return WeightedMean(total, jnp.sum(decisions, dtype=jnp.float32))
