"""Groups of which something can be learned: dead ones are replaced by fresh ones.

Episodes are compared with those of their group, and a group whose episodes were all
worth the same teaches nothing. DAPO samples until the batch is full of groups that do.
Here a batch has a slot a group, and rounds of groups are played until every slot holds
a live one, or for so many rounds; the shapes are static, so all is one program. A round
costs what the first one did, however few slots are still dead: with a share `d` of dead
groups about `1 / (1 - d)` rounds are played, and where `d` is near 1 a limit is what
keeps an iteration short.

Rows are as `rollout` has them: of G groups, row `b` is of group `b % G`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.ops.checks import check_count
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = [
    "LiveGroups",
    "fill_dead_groups",
    "play_live_groups",
    "play_live_groups_from_host",
]

_NEXT_ROUND = 2**31 - 1
"""Folded into the key of a round to give that of the next: no small number, of which
the round itself may make its own keys."""


class LiveGroups(struct.PyTreeNode):
    """A batch, and what it took to fill it.

    Attributes:
      data: `[G M]` episodes; `group_id` is the slot.
      live: `[G]` bool, slots whose group teaches something.
      rounds: `[]` int32, rounds played; each is a batch of episodes.
      dead_share: `[]` float32, dead groups of the first round, before anything was
        replaced.
    """

    data: Trajectory
    live: Array
    rounds: Array
    dead_share: Array


def fill_dead_groups(
    data: Trajectory, live: Array, fresh: Trajectory, fresh_live: Array
) -> tuple[Trajectory, Array]:
    """Puts live groups of another round into the slots that are dead, in order.

    Args:
      data: `[G M]` episodes, row `b` of slot `b % G`.
      live: `[G]` bool, of the slots.
      fresh: as `data`.
      fresh_live: `[G]` bool, of its groups.

    Returns:
      The filled batch, in which rows keep the `group_id` of their slot, and `[G]` bool
      which slots are live now. Anchors were numbered round by round: they can be
      compared within a group.

    Example:
      >>> from types import SimpleNamespace
      >>> class Rows(struct.PyTreeNode):
      ...     task_id: Array
      ...     group_id: Array
      >>> slots = jnp.arange(3)
      >>> old, new = Rows(jnp.array([10, 11, 12]), slots), Rows(slots + 20, slots)
      >>> live, fresh = jnp.array([False, True, False]), jnp.array([False, True, True])
      >>> filled, live = fill_dead_groups(old, live, new, fresh)
      >>> filled.task_id.tolist(), live.tolist()
      ([21, 11, 22], [True, True, True])
    """
    groups = live.shape[0]
    live_first = jnp.argsort(~fresh_live, stable=True)
    # The i-th dead slot takes the i-th live group, while there is one.
    number = jnp.cumsum(~live) - 1
    filled = ~live & (number < jnp.sum(fresh_live))
    source = live_first[jnp.maximum(number, 0)]

    def rows(old: Array, new: Array) -> Array:
        old, new = (x.reshape(-1, groups, *x.shape[1:]) for x in (old, new))
        taken = filled.reshape(1, groups, *(1,) * (old.ndim - 2))
        chosen = jnp.where(taken, new[:, source], old)
        return chosen.reshape(-1, *chosen.shape[2:])

    after = jax.tree.map(rows, data, fresh)
    return after.replace(group_id=data.group_id), live | filled


def play_live_groups(
    key: Key,
    play: Callable[[Key], Trajectory],
    is_live: Callable[[Trajectory], Array],
    *,
    max_rounds: int,
) -> LiveGroups:
    """Plays rounds of groups until every slot of the batch has a live one.

    Round 1 plays with `key`, and what it gives stays where it is, dead groups included
    until one takes their slot; every round is of fresh keys.

    Args:
      key: consumed.
      play: draws tasks and plays G groups of M episodes, rows as above; traced once.
      is_live: of episodes, `[G]` bool.
      max_rounds: at least 1. What is dead after so many stays in the batch, for a loss
        that leaves it out.

    Returns:
      `LiveGroups`.

    Raises:
      InputError: `max_rounds` below 1.

    Deviations: the released code plays more prompts a round than a batch has; here a
      round is a batch. Live groups that find no slot are thrown away in both.

    Reference: DAPO, Yu et al., arXiv:2503.14476, section 3.2 and eq. 11.
    """
    check_count("max_rounds", max_rounds)
    shapes = jax.eval_shape(lambda key: _judged(play, is_live, key), key)
    data, live = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)

    def unfinished(carry: _Carry) -> Array:
        return ~jnp.all(carry.live) & (carry.rounds < max_rounds)

    def another(carry: _Carry) -> _Carry:
        fresh, fresh_live = _judged(play, is_live, carry.key)
        filled, live = fill_dead_groups(carry.data, carry.live, fresh, fresh_live)
        first = carry.rounds == 0
        return _Carry(
            key=jax.random.fold_in(carry.key, _NEXT_ROUND),
            data=jax.tree.map(lambda x, y: jnp.where(first, x, y), fresh, filled),
            live=jnp.where(first, fresh_live, live),
            rounds=carry.rounds + 1,
            dead=jnp.where(first, jnp.sum(~fresh_live), carry.dead),
        )

    zero = jnp.zeros((), jnp.int32)
    last = lax.while_loop(unfinished, another, _Carry(key, data, live, zero, zero))
    return LiveGroups(last.data, last.live, last.rounds, last.dead / live.shape[0])


def play_live_groups_from_host(
    key: Key,
    play: Callable[[Key], Trajectory],
    is_live: Callable[[Trajectory], Array],
    *,
    max_rounds: int,
) -> LiveGroups:
    """As `play_live_groups`, and the same batch, where `play` cannot be traced.

    Args:
      key: consumed.
      play: see `play_live_groups`; called once a round.
      is_live: see `play_live_groups`.
      max_rounds: see `play_live_groups`.

    Returns:
      `LiveGroups`.

    Raises:
      InputError: `max_rounds` below 1.
    """
    check_count("max_rounds", max_rounds)
    data = play(key)
    live = first = is_live(data)
    rounds = 1
    while not jnp.all(live) and rounds < max_rounds:
        key = jax.random.fold_in(key, _NEXT_ROUND)
        fresh = play(key)
        data, live = fill_dead_groups(data, live, fresh, is_live(fresh))
        rounds += 1
    return LiveGroups(data, live, jnp.int32(rounds), jnp.mean(~first))


class _Carry(NamedTuple):
    key: Key
    data: Trajectory
    live: Array
    rounds: Array
    dead: Array


def _judged(
    play: Callable[[Key], Trajectory],
    is_live: Callable[[Trajectory], Array],
    key: Key,
) -> tuple[Trajectory, Array]:
    data = play(key)
    return data, is_live(data)
