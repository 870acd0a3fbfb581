"""Votes of tasks in the order in which they are cast, for tests that look early.

Symbols: `N` pairs of a run of one agent and one of another, in the order of the runs;
a gain is won by the second alone, a loss by the first.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jerp.estimators.arguments import as_array
from jerp.ops.checks import check_axes
from jerp.ops.segments import dense_group_ids
from jerp.typing import Array, ArrayLike

__all__ = ["first_discordant"]


def first_discordant(
    gain: ArrayLike,
    loss: ArrayLike,
    *,
    task: ArrayLike,
    mask: ArrayLike | None = None,
) -> Array:
    """One vote a task: its first pair that is not concordant.

        v_i = [gain_i] - [loss_i]   if no earlier pair of i's task is a gain or a loss
            = 0                     otherwise

    Pairs of one task are not independent: whatever makes the revision win it once makes
    it win again, and twenty gains of one task are one reason to accept. So a task has
    one vote. Not that of the majority of its pairs, which may change until the last of
    them is there, while this one is final when cast: votes before a pair do not depend
    on it, and one may look after each. A task that has voted needs no further runs.

    With one pair a task, of tasks drawn anew, "no better" is said of the mean success
    over tasks. With several it is said of the number of tasks that gain or lose: small
    losses on many tasks outvote a large gain on few.

    Args:
      gain: `[N]` bool, in the order of the runs: the revision alone succeeded.
      loss: `[N]` bool, the parent alone did; never where `gain` is.
      task: `[N]` int32, equal iff same task.
      mask: `[N]` bool, False for pairs of which a run was not answered; they may hold
        anything. None keeps all.

    Returns:
      `[N]` int32 in {-1, 0, 1}. The sums of the first m are the counts after m pairs.

    Raises:
      ShapeError: other axes or types.

    Reference: Dixon and Mood, "The statistical sign test", JASA 41 (1946): the sign of
      each independent unit; see `jerp.estimators.verdict.task_changes` for the
      majority, where all pairs are there.

    Example:
      >>> gain = jnp.array([False, True, True, False])
      >>> loss = jnp.array([False, False, False, True])
      >>> first_discordant(gain, loss, task=jnp.array([7, 7, 7, 5])).tolist()
      [0, 1, 0, -1]
    """
    gain, loss, task = as_array(gain), as_array(loss), as_array(task)
    kept = jnp.ones(np.shape(gain), bool) if mask is None else as_array(mask)
    check_axes(
        gain=(gain, "N", bool),
        loss=(loss, "N", bool),
        task=(task, "N", int),
        mask=(kept, "N", bool),
    )
    return _first_discordant(*map(jnp.asarray, (gain, loss, task, kept)))


@jax.jit
def _first_discordant(gain: Array, loss: Array, task: Array, kept: Array) -> Array:
    number = kept.shape[0]
    index = dense_group_ids(task, mask=kept).index
    place = jnp.arange(number, dtype=jnp.int32)
    discordant = kept & (gain | loss)
    place = jnp.where(discordant, place, number)
    first = jax.ops.segment_min(place, index, num_segments=number)
    votes = discordant & (place == first[jnp.minimum(index, max(number - 1, 0))])
    net = gain.astype(jnp.int32) - loss.astype(jnp.int32)
    return jnp.where(votes, net, 0)
