"""Which rules go into a prompt: working sets, fixed before an episode begins.

Symbols: `N` task keys, `C` capacity, `B` episodes, `R` rules of a working set, `M` rule
ids, `D` dimensions. A working set is a row of rule ids, best first, -1 behind them, and
is what `Trajectory.working_set` keeps. Rules of other task keys are never in it.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jerp.ops.checks import (
    check_axes,
    check_count,
    check_ids,
    check_settings,
    concrete,
)
from jerp.rules.pool import (
    RulePool,
    check_pool,
    check_task,
    order_of,
    rows_of,
)
from jerp.typing import Array, ArrayLike, Key

__all__ = ["leave_out", "select_similar", "select_top"]


def select_top(
    pool: RulePool,
    task: ArrayLike,
    *,
    num_rules: int,
    token_budget: ArrayLike | None = None,
) -> Array:
    """The rules with the highest scores, as working sets.

        K~(d) = top-k of K(d) by s

    Args:
      pool: `[N, C]`.
      task: `[B]` int32, the task key of each episode.
      num_rules: R, at most so many; `k` in the paper.
      token_budget: at most so many tokens in all. Best first: a rule that no longer
        fits is passed over, a later, shorter one may fit. None for no budget.

    Returns:
      `[B, R]` int32 rule ids, best first, -1 behind them. Under jit a task that does
      not exist has no rules.

    Raises:
      ShapeError, InputError: see `check_pool`; a task that does not exist, a number of
        rules below 1 or a budget below 0, where Python can see it.

    Deviations: the paper gives no k; ExpeL puts all of its rules into the prompt.

    Reference: Ye and Yu, "Joint learning of experiential rules and policies",
      arXiv:2606.27136, eq. 3; Zhao et al., "ExpeL", arXiv:2308.10144.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> pool = init_pool(1, 4).replace(
      ...     active=jnp.array([[True, True, True, False]]),
      ...     rule_id=jnp.array([[7, 8, 9, -1]]),
      ...     score=jnp.array([[2.0, 5.0, 2.0, 0.0]]),
      ...     tokens=jnp.array([[3, 9, 4, 0]]),
      ... )
      >>> select_top(pool, jnp.array([0]), num_rules=2).tolist()
      [[8, 7]]
      >>> select_top(pool, jnp.array([0]), num_rules=4, token_budget=8).tolist()
      [[7, 9, -1, -1]]
    """
    task = _checked(pool, task, num_rules, token_budget)
    return _top(pool, task, token_budget, num_rules=num_rules)


def select_similar(
    pool: RulePool,
    task: ArrayLike,
    query: ArrayLike,
    embedding: ArrayLike,
    *,
    num_rules: int,
    token_budget: ArrayLike | None = None,
) -> Array:
    """The rules whose texts are nearest to a query, by exact search.

        cos(q, e_i) = q e_i / (|q| |e_i|),  the R largest over active rules i

    Args:
      pool: `[N, C]`.
      task: `[B]` int32, the task key of each episode.
      query: `[B, D]` float32, what each episode is about. Need not be normalised.
      embedding: `[M, D]` float32, row i is of rule id i.
      num_rules: R, at most so many.
      token_budget: see `select_top`.

    Returns:
      `[B, R]` int32 rule ids, nearest first, -1 behind them. Equally near ones come as
      in `select_top`. A vector of zeros is at cosine 0 of all. A rule whose cosine is
      not finite, or that has no row in `embedding`, is never chosen.

    Raises:
      ShapeError, InputError: see `select_top`; an active rule without a row in
        `embedding`, where Python can see it.

    Deviations: the paper ranks by score alone and leaves this to later work.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> pool = init_pool(1, 2).replace(
      ...     active=jnp.array([[True, True]]), rule_id=jnp.array([[0, 1]])
      ... )
      >>> embedding = jnp.array([[1.0, 0.0], [1.0, 1.0]])
      >>> query = jnp.array([[0.0, 3.0]])
      >>> select_similar(pool, jnp.array([0]), query, embedding, num_rules=2).tolist()
      [[1, 0]]
    """
    task = _checked(pool, task, num_rules, token_budget)
    query, embedding = jnp.asarray(query), jnp.asarray(embedding)
    check_axes(task=(task, "B"), query=(query, "B D"), embedding=(embedding, "M D"))
    if concrete(pool.active) is not None:
        check_ids("pool.rule_id", pool.rule_id, pool.active, size=embedding.shape[0])
    return _similar(pool, task, query, embedding, token_budget, num_rules=num_rules)


@partial(jax.jit, static_argnames="num_rules")
def _top(
    pool: RulePool, task: Array, token_budget: ArrayLike | None, *, num_rules: int
) -> Array:
    rows, inside = rows_of(pool, task)
    active = rows.active & inside[:, None]
    order = order_of(active, -rows.score, rows.born)
    return _working_set(rows.replace(active=active), order, num_rules, token_budget)


@partial(jax.jit, static_argnames="num_rules")
def _similar(
    pool: RulePool,
    task: Array,
    query: Array,
    embedding: Array,
    token_budget: ArrayLike | None,
    *,
    num_rules: int,
) -> Array:
    rows, inside = rows_of(pool, task)
    known = rows.active & inside[:, None] & (rows.rule_id < embedding.shape[0])
    vectors = _unit(embedding)[jnp.where(known, rows.rule_id, 0)]
    cosine = jnp.einsum(
        "bd,bcd->bc", _unit(query), vectors, precision=lax.Precision.HIGHEST
    )
    active = known & jnp.isfinite(cosine)
    order = order_of(active, -cosine, -rows.score, rows.born)
    return _working_set(rows.replace(active=active), order, num_rules, token_budget)


def _checked(
    pool: RulePool, task: ArrayLike, num_rules: int, token_budget: ArrayLike | None
) -> Array:
    check_pool(pool)
    check_count("num_rules", num_rules)
    check_settings(token_budget=(token_budget, lambda v: v >= 0, ">= 0"))
    task = jnp.asarray(task)
    check_axes(task=(task, "B", int))
    check_task(pool, task)
    return task


def _working_set(
    rows: RulePool, order: Array, num_rules: int, token_budget: ArrayLike | None
) -> Array:
    """The first rules in the order that fit, `[B, R]`."""
    active = jnp.take_along_axis(rows.active, order, axis=-1)
    rule_id = jnp.take_along_axis(rows.rule_id, order, axis=-1)
    tokens = jnp.take_along_axis(rows.tokens, order, axis=-1)
    chosen = active
    if token_budget is not None:
        cost = jnp.where(active, tokens, 0)
        chosen = active & _fits(cost, token_budget)
    place = jnp.cumsum(chosen, axis=-1, dtype=jnp.int32) - 1
    place = jnp.where(chosen, place, num_rules)
    empty = jnp.full((rows.active.shape[0], num_rules), -1, jnp.int32)
    episode = lax.broadcasted_iota(jnp.int32, place.shape, 0)
    return empty.at[episode, place].set(rule_id.astype(jnp.int32), mode="drop")


def _fits(cost: Array, token_budget: ArrayLike) -> Array:
    """Which of the costs `[B, C]` are paid for, each if the budget still has it."""

    def pay(spent: Array, price: Array) -> tuple[Array, Array]:
        fits = spent + price <= token_budget
        return jnp.where(fits, spent + price, spent), fits

    spent = jnp.zeros(cost.shape[0], cost.dtype)
    return lax.scan(pay, spent, cost.T)[1].T


def _unit(x: Array) -> Array:
    """Rows of length 1, and of length 0 where they had none."""
    x = jnp.asarray(x, jnp.float32)
    largest = jnp.max(jnp.abs(x), axis=-1, keepdims=True, initial=0.0)
    # Of a constant XLA would square numerator and denominator apart, and overflow.
    x = lax.optimization_barrier(x / jnp.where(largest > 0, largest, 1))
    norm = jnp.sqrt(jnp.sum(jnp.square(x), axis=-1, keepdims=True))
    return x / jnp.where(norm > 0, norm, 1)


def leave_out(key: Key, working_set: ArrayLike, *, rate: ArrayLike) -> Array:
    """Leaves every rule out of every working set with the same chance.

    As dropout does with inputs: a policy that is trained with what is left has to do
    without each of its rules now and then, and so makes them its own.

    Args:
      key: consumed.
      working_set: `[B, R]` int32 rule ids, -1 for none.
      rate: in [0, 1]; 0 leaves out nothing.

    Returns:
      `[B, R]` int32, -1 where a rule was left out; the others keep their places.

    Raises:
      ShapeError: other axes or types.
      InputError: a rate beyond [0, 1], where Python can see it; under jit such a rate
        leaves out all or nothing.

    Deviations: the paper always shows the rules that it selects.

    Reference: Srivastava et al., "Dropout: a simple way to prevent neural networks from
      overfitting", 2014, for the idea.

    Example:
      >>> shown = jnp.array([[4, 2, -1]])
      >>> leave_out(jax.random.key(0), shown, rate=0.0).tolist()
      [[4, 2, -1]]
      >>> leave_out(jax.random.key(0), shown, rate=1.0).tolist()
      [[-1, -1, -1]]
    """
    working_set = jnp.asarray(working_set)
    check_axes(working_set=(working_set, "B R", int))
    check_settings(rate=(rate, lambda v: (v >= 0) & (v <= 1), "in [0, 1]"))
    stays = jax.random.uniform(key, working_set.shape) >= rate
    return jnp.where(stays, working_set, jnp.int32(-1))
