"""Counting recorded runs at horizons: who had succeeded, failed, or never answered.

Symbols: `N` tasks, `M` samples a task, `H` horizons T in one unit of spending. Two
protocols: "nested" cuts each recorded run at every T, "rerun" has separate runs for
each T. INFRASTRUCTURE is neither a success nor a failure, unless the run would not have
been finished at T anyway.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jerp.errors import InputError
from jerp.ops.checks import (
    check_any,
    check_axes,
    check_choice,
    check_count,
    check_values,
    concrete,
)
from jerp.typing import Array, ArrayLike, Outcome

__all__ = [
    "Protocol",
    "Tally",
    "increasing_horizons",
    "solved_in_first",
    "tally_runs",
]

Protocol = Literal["nested", "rerun"]


class Tally(struct.PyTreeNode):
    """Counts of each task at each horizon.

    Attributes:
      num_existing: `[N, H]` int32, samples that exist and are valid.
      num_correct: `[N, H]` int32, those that succeeded by T.
      num_infrastructure: `[N, H]` int32, those without an answer at T.
      broken: `[N, H]` bool, some sample there is invalid.
      num_invalid: `[]` int32, invalid samples; they are in no count.
    """

    num_existing: Array
    num_correct: Array
    num_infrastructure: Array
    broken: Array
    num_invalid: Array


def tally_runs(
    spent: ArrayLike,
    outcome: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    horizons: Sequence[float],
    protocol: Protocol = "nested",
) -> Tally:
    """Successes and unanswered runs of each task at each horizon.

        nested: c_T = #{SUCCESS and spent <= T}
                u_T = #{INFRASTRUCTURE and not spent > T}
        rerun:  c_T, u_T = #{SUCCESS}, #{INFRASTRUCTURE} of the runs made with T

    Every other sample that exists has failed at T.

    Args:
      spent: `[N, M]` float32, at least 0: what each run had spent when it ended. NaN
        only for INFRASTRUCTURE. For "rerun" `[H, N, M]`, at most T.
      outcome: int of the same shape, `jerp.typing.Outcome`.
      mask: bool of the same shape, True for samples that exist; None for all. The other
        samples may hold anything, NaN included.
      horizons: static, strictly increasing, finite, at least 0.
      protocol: see above.

    Returns:
      `Tally`. Under jit, samples that contradict the contract are counted as invalid.

    Raises:
      InputError: N or M is 0, no sample exists, or the shape is not the protocol's;
        and, where Python can see it, an outcome that is none, or spending that is
        negative, NaN for a run with an answer, or above T in a rerun. `ShapeError`, one
        of them: an outcome that is no int, a mask that is no bool, or another shape.

    Example:
      >>> spent = jnp.array([[1.0, 3.0, 2.0, 5.0]])
      >>> outcome = jnp.array([[1, 1, 0, 4]])  # two successes, a failure, a crash
      >>> t = tally_runs(spent, outcome, horizons=(2, 4, 6))
      >>> t.num_correct.tolist(), t.num_infrastructure.tolist()
      ([[1, 2, 2]], [[0, 0, 1]])
    """
    runs, horizons = _checked(spent, outcome, mask, horizons, protocol)
    return _counts(*runs, horizons=horizons, protocol=protocol)


def solved_in_first(
    spent: ArrayLike,
    outcome: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    k: int,
    horizons: Sequence[float],
    protocol: Protocol = "nested",
) -> Array:
    """Whether one of the first k answered runs of each task has succeeded by T.

    Its mean over tasks is PASS@(k, T) of these k runs. Solved at all in n runs grows
    with n; this compares agents at one k, however many runs either has.

    Args:
      spent: see `tally_runs`, as are the arguments not named here.
      outcome: int of the same shape.
      mask: bool of the same shape.
      k: at least 1; a task with fewer answered runs has but these.
      horizons: static, H of them.
      protocol: see `tally_runs`.

    Returns:
      `[N, H]` bool.

    Raises:
      InputError: a k below 1, and what `tally_runs` refuses.

    Example:
      >>> spent = jnp.array([[1.0, 3.0, 2.0, 2.0]])
      >>> outcome = jnp.array([[4, 0, 1, 1]])  # a crash, a failure, two successes
      >>> [
      ...     solved_in_first(spent, outcome, k=k, horizons=(2,)).tolist()
      ...     for k in (1, 2)
      ... ]
      [[[False]], [[True]]]
    """
    check_count("k", k)
    runs, horizons = _checked(spent, outcome, mask, horizons, protocol)
    return _solved(*runs, k=k, horizons=horizons, protocol=protocol)


def increasing_horizons(horizons: Sequence[float]) -> tuple[float, ...]:
    """Horizons as a tuple, refused unless they are finite and strictly increasing.

    Args:
      horizons: at least 0, in the unit of the spending that they cap.

    Returns:
      The horizons as floats.

    Raises:
      InputError: there is none, or they are not as said in float32, in which they will
        be compared.

    Example:
      >>> increasing_horizons([0, 1, 5])
      (0.0, 1.0, 5.0)
    """
    found = np.asarray(horizons, np.float32)
    good = found.ndim == 1 and found.size > 0 and np.isfinite(found).all()
    if not (good and found[0] >= 0 and (np.diff(found) > 0).all()):
        raise InputError(
            "horizons: expected finite numbers >= 0, strictly increasing in float32, "
            f"got {horizons!r}"
        )
    return tuple(float(horizon) for horizon in horizons)


def _checked(
    spent: ArrayLike,
    outcome: ArrayLike,
    mask: ArrayLike | None,
    horizons: Sequence[float],
    protocol: Protocol,
) -> tuple[tuple[Array, Array, Array], tuple[float, ...]]:
    """The runs as arrays, and the horizons, if they are as `tally_runs` says."""
    check_choice("protocol", protocol, get_args(Protocol))
    horizons = increasing_horizons(horizons)
    _check_shape(np.shape(spent), protocol, len(horizons))
    mask = jnp.ones(np.shape(spent), bool) if mask is None else mask
    axes = "H N M" if protocol == "rerun" else "N M"
    check_axes(spent=(spent, axes), outcome=(outcome, axes), mask=(mask, axes, bool))
    _check_runs(spent, outcome, mask, horizons if protocol == "rerun" else None)
    check_axes(outcome=(outcome, axes, int))
    return (jnp.asarray(spent), jnp.asarray(outcome), jnp.asarray(mask)), horizons


def _check_shape(shape: tuple[int, ...], protocol: str, num_horizons: int) -> None:
    lead = (num_horizons,) if protocol == "rerun" else ()
    if len(shape) < 2 or shape[:-2] != lead:
        axes = f"[H = {num_horizons}, N, M]" if protocol == "rerun" else "[N, M]"
        raise InputError(
            f"spent: expected {axes} for protocol {protocol!r}, got {list(shape)}"
        )
    if 0 in shape:
        raise InputError(
            f"spent: expected at least one task and one sample, got {list(shape)}"
        )


def _check_runs(
    spent: ArrayLike,
    outcome: ArrayLike,
    mask: ArrayLike,
    caps: tuple[float, ...] | None,
) -> None:
    """Refuses what can be seen to contradict the contract of `tally_runs`."""
    check_any("mask", mask)
    spending, ended, real = concrete(spent), concrete(outcome), concrete(mask)
    if spending is None or ended is None or real is None:
        return
    check_values(
        "outcome",
        np.where(real, ended, 0),
        lambda v: (v >= 0) & (v < len(Outcome)),
        f"an Outcome, 0 to {len(Outcome) - 1}",
    )
    spending = spending.astype(np.float32)
    known = real & ~((ended == Outcome.INFRASTRUCTURE) & np.isnan(spending))
    spending = np.where(known, spending, 0)
    check_values(
        "spent", spending, lambda v: v >= 0, ">= 0, and NaN only for INFRASTRUCTURE"
    )
    if caps is not None:
        most = np.array(caps, np.float32)[:, None, None]
        check_values("spent", spending, lambda v: v <= most, "at most T in a rerun")


class _Marks(NamedTuple):
    """What each run was at each horizon, `[H, N, M]` bool."""

    real: Array
    correct: Array
    unanswered: Array
    invalid: Array


@partial(jax.jit, static_argnames=("horizons", "protocol"))
def _counts(
    spent: Array,
    outcome: Array,
    mask: Array,
    *,
    horizons: tuple[float, ...],
    protocol: str,
) -> Tally:
    marks = _marks(spent, outcome, mask, horizons, protocol)

    def count(which: Array) -> Array:
        return jnp.sum(which, axis=-1, dtype=jnp.int32).T

    return Tally(
        num_existing=count(marks.real),
        num_correct=count(marks.correct),
        num_infrastructure=count(marks.unanswered),
        broken=count(marks.invalid) > 0,
        # A nested run is the same at every horizon.
        num_invalid=jnp.sum(
            marks.invalid if protocol == "rerun" else marks.invalid[0], dtype=jnp.int32
        ),
    )


@partial(jax.jit, static_argnames=("k", "horizons", "protocol"))
def _solved(
    spent: Array,
    outcome: Array,
    mask: Array,
    *,
    k: int,
    horizons: tuple[float, ...],
    protocol: str,
) -> Array:
    marks = _marks(spent, outcome, mask, horizons, protocol)
    place = jnp.cumsum(marks.real & ~marks.unanswered, axis=-1, dtype=jnp.int32)
    return jnp.any(marks.correct & (place <= k), axis=-1).T


def _marks(
    spent: Array,
    outcome: Array,
    mask: Array,
    horizons: tuple[float, ...],
    protocol: str,
) -> _Marks:
    shape = (len(horizons), *mask.shape[-2:])
    spent, outcome, mask = (jnp.broadcast_to(x, shape) for x in (spent, outcome, mask))
    spent, cap = (
        spent.astype(jnp.float32),
        np.array(horizons, np.float32)[:, None, None],
    )
    unanswered = outcome == Outcome.INFRASTRUCTURE
    valid = (outcome >= 0) & (outcome < len(Outcome))
    valid &= (spent >= 0) | (unanswered & jnp.isnan(spent))
    if protocol == "rerun":
        valid &= ~(spent > cap)
    finished = ~(spent > cap)  # NaN may have been
    real = mask & valid
    return _Marks(
        real=real,
        correct=real & (outcome == Outcome.SUCCESS) & finished,
        unanswered=real & unanswered & finished,
        invalid=mask & ~valid,
    )
