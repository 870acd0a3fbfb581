"""When training pays: more runs of the base beside one of the trained agent.

Symbols: `N` tasks, `K` sample budgets k; `c_0` and `c_1` what a run of the base and of
the trained agent costs on average, `C` what training cost, all in one unit. The base's
k runs solve a task if one of them does: that costs nothing more only where the right
one is known when it is seen. Without a verifier the base is worse off than here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import jax.numpy as jnp
from flax import struct

from jerp.errors import InputError
from jerp.estimators.arguments import as_array
from jerp.estimators.intervals import bootstrap_interval
from jerp.estimators.marginal import check_grid
from jerp.estimators.passk import budgets
from jerp.estimators.resampling import weighted_mean
from jerp.ops.checks import check_axes, check_settings, check_values
from jerp.records import Interval
from jerp.typing import Array, ArrayLike, Key

__all__ = ["BreakEven", "break_even", "pass_between", "samples_needed"]

_ROUNDING = 1e-6
"""Means of proportions that are nearer are the same."""


class BreakEven(struct.PyTreeNode):
    """What training saves, and from how many uses on.

    A limit of `samples` at the largest k says "at least"; what rests on it is then a
    bound as well: `saving` from below, `uses` from above.

    Attributes:
      samples: k*, runs with which the base solves as much as the trained agent with
        one; the largest k where none of the grid is enough.
      reached: `[]` bool, one of the grid is, by the estimate.
      saving: `k* c_0 - c_1`, what a use of the trained agent saves.
      uses: `C / saving`, from how many on training has paid; infinite where a use saves
        nothing.
      affordable: `c_1 / c_0`, runs of the base for the cost of one of the trained.
      base_value: the base's pass@k with as many, NaN below one run and beyond the grid.
      difference: the trained agent's pass@1 minus that: at equal cost.
      equal_cost: `[K]`, for as much as k runs of the base cost: pass@(k c_0 / c_1) of
        the trained agent minus pass@k of the base; NaN as above.
    """

    samples: Interval
    reached: Array
    saving: Interval
    uses: Interval
    affordable: Interval
    base_value: Interval
    difference: Interval
    equal_cost: Interval


def samples_needed(curve: ArrayLike, ks: Sequence[int], target: ArrayLike) -> Array:
    """The fewest runs with which a pass@k curve reaches a target.

        k* = min {k : pass@k >= target},   pass@k linear in log2 k between grid points

    Args:
      curve: `[K]` float32, mean pass@k.
      ks: the K budgets, increasing.
      target: `[]` float32.

    Returns:
      `[]` float32, from `ks[0]` on; NaN where no budget of the grid is enough.

    Raises:
      InputError: `ks` that do not increase. `ShapeError`, one of them: other axes.

    Reference: the equation above.

    Example:
      >>> curve = jnp.array([0.25, 0.5, 0.75])
      >>> float(samples_needed(curve, [1, 4, 16], 0.625))
      8.0
    """
    curve, log2_k = _grid(curve, ks)
    return jnp.exp2(_reaching(curve, log2_k, jnp.asarray(target, jnp.float32)))


def pass_between(curve: ArrayLike, ks: Sequence[int], number: ArrayLike) -> Array:
    """A pass@k curve at any number of runs, linear in log2 k between grid points.

    Args:
      curve: `[K]` float32, mean pass@k.
      ks: the K budgets, increasing.
      number: `[...]` float32, of runs; not whole where it is a budget divided.

    Returns:
      `[...]` float32; NaN below the first and beyond the last budget.

    Raises:
      InputError: `ks` that do not increase. `ShapeError`, one of them: other axes.

    Example:
      >>> pass_between(jnp.array([0.25, 0.5]), [1, 4], jnp.array([0.5, 2.0])).tolist()
      [nan, 0.375]
    """
    curve, log2_k = _grid(curve, ks)
    return _at(curve, log2_k, jnp.asarray(number, jnp.float32))


def break_even(
    key: Key,
    base: ArrayLike,
    trained: ArrayLike,
    ks: Sequence[int],
    *,
    base_cost: ArrayLike,
    trained_cost: ArrayLike,
    training_cost: float,
    cluster: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    num_resamples: int = 2000,
    level: float = 0.95,
) -> BreakEven:
    """Whether training pays, and from how many uses on.

        k* = min {k : pass@k of the base >= pass@1 of the trained agent}
        saving = k* c_0 - c_1,   uses = C / saving

    All are functions of means over tasks; tasks are resampled whole, with both agents'
    values and costs, so that what they have in common drops out.

    Args:
      key: consumed.
      base: `[N, K]` float32, pass@k; a task with a NaN in any k is left out.
      trained: `[N, K]` float32, on the same tasks.
      ks: the K budgets, increasing from 1.
      base_cost: `[N]` float32, of a run, mean over the task's runs; at least 0.
      trained_cost: `[N]` float32.
      training_cost: C, at least 0; all of it, failed attempts at other settings
        included, if they are to be paid for.
      cluster: see `jerp.estimators.intervals.bootstrap_interval`.
      mask: `[N]` bool, False leaves a task out; None keeps all.
      num_resamples: R.
      level: nominal coverage.

    Returns:
      `BreakEven`.

    Raises:
      InputError: see `bootstrap_interval`; a negative cost, and `ks` that are not as
        said. `ShapeError`, one of them: other axes.

    Reference: the equations above. Brown et al., "Large Language Monkeys",
      arXiv:2407.21787, section 2.3, compare repeated samples of models at equal cost.

    Example:
      >>> import jax
      >>> base, trained = jnp.array([[0.25, 0.5]] * 3), jnp.array([[0.5, 0.75]] * 3)
      >>> found = break_even(
      ...     jax.random.key(0), base, trained, [1, 2], base_cost=jnp.full(3, 8.0),
      ...     trained_cost=jnp.full(3, 8.0), training_cost=800.0
      ... )
      >>> float(found.samples.point), float(found.saving.point), float(found.uses.point)
      (2.0, 8.0, 100.0)
    """
    values = {"base": as_array(base), "trained": as_array(trained)}
    costs = {"base_cost": as_array(base_cost), "trained_cost": as_array(trained_cost)}
    check_axes(base=(values["base"], "N K"), trained=(values["trained"], "N K"))
    number = values["base"].shape[0]
    for name, cost in costs.items():
        check_axes(base=(values["base"], "N K"), **{name: (cost, "N")})
        check_values(name, cost, lambda v: (v >= 0) | (v != v), ">= 0")
    check_settings(training_cost=(training_cost, lambda v: v >= 0, ">= 0"))
    ks = budgets(tuple(ks), name="ks")
    check_grid("ks", ks, size=values["base"].shape[1])
    if ks[0] != 1:
        raise InputError(f"ks: expected 1 as the first, got {ks}")
    log2_k = jnp.log2(jnp.asarray(ks, jnp.float32))
    found = bootstrap_interval(
        key,
        # A grid that is the same in every row: a statistic sees rows alone.
        {**values, **costs, "log2_k": jnp.broadcast_to(log2_k, (number, len(ks)))},
        _statistic,
        cluster=cluster,
        mask=mask,
        num_resamples=num_resamples,
        level=level,
    )
    return _named(found, training_cost)


def _statistic(values: Mapping[str, Array], weight: Array) -> Array:
    """`[6 + K]`: see `_named`."""
    mean = {name: weighted_mean(value, weight) for name, value in values.items()}
    base, trained, log2_k = mean["base"], mean["trained"], mean["log2_k"]
    log2_needed = _reaching(base, log2_k, trained[0])
    reached = ~jnp.isnan(log2_needed)
    needed = jnp.exp2(jnp.where(reached, log2_needed, log2_k[-1]))
    saving = needed * mean["base_cost"] - mean["trained_cost"]
    ratio = mean["trained_cost"] / mean["base_cost"]
    at_cost = _at(base, log2_k, ratio)
    equal = _at(trained, log2_k, jnp.exp2(log2_k) / ratio) - base
    parts = (needed, saving, reached, ratio, at_cost, trained[0] - at_cost)
    return jnp.concatenate([jnp.stack([jnp.float32(x) for x in parts]), equal])


def _named(found: Interval, training_cost: float) -> BreakEven:
    def cell(index: int | slice) -> Interval:
        limits = {
            name: getattr(found, name)[index] for name in ("point", "low", "high")
        }
        defined = ~jnp.isnan(limits["point"])
        return found.replace(
            **{name: jnp.where(defined, x, jnp.nan) for name, x in limits.items()}
        )

    def uses(saving: Array) -> Array:
        number = training_cost / jnp.where(saving > 0, saving, 1.0)
        number = jnp.where(saving > 0, number, jnp.inf)
        return jnp.where(jnp.isnan(saving), saving, number)

    saving = cell(1)
    return BreakEven(
        samples=cell(0),
        reached=found.point[2] > 0.5,
        saving=saving,
        uses=saving.replace(
            point=uses(saving.point), low=uses(saving.high), high=uses(saving.low)
        ),
        affordable=cell(3),
        base_value=cell(4),
        difference=cell(5),
        equal_cost=cell(slice(6, None)),
    )


def _grid(curve: ArrayLike, ks: Sequence[int]) -> tuple[Array, Array]:
    curve = jnp.asarray(curve, jnp.float32)
    check_axes(curve=(curve, "K"))
    ks = budgets(tuple(ks), name="ks")
    check_grid("ks", ks, size=curve.shape[0])
    return curve, jnp.log2(jnp.asarray(ks, jnp.float32))


def _reaching(curve: Array, log2_k: Array, target: Array) -> Array:
    """log2 of the first k at which the curve reaches the target; NaN for none."""
    enough = curve >= target - _ROUNDING
    last = jnp.argmax(enough)
    before = jnp.maximum(last - 1, 0)
    rise = curve[last] - curve[before]
    share = (target - curve[before]) / jnp.where(rise > 0, rise, 1.0)
    share = jnp.clip(share, 0.0, 1.0)
    at = log2_k[before] + share * (log2_k[last] - log2_k[before])
    found = jnp.where(last == 0, log2_k[0], at)
    return jnp.where(jnp.any(enough), found, jnp.nan)


def _at(curve: Array, log2_k: Array, number: Array) -> Array:
    place = jnp.log2(number)
    inside = (place >= log2_k[0] - _ROUNDING) & (place <= log2_k[-1] + _ROUNDING)
    return jnp.where(inside, jnp.interp(place, log2_k, curve), jnp.nan)
