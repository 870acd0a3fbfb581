"""PASS@(k, T): success within k samples and a budget T each, from recorded runs.

Symbols: `N` tasks, `M` samples a task, `K` budgets k, `H` horizons T in one unit of
spending. Two protocols that measure different things: "nested" cuts long runs at each
T, "rerun" has separate runs for each. A run nobody answered (INFRASTRUCTURE) is neither
a success nor a failure: the estimate leaves it out, two bounds say what it could have
changed, and with too many of them there is no estimate. Intervals are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jerp.errors import InputError
from jerp.estimators.passk import budgets, pass_at_k
from jerp.estimators.tally import Protocol, Tally, increasing_horizons, tally_runs
from jerp.ops.checks import check_choice, check_values
from jerp.typing import Array, ArrayLike

__all__ = ["PassSurface", "Protocol", "SurfaceMean", "Unit", "pass_at_k_t"]

Unit = Literal["steps", "turns", "calls", "tokens", "seconds", "dollars"]


class SurfaceMean(struct.PyTreeNode):
    """A surface averaged over tasks.

    Attributes:
      estimate: `[K, H]` float32, over the tasks with an estimate in every cell.
      low: `[K, H]` float32, over the tasks with bounds in every cell, those without an
        estimate included, so that the estimate may lie outside of them.
      high: `[K, H]` float32, over the same tasks as `low`.
      num_estimated: `[]` int32, tasks in `estimate`.
      num_bounded: `[]` int32, tasks in `low` and `high`.
    """

    estimate: Array
    low: Array
    high: Array
    num_estimated: Array
    num_bounded: Array


class PassSurface(struct.PyTreeNode):
    """PASS@(k, T) of each task, with what it rests on.

    Attributes:
      estimate: `[N, K, H]` float32 over the samples with an answer; NaN where there are
        fewer of them than k, or coverage is under `min_coverage`.
      low: `[N, K, H]` float32, if every sample without an answer had failed; NaN where
        fewer than k samples exist.
      high: `[N, K, H]` float32, if every sample without an answer had succeeded.
      coverage: `[N, H]` float32, share of the samples that have an answer by T; NaN for
        a task without samples.
      num_samples: `[N, H]` int32, samples with an answer: the n of the estimate.
      num_correct: `[N, H]` int32, successes by T: the c of the estimate.
      num_infrastructure: `[N, H]` int32, samples without an answer.
      num_invalid: `[]` int32, samples that contradict the contract of the arguments.
        They are in no count; all cells that they touch are NaN.
      ks: K budgets.
      horizons: H horizons.
      protocol: how T was varied.
      announced: whether the agent was told its budget; None if unknown.
      unit: of the horizons.
      min_coverage: under which there is no estimate.
    """

    estimate: Array
    low: Array
    high: Array
    coverage: Array
    num_samples: Array
    num_correct: Array
    num_infrastructure: Array
    num_invalid: Array
    ks: tuple[int, ...] = struct.field(pytree_node=False)
    horizons: tuple[float, ...] = struct.field(pytree_node=False)
    protocol: Protocol = struct.field(pytree_node=False)
    announced: bool | None = struct.field(pytree_node=False)
    unit: Unit = struct.field(pytree_node=False)
    min_coverage: float = struct.field(pytree_node=False)

    @jax.jit
    def mean(self) -> SurfaceMean:
        """Averages over tasks; see `SurfaceMean` for which of them count."""
        estimated = ~jnp.any(jnp.isnan(self.estimate), axis=(1, 2))
        bounded = ~jnp.any(jnp.isnan(self.low) | jnp.isnan(self.high), axis=(1, 2))

        def over(value: Array, counted: Array) -> Array:
            kept = jnp.where(counted[:, None, None], value, 0)
            return jnp.sum(kept, axis=0) / jnp.sum(counted).astype(jnp.float32)

        return SurfaceMean(
            estimate=over(self.estimate, estimated),
            low=over(self.low, bounded),
            high=over(self.high, bounded),
            num_estimated=jnp.sum(estimated, dtype=jnp.int32),
            num_bounded=jnp.sum(bounded, dtype=jnp.int32),
        )


def pass_at_k_t(
    spent: ArrayLike,
    outcome: ArrayLike,
    *,
    ks: Sequence[int],
    horizons: Sequence[float],
    announced: bool | None,
    protocol: Protocol = "nested",
    min_coverage: float = 0.9,
    mask: ArrayLike | None = None,
    unit: Unit = "steps",
) -> PassSurface:
    """PASS@(k, T): at least one of k runs succeeds within a budget of T each.

        PASS@(k, T) = 1 - C(n_T - c_T, k) / C(n_T, k)

        nested: c_T = #{SUCCESS and spent <= T},
                u_T = #{INFRASTRUCTURE and not spent > T}
        rerun:  c_T, u_T = #{SUCCESS}, #{INFRASTRUCTURE} of the runs made with T
        estimate: n_T = m - u_T                low:  n_T = m
                                               high: n_T = m and c_T + u_T successes

    with m the samples that exist. In a nested surface a run that is not finished at T
    has failed there, whatever became of it later, a broken one included. FAILURE,
    MALFORMED and TRUNCATED have failed at every T; so has a run that another budget
    ended before T, and a horizon beyond the cap of the recorded runs says nothing new.
    Nested bounds grow with k and T, and so does the estimate where there is one.

    "nested" asks what the recorded runs had solved by T, and needs no others; "rerun"
    asks what runs with a cap of T solve. They agree only if the agent neither knows its
    budget nor is made to answer at its cap: with a last answer nested is a lower bound,
    and an agent that is told its budget paces itself, so that the two differ widely.
    Compare only surfaces of one protocol and one `announced`.

    Args:
      spent: `[N, M]` float32, at least 0, in `unit`: what each run had spent when it
        ended. NaN only for INFRASTRUCTURE. For "rerun" `[H, N, M]`, at most T.
      outcome: int32 of the same shape, `jerp.typing.Outcome`.
      ks: static, strictly increasing, from 1 to M. A task with fewer samples than k
        has NaN there.
      horizons: static, strictly increasing, finite, at least 0.
      announced: whether the agent was told its budget; None if unknown. Recorded.
      protocol: see above.
      min_coverage: in [0, 1]; static. The estimate of a task is refused (NaN) at a T
        where a smaller share of its samples has an answer. The bounds stay.
      mask: bool of the same shape, True for samples that exist; None for all. The other
        samples may hold anything, NaN included.
      unit: what `spent` and `horizons` count. Recorded.

    Returns:
      `PassSurface`.

    Raises:
      InputError: N or M is 0, no sample exists, k > M, or a setting is out of range;
        and, where Python can see it, an outcome that is none, or spending that is
        negative, NaN for a run with an answer, or above T in a rerun. Under jit such
        samples are counted and their cells are NaN.

    Deviations: the paper does not say how T was varied nor how a run ends at its cap
      (it seems to use 64 runs for each T); hence `protocol`. Evaluation tools drop
      infrastructure failures without a trace, or count them as failures.

    Reference: Zhai et al., arXiv:2604.14877, section 2; Chen et al., arXiv:2107.03374,
      eq. 1.

    Example:
      >>> spent = jnp.array([[1.0, 3.0, 2.0, 5.0]])
      >>> outcome = jnp.array([[1, 1, 0, 4]])  # two successes, a failure, a crash
      >>> s = pass_at_k_t(
      ...     spent, outcome, ks=(1, 2), horizons=(2, 4), announced=False
      ... )
      >>> s.estimate[0, 0].tolist(), s.num_correct[0].tolist()
      ([0.25, 0.5], [1, 2])
    """
    check_choice("unit", unit, get_args(Unit))
    check_values("min_coverage", min_coverage, lambda v: (v >= 0) & (v <= 1), "[0, 1]")
    if not (announced is None or isinstance(announced, bool)):
        raise InputError(f"announced: expected True, False or None, got {announced!r}")
    tally = tally_runs(spent, outcome, mask, horizons=horizons, protocol=protocol)
    ks = _increasing_budgets(ks, np.shape(spent)[-1])
    coverage, estimate, low, high = _cells(tally, jnp.float32(min_coverage), ks=ks)
    return PassSurface(
        estimate=estimate,
        low=low,
        high=high,
        coverage=coverage,
        num_samples=tally.num_existing - tally.num_infrastructure,
        num_correct=tally.num_correct,
        num_infrastructure=tally.num_infrastructure,
        num_invalid=tally.num_invalid,
        ks=ks,
        horizons=increasing_horizons(horizons),
        protocol=protocol,
        announced=announced,
        unit=unit,
        min_coverage=float(min_coverage),
    )


@partial(jax.jit, static_argnames="ks")
def _cells(
    tally: Tally, min_coverage: Array, *, ks: tuple[int, ...]
) -> tuple[Array, Array, Array, Array]:
    """Coverage `[N, H]`; estimate, low and high `[N, K, H]`."""
    every, unknown = tally.num_existing, tally.num_infrastructure
    coverage = (every - unknown).astype(jnp.float32) / every.astype(jnp.float32)
    coverage = jnp.where(tally.broken, jnp.nan, coverage)
    value = pass_at_k(
        jnp.stack([every - unknown, every, every]),
        jnp.stack([tally.num_correct, tally.num_correct, tally.num_correct + unknown]),
        k=ks,
    )
    uncovered = ~(coverage >= min_coverage)
    refused = jnp.stack([uncovered, tally.broken, tally.broken])[..., None]
    estimate, low, high = jnp.moveaxis(jnp.where(refused, jnp.nan, value), -1, -2)
    return coverage, estimate, low, high


def _increasing_budgets(ks: Sequence[int], num_samples: int) -> tuple[int, ...]:
    found = budgets(ks, name="ks")
    if any(later <= earlier for earlier, later in pairwise(found)):
        raise InputError(f"ks: expected strictly increasing budgets, got {ks!r}")
    if found[-1] > num_samples:
        raise InputError(
            f"ks: expected at most M = {num_samples}, the samples of a task, "
            f"got {found[-1]}. More samples are needed: none can be made up"
        )
    return found
