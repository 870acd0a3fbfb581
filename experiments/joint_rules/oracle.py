"""What the oracle of a world does, in the words of its rules.

It decides which rules are right: those that say what the oracle does in most of the
times that a situation comes up in tasks of a type.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.joint_rules.places import Place
from jerp.rollout.demonstrations import WithOracle, noisy_oracle
from jerp.rollout.scan import rollout
from jerp.typing import Array, Key

__all__ = [
    "OracleMoves",
    "injected_moves",
    "oracle_moves",
    "right_moves",
    "wrong_moves",
]

NOISE = 0.1
"""Share of random steps: the oracle's own episodes miss the situations of mistakes."""

LEAST_VISITS = 20
"""Fewer say nothing of a situation."""

RIGHT_SHARE = 0.5
"""A rule agrees with the oracle if it says what that does in more of the visits."""


class OracleMoves(NamedTuple):
    """Counts over steps of an oracle that errs.

    Attributes:
      made: `[K, S, M]` int32, by type of task and situation the oracle's moves.
      possible: `[S, M]` int32, steps of a situation in which a move could be made.
    """

    made: np.ndarray
    possible: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """`[K, S, M]`, how often the oracle makes each move; NaN of rare situations."""
        visits = self.made.sum(axis=-1, keepdims=True)
        known = visits >= LEAST_VISITS
        return np.where(known, self.made / np.maximum(visits, 1), np.nan)


def oracle_moves(key: Key, place: Place, number: int) -> OracleMoves:
    """Plays a noisy oracle in `number` training tasks. Consumes `key`."""
    drawing, playing = jax.random.split(key)
    tasks = place.tasks(drawing, number, "train")
    made, possible = _counts(playing, tasks, place=place)
    return OracleMoves(np.asarray(made), np.asarray(possible))


@partial(jax.jit, static_argnames="place")
def _counts(key: Key, tasks: Any, *, place: Place) -> tuple[Array, Array]:
    number = jax.tree.leaves(tasks)[0].shape[0]
    data = rollout(
        *(key, WithOracle(place.env), tasks, noisy_oracle, jnp.float32(NOISE)),
        num_steps=place.horizon,
        batch_size=number,
    )
    shown: Any = data.observation
    fields, oracle = shown["seen"], shown["oracle"]
    situation, legal = fields[..., -1], jnp.asarray(data.legal)
    kinds, moves = (len(place.types), place.rule_sizes)
    made = jnp.zeros((kinds, *moves), jnp.int32)
    types = jnp.broadcast_to(place.type_of(tasks)[:, None], situation.shape)
    counted = made.at[types, situation, place.env.moves(oracle, fields, tasks)].add(
        data.mask.astype(jnp.int32)
    )
    every = jnp.broadcast_to(jnp.arange(legal.shape[-1]), legal.shape)
    can = jax.vmap(place.env.moves, (2, None, None), 2)(every, fields, tasks)
    made_by = jax.nn.one_hot(can, moves[1], dtype=bool) & legal[..., None]
    could = jnp.any(made_by, axis=2) & data.mask[..., None]
    possible = jnp.zeros(moves, jnp.int32).at[situation].add(could.astype(jnp.int32))
    return counted, possible


def right_moves(found: OracleMoves) -> np.ndarray:
    """`[K, S]` int32, the right move of each situation; 0 where there is none."""
    share = np.nan_to_num(found.share, nan=0.0)
    best = share.argmax(axis=-1)
    return np.where(share.max(axis=-1) > RIGHT_SHARE, best, 0).astype(np.int32)


def wrong_moves(right: np.ndarray) -> np.ndarray:
    """`[K, S]` int32, plausible but wrong: right in another type; 0 where none is."""
    wrong = np.zeros_like(right)
    for shift in range(1, len(right)):
        other = np.roll(right, shift, axis=0)
        usable = (wrong == 0) & (right > 0) & (other > 0) & (other != right)
        wrong = np.where(usable, other, wrong)
    return wrong


def injected_moves(found: OracleMoves, number: int) -> np.ndarray:
    """`[K, S]` int32, `number` wrong moves a type, 0 elsewhere.

    What is right in another type first; then what is often possible and never right.
    """
    right = right_moves(found)
    wrong = wrong_moves(right)
    for kind, row in enumerate(right):
        often = found.possible.astype(float)
        often[np.arange(len(row)), row] = -1
        other = often.argmax(axis=1)
        first = (wrong[kind] == 0, found.made[kind].sum(axis=1) * -1)
        order = [s for s in np.lexsort(first[::-1]) if row[s]]
        chosen = np.where(wrong[kind] > 0, wrong[kind], other)
        wrong[kind] = 0
        wrong[kind, order[:number]] = chosen[order[:number]]
    return wrong
