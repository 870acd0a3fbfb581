"""How new what an agent does is to another: its tokens, and its sequences of queries.

Symbols: `N` tasks, `M` and `L` runs of a task by two agents. A sequence is all queries
of a run in order, as an id: equal iff the sequences are, numbered over all agents of
a task together (`np.unique(..., return_inverse=True)`). A task whose runs are all left
out has no value: NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jerp.estimators.passk import pass_at_k
from jerp.ops.checks import check_axes, check_count, check_values
from jerp.typing import Array, ArrayLike

__all__ = [
    "SequenceOverlap",
    "distinct_sequences",
    "perplexity",
    "sequence_overlap",
]


class SequenceOverlap(NamedTuple):
    """How much of what A does B does too; leaves `[N]` float32.

    Attributes:
      known: share of A's runs whose sequence at least one run of B has.
      common: 1 minus the total variation distance of the two distributions.
    """

    known: Array
    common: Array


def perplexity(values: Mapping[str, ArrayLike], weight: ArrayLike) -> Array:
    """How surprising tokens are to a model, a `Statistic` over tasks.

        PPL = exp(- sum_i w_i l_i / sum_i w_i c_i)

    with l_i the sum of the log-probabilities of task i's tokens and c_i their number.
    Every token weighs alike, so that a task with longer episodes weighs more. A token
    that the model could not have left out tells nothing of it: count none of those
    that a grammar forces, or every perplexity comes nearer to 1.

    Args:
      values: `log_prob` and `count`, `[N, ...]` float32 each.
      weight: `[N]` float32.

    Returns:
      `[...]` float32; NaN where no token is weighed.

    Reference: arXiv:2604.14877, mechanism (a): of the base model, on successful runs of
      the trained one.

    Example:
      >>> values = {"log_prob": jnp.log(jnp.array([0.25, 0.5])), "count": jnp.ones(2)}
      >>> round(float(perplexity(values, jnp.array([1.0, 1.0]))), 4)
      2.8284
    """
    total, count = (
        jnp.tensordot(weight, values[name], axes=1, precision=jax.lax.Precision.HIGHEST)
        for name in ("log_prob", "count")
    )
    return jnp.where(count > 0, jnp.exp(-total / jnp.maximum(count, 1e-30)), jnp.nan)


def distinct_sequences(
    sequence: ArrayLike, *, draws: int | None = None, mask: ArrayLike | None = None
) -> Array:
    """How many different sequences are among a task's runs, or among some of them.

        D_m = sum over sequences s of  1 - C(n - f_s, m) / C(n, m)

    the expected number among m of the n runs, without bias, f_s of which have s; all of
    them for m = n. Agents with different n are compared at one m.

    Args:
      sequence: `[N, M]` int, at least 0.
      draws: static; m, or None for all that a task has.
      mask: `[N, M]` bool, False leaves a run out; None keeps all.

    Returns:
      `[N]` float32; NaN for a task with fewer than m runs, or none.

    Raises:
      InputError: an id below 0, or no draws. `ShapeError`, one of them: other axes.

    Deviations: arXiv:2604.14877 counts those among 64 runs of each agent.

    Reference: Hurlbert, "The nonconcept of species diversity", Ecology 52 (1971),
      eq. 3 (rarefaction).

    Example:
      >>> runs = jnp.array([[3, 3, 3, 8]])
      >>> distinct_sequences(runs).tolist(), distinct_sequences(runs, draws=2).tolist()
      ([2.0], [1.5])
    """
    sequence, kept = _sequences("sequence", sequence, mask)
    number = jnp.sum(kept, axis=1, dtype=jnp.int32)
    alike = jnp.where(kept, _counts(sequence, sequence), 0)
    if draws is None:
        drawn = (alike > 0).astype(jnp.float32)
    else:
        check_count("draws", draws)
        drawn = pass_at_k(number[:, None], alike, k=draws)
    # Each of the f runs with a sequence brings its share of it.
    share = jnp.where(kept, drawn / jnp.maximum(alike, 1).astype(jnp.float32), 0.0)
    return jnp.where(number > 0, jnp.sum(share, axis=1), jnp.nan)


def sequence_overlap(
    a: ArrayLike,
    b: ArrayLike,
    *,
    mask_a: ArrayLike | None = None,
    mask_b: ArrayLike | None = None,
) -> SequenceOverlap:
    """How much two agents' sequences have in common, task by task.

        known  = sum_s p_A(s) [p_B(s) > 0]
        common = 1 - 1/2 sum_s |p_A(s) - p_B(s)| = sum_s min(p_A(s), p_B(s))

    with p the shares among the runs that there are. Both grow with the runs: an agent
    with more sequences than runs has not even all in common with itself. Its ceiling is
    the overlap of one half of its runs with the other half, and what is compared with
    that needs as many runs.

    Args:
      a: `[N, M]` int, at least 0, sequences of A.
      b: `[N, L]` int, of B, numbered together with A's.
      mask_a: `[N, M]` bool, False leaves a run out; None keeps all.
      mask_b: `[N, L]` bool.

    Returns:
      `SequenceOverlap`; NaN for a task without a run on either side.

    Raises:
      InputError: an id below 0. `ShapeError`, one of them: other axes.

    Reference: arXiv:2604.14877, mechanism (b), has shares replaced and kept; how they
      are counted is not said. `common` is ours.

    Example:
      >>> a, b = jnp.array([[1, 1, 2, 3]]), jnp.array([[1, 2, 2, 2]])
      >>> found = sequence_overlap(a, b)
      >>> found.known.tolist(), found.common.tolist()
      ([0.75], [0.5])
    """
    check_axes(a=(a, "N M"), b=(b, "N L"))
    a, kept_a = _sequences("a", a, mask_a)
    b, kept_b = _sequences("b", b, mask_b)
    number_a, number_b = (
        jnp.sum(kept, axis=1, dtype=jnp.float32) for kept in (kept_a, kept_b)
    )
    in_a, in_b = (_counts(a, x).astype(jnp.float32) for x in (a, b))
    share_a, share_b = (
        count / jnp.maximum(number, 1.0)[:, None]
        for count, number in ((in_a, number_a), (in_b, number_b))
    )
    kept_ratio = jnp.minimum(1.0, share_b / jnp.where(share_a > 0, share_a, 1.0))
    defined = (number_a > 0) & (number_b > 0)

    def mean(value: Array) -> Array:
        total = jnp.sum(jnp.where(kept_a, value, 0.0), axis=1)
        return jnp.where(defined, total / jnp.maximum(number_a, 1.0), jnp.nan)

    return SequenceOverlap(mean((in_b > 0).astype(jnp.float32)), mean(kept_ratio))


def _sequences(
    name: str, sequence: ArrayLike, mask: ArrayLike | None
) -> tuple[Array, Array]:
    """Ids, -1 for runs that are left out, and which are not."""
    kept = jnp.ones(jnp.shape(sequence), bool) if mask is None else jnp.asarray(mask)
    mask_name = "mask" if name == "sequence" else f"mask_{name}"
    check_axes(**{name: (sequence, "N M", int), mask_name: (kept, "N M", bool)})
    check_values(name, sequence, lambda v: v >= 0, ">= 0", mask=mask)
    sequence = jnp.asarray(sequence).astype(jnp.int32)
    return jnp.where(kept, sequence, -1), kept


def _counts(one: Array, other: Array) -> Array:
    """`[N, M]` int32: how many of `other` `[N, L]` are what each of `one` is."""

    def task(one: Array, other: Array) -> Array:
        ordered = jnp.sort(other)
        ends = [jnp.searchsorted(ordered, one, side=side) for side in ("left", "right")]
        return (ends[1] - ends[0]).astype(jnp.int32)

    return jax.vmap(task)(one, other)
