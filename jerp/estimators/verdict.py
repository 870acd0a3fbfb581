"""Did training move the boundary? One verdict a category, by a rule fixed beforehand.

Symbols: `N` task rows, `C` categories; `b` gains, tasks that the trained agent alone
solved at the largest k and T, and `c` losses. Nothing is called expanded on the
counts alone: luck gains tasks too. Nor is anything called unmoved: what the tests do
not show is "not enough samples", and `jerp.estimators.power` says how many are.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jerp.errors import InputError
from jerp.estimators.arguments import as_array, broadcast_counts
from jerp.estimators.significance import holm, mcnemar_one_sided
from jerp.ops.checks import check_axes, check_values, concrete
from jerp.ops.segments import dense_group_ids
from jerp.typing import Array, ArrayLike

__all__ = [
    "ALPHA",
    "SEED_LEVEL",
    "BoundaryTest",
    "BoundaryVerdict",
    "TaskChanges",
    "boundary_test",
    "boundary_verdict",
    "task_changes",
]

ALPHA = 0.05
"""Of each direction, over all categories."""

SEED_LEVEL = 0.95
"""Of the interval between seeds that the rule asks for, and of that of efficiency."""


class BoundaryVerdict(IntEnum):
    """What a category says of the second agent against the first."""

    EXPANDED = 0
    """More tasks became solvable than unsolvable, beyond luck; over seeds as well."""
    REGRESSED = 1
    """The mirror of expanded."""
    MORE_EFFICIENT = 2
    """Tasks that both solve are solved in fewer samples; no boundary seen to move."""
    NOT_ENOUGH_SAMPLES = 3
    """None of these was shown."""


class TaskChanges(NamedTuple):
    """How many tasks a training gains and loses.

    Attributes:
      gains: `[]` int32, tasks with more gaining than losing rows.
      losses: `[]` int32, the mirror.
    """

    gains: Array
    losses: Array


def task_changes(
    gain: ArrayLike,
    loss: ArrayLike,
    *,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
) -> TaskChanges:
    """Gains and losses by task, where a task may have a row for each training seed.

        sign_t = sign(#{rows of t that gain} - #{rows of t that lose})
        gains = #{t : sign_t > 0},  losses = #{t : sign_t < 0}

    Rows of one task are not independent, so that they share one vote. With one row a
    task these are the counts of McNemar. Each row must have runs of its own of both
    agents: one agent's luck at a task that stands in several rows is counted by every
    seed of the other, and the test of these counts no longer holds its level.

    Args:
      gain: `[N]` bool, the second agent alone solves the task of the row.
      loss: `[N]` bool, the first alone does; never where `gain` is.
      cluster: `[N]` int, equal iff same task; None takes every row as its own.
      mask: `[N]` bool, False leaves a row out; None keeps all.

    Returns:
      `TaskChanges`.

    Raises:
      ShapeError: another type or axes.

    Reference: Dixon and Mood, "The statistical sign test", JASA 41 (1946): the sign of
      each independent unit.

    Example:
      >>> gain = jnp.array([True, True, False, False])
      >>> loss = jnp.array([False, False, True, True])
      >>> found = task_changes(gain, loss, cluster=jnp.array([7, 7, 7, 5]))
      >>> int(found.gains), int(found.losses)
      (1, 1)
    """
    gain, loss = as_array(gain), as_array(loss)
    kept = jnp.ones(np.shape(gain), bool) if mask is None else as_array(mask)
    check_axes(gain=(gain, "N", bool), loss=(loss, "N", bool), mask=(kept, "N", bool))
    net = jnp.asarray(gain).astype(jnp.int32) - jnp.asarray(loss).astype(jnp.int32)
    votes = jnp.where(kept, net, 0)
    if cluster is not None:
        task = as_array(cluster)
        check_axes(mask=(kept, "N"), cluster=(task, "N", int))
        index = dense_group_ids(task, mask=kept).index
        votes = jax.ops.segment_sum(net, index, num_segments=len(kept))
    return TaskChanges(
        gains=jnp.sum(votes > 0, dtype=jnp.int32),
        losses=jnp.sum(votes < 0, dtype=jnp.int32),
    )


class BoundaryTest(struct.PyTreeNode):
    """One-sided tests of every category, `[C]` float32; NaN where nothing is tested.

    Attributes:
      p_up: of gains over losses, exact.
      p_down: of losses over gains, exact.
      p_up_holm: adjusted over the categories.
      p_down_holm: adjusted over the categories.
    """

    p_up: Array
    p_down: Array
    p_up_holm: Array
    p_down_holm: Array


def boundary_test(
    gains: ArrayLike, losses: ArrayLike, *, mask: ArrayLike | None = None
) -> BoundaryTest:
    """Exact one-sided tests in both directions, each adjusted over the categories.

        p_up = P(X >= b),  p_down = P(X >= c),   X ~ Binomial(b + c, 1 / 2)

    Each direction is a family of its own: that anything is called expanded where
    nothing moved is at most alpha likely, and the same holds for regressed.

    Args:
      gains: `[C]` int32, b.
      losses: `[C]` int32, c.
      mask: `[C]` bool, False for categories without a task: no test. None tests all.

    Returns:
      `BoundaryTest`.

    Raises:
      InputError: negative counts. `ShapeError`, one of them: other types or axes.

    Reference: see `mcnemar_one_sided` and `holm`.

    Example:
      >>> found = boundary_test(jnp.array([9, 3]), jnp.array([1, 3]))
      >>> [round(p, 4) for p in found.p_up_holm.tolist()]
      [0.0215, 0.6562]
    """
    b, c = broadcast_counts(gains=gains, losses=losses)
    tested = jnp.ones(b.shape, bool) if mask is None else as_array(mask)
    check_axes(gains=(b, "C"), losses=(c, "C"), mask=(tested, "C", bool))
    up, down = (
        jnp.where(tested, p, jnp.nan)
        for p in (mcnemar_one_sided(b, c), mcnemar_one_sided(c, b))
    )
    return BoundaryTest(
        p_up=up, p_down=down, p_up_holm=holm(up), p_down_holm=holm(down)
    )


def boundary_verdict(
    test: BoundaryTest,
    *,
    seed_low: ArrayLike,
    seed_high: ArrayLike,
    efficiency_low: ArrayLike,
    alpha: float = ALPHA,
) -> Array:
    """The verdict of every category.

        expanded:       p_up_holm < alpha and the seed interval is above 0
        regressed:      p_down_holm < alpha and the seed interval is below 0
        more efficient: neither, and the efficiency interval is above 0
        not enough samples: none of these

    Args:
      test: of the C categories.
      seed_low: `[C]` float32, lower limit of the 95% interval between seeds of the mean
        of gain - loss (`jerp.estimators.student.student_interval`). NaN with one seed:
        then nothing is asked of seeds, and nothing is known of them.
      seed_high: `[C]` float32, its upper limit.
      efficiency_low: `[C]` float32, lower limit of the interval of the difference of
        Pass@(1, T) on tasks that both agents solve; NaN where there is none.
      alpha: in (0, 1).

    Returns:
      `[C]` int32, see `BoundaryVerdict`.

    Raises:
      InputError: an alpha out of range. `ShapeError`, one of them: other axes.

    Deviations: arXiv:2604.14877 calls a boundary expanded where gains outnumber losses,
      without a test or seeds.

    Reference: the rule above, fixed before any result was seen.

    Example:
      >>> test = boundary_test(jnp.array([9, 5]), jnp.array([0, 1]))
      >>> none = jnp.full(2, jnp.nan)
      >>> found = boundary_verdict(
      ...     test, seed_low=none, seed_high=none, efficiency_low=jnp.array([0.1, 0.1])
      ... )
      >>> [BoundaryVerdict(v).name for v in found.tolist()]
      ['EXPANDED', 'MORE_EFFICIENT']
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha: expected in (0, 1), got {alpha}")
    low, high, efficiency = (
        jnp.asarray(x, jnp.float32) for x in (seed_low, seed_high, efficiency_low)
    )
    check_axes(
        test=(test.p_up_holm, "C"),
        seed_low=(low, "C"),
        seed_high=(high, "C"),
        efficiency_low=(efficiency, "C"),
    )
    _check_order(low, high)
    expanded = (test.p_up_holm < alpha) & (jnp.isnan(low) | (low > 0))
    regressed = (test.p_down_holm < alpha) & (jnp.isnan(high) | (high < 0))
    found = jnp.where(
        efficiency > 0,
        BoundaryVerdict.MORE_EFFICIENT,
        BoundaryVerdict.NOT_ENOUGH_SAMPLES,
    )
    found = jnp.where(regressed, BoundaryVerdict.REGRESSED, found)
    return jnp.where(expanded, BoundaryVerdict.EXPANDED, found).astype(jnp.int32)


def _check_order(low: Array, high: Array) -> None:
    """A single limit that is NaN would waive half of the rule without a word."""
    if (above := concrete(high)) is not None:
        check_values(
            "seed_low",
            low,
            lambda x: (x <= above) | (np.isnan(x) & np.isnan(above)),
            "at most seed_high, or NaN for both",
        )
