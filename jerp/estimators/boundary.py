"""Capability boundaries: which tasks an agent can solve, and how two agents differ.

Symbols: `N` tasks, `K` sample budgets k, `H` horizons T; surfaces are `[N, K, H]`, one
cell `[N]`. "Solved at (k, T)" is what n samples showed, not what is true: an unsolved
task may have a rate up to `unsolved_upper_bound`, and a gained task may be luck, so
changes come with an exact test for each cell and Holm's adjustment over all cells.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax.numpy as jnp
from flax import struct

from jerp.errors import InputError
from jerp.estimators.arguments import broadcast_counts, check_level, row_axes
from jerp.estimators.significance import holm, mcnemar_exact
from jerp.ops.checks import check_axes, check_values
from jerp.typing import Array, ArrayLike

__all__ = [
    "BoundaryChange",
    "CapabilitySet",
    "boundary_change",
    "capability_set",
    "unsolved_upper_bound",
]


class CapabilitySet(NamedTuple):
    """The tasks inside a capability boundary.

    Attributes:
      member: `[N, ...]` bool, the task is solved at that cell.
      defined: `[N, ...]` bool, there was an estimate; a task without one is no member.
    """

    member: Array
    defined: Array


class BoundaryChange(struct.PyTreeNode):
    """Tasks of each cell by which of two agents, A and B, solves them.

    Attributes:
      gains: `[...]` int32, solved by B alone.
      losses: `[...]` int32, solved by A alone.
      both: `[...]` int32.
      neither: `[...]` int32.
      num_excluded: `[...]` int32, tasks that `mask` leaves out.
      p_value: `[...]` float32, exact two-sided McNemar.
      p_holm: `[...]` float32, adjusted over all cells.
    """

    gains: Array
    losses: Array
    both: Array
    neither: Array
    num_excluded: Array
    p_value: Array
    p_holm: Array


def capability_set(estimate: ArrayLike, *, threshold: float = 0.0) -> CapabilitySet:
    """The tasks whose estimate lies above a threshold.

        B = {task : estimate > threshold}

    With pass@k and threshold 0 these are the tasks solved at least once, at any k. A
    set read off n samples grows with n: compare agents at the same n.

    Args:
      estimate: `[N, ...]` float32 in [0, 1], such as pass@k. NaN, too few samples or
        too little coverage, is neither in the set nor out of it.
      threshold: in [0, 1).

    Returns:
      `CapabilitySet`; hand `defined` on as a mask.

    Reference: arXiv:2604.14877, section 2, where k goes to infinity.

    Example:
      >>> found = capability_set(jnp.array([0.0, 0.25, jnp.nan]))
      >>> found.member.tolist(), found.defined.tolist()
      ([False, True, False], [True, True, False])
    """
    if not 0 <= threshold < 1:
        raise InputError(f"threshold: expected in [0, 1), got {threshold}")
    estimate = jnp.asarray(estimate, jnp.float32)
    check_values(
        "estimate", estimate, lambda x: ~((x < 0) | (x > 1)), "in [0, 1], or NaN"
    )
    defined = (estimate >= 0) & (estimate <= 1)
    return CapabilitySet(member=defined & (estimate > threshold), defined=defined)


def boundary_change(
    a: CapabilitySet | ArrayLike,
    b: CapabilitySet | ArrayLike,
    *,
    mask: ArrayLike | None = None,
) -> BoundaryChange:
    """How the boundary moves from agent A to agent B, with an exact test a cell.

        gains = |B - A|,  losses = |A - B|,  p of gains against losses by McNemar

    Args:
      a: `[N, ...]` bool, tasks that A solves; or a `CapabilitySet`, of which what is
        not defined is left out.
      b: same shape; row i is of the same task as in `a`.
      mask: `[N]` or `[N, ...]` bool, False leaves a task out (of a cell). None keeps
        all.

    Returns:
      `BoundaryChange` of shape `[...]`; its four counts and `num_excluded` add up to N.

    Raises:
      ShapeError: sets or a mask that are not bool, or not of one shape.

    Deviations: arXiv:2604.14877 reports gains and losses without a test. Its 5:1, 3:7
      and 9:1 give p = .22, .34 and .021.

    Reference: see `mcnemar_exact` and `holm`.

    Example:
      >>> a, b = jnp.array([True, False, False]), jnp.array([True, True, False])
      >>> c = boundary_change(a, b)
      >>> int(c.gains), int(c.losses), int(c.both), int(c.neither), float(c.p_value)
      (1, 0, 1, 1, 1.0)
    """
    defined = [x.defined for x in (a, b) if isinstance(x, CapabilitySet)]
    a, b = (
        jnp.asarray(x.member if isinstance(x, CapabilitySet) else x) for x in (a, b)
    )
    kept = jnp.ones(a.shape, bool) if mask is None else jnp.asarray(mask)
    axes = row_axes(a)
    by_task = kept.ndim == 1
    check_axes(
        a=(a, axes, bool), b=(b, axes, bool), mask=(kept, axes[:by_task] or axes, bool)
    )
    if by_task:
        kept = kept.reshape(a.shape[:1] + (1,) * (a.ndim - 1))
    kept = jnp.broadcast_to(kept, a.shape)
    for each in defined:
        kept &= each

    def count(cell: Array) -> Array:
        return jnp.sum(cell, axis=0, dtype=jnp.int32)

    gains, losses = count(kept & b & ~a), count(kept & a & ~b)
    p_value = mcnemar_exact(gains, losses)
    return BoundaryChange(
        gains=gains,
        losses=losses,
        both=count(kept & a & b),
        neither=count(kept & ~a & ~b),
        num_excluded=count(~kept),
        p_value=p_value,
        p_holm=holm(p_value),
    )


def unsolved_upper_bound(num_samples: ArrayLike, *, level: float = 0.95) -> Array:
    """How large a success rate may still be after n samples without a success.

        p <= 1 - (1 - level)^(1 / n)

    "Unsolved in 64" is compatible with every rate up to .0457 at 95%. The rule of three
    says 3 / n (3 / 64 = .047), which is this bound for large n and a little above it.

    Args:
      num_samples: `[...]` int32, n >= 0, independent samples of one task.
      level: of the one-sided bound.

    Returns:
      `[...]` float32; 1 where n = 0, NaN under jit where n < 0.

    Reference: Hanley and Lippman-Hand, "If nothing goes wrong, is everything all
      right?", JAMA 249 (1983).

    Example:
      >>> round(float(unsolved_upper_bound(64)), 4), round(3 / 64, 4)
      (0.0457, 0.0469)
    """
    check_level(level)
    (n,) = broadcast_counts(num_samples=num_samples)
    # In float32 a level close to 1 would be 1.
    exponent = jnp.float32(math.log1p(-level)) / jnp.maximum(n, 1).astype(jnp.float32)
    bound = jnp.where(n > 0, -jnp.expm1(exponent), 1.0)
    return jnp.where(n >= 0, bound, jnp.nan)
