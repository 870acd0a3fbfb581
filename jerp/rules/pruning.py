"""Rules that leave a pool: those that do not pay, have no room, or are not needed.

Symbols as in `jerp.rules.pool`: `N` task keys, `C` capacity, `Q` rules to retire.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jerp.ops.checks import check_axes, check_settings, check_values
from jerp.rules.pool import RulePool, check_pool, only, order_of
from jerp.typing import Array, ArrayLike

__all__ = ["prune", "retire"]


def prune(
    pool: RulePool,
    *,
    min_score: ArrayLike = 0.0,
    capacity: ArrayLike,
    token_budget: ArrayLike | None = None,
) -> RulePool:
    """Drops the rules that do not pay, then those that there is no room for.

        1. s_i <= min_score
        2. all but the first `capacity`, in the order of `select_top`
        3. while sum_i tokens_i > token_budget: the rule with the least s_i / tokens_i

    Each task key by itself.

    Args:
      pool: `[N, C]`.
      min_score: a rule has to have more.
      capacity: at most so many rules a task key; ExpeL's number is 20.
      token_budget: at most so many tokens a task key; None for no budget. Of rules at
        the same price the last in the order goes first. Rules of no tokens stay.

    Returns:
      The pool without them. Under jit a setting out of range makes all scores NaN.

    Raises:
      ShapeError, InputError: see `check_pool`; a setting out of range.

    Deviations: the paper names a threshold and a capacity and gives neither; the
      default threshold is that of ExpeL's code. That code never bounds its list.

    Reference: Ye and Yu, arXiv:2606.27136, Algorithm 1; Zhao et al., "ExpeL",
      arXiv:2308.10144, `update_rules`.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> pool = init_pool(1, 4).replace(
      ...     active=jnp.ones((1, 4), bool),
      ...     rule_id=jnp.array([[0, 1, 2, 3]]),
      ...     score=jnp.array([[0.0, 3.0, 2.0, 1.0]]),
      ...     tokens=jnp.array([[5, 9, 2, 2]]),
      ... )
      >>> prune(pool, capacity=2).rule_id.tolist()
      [[-1, 1, 2, -1]]
      >>> prune(pool, capacity=3, token_budget=5).rule_id.tolist()
      [[-1, -1, 2, 3]]
    """
    check_pool(pool)
    poison = check_settings(
        min_score=(min_score, lambda v: v < np.inf, "a number below infinity"),
        capacity=(capacity, lambda v: v >= 1, ">= 1"),
        token_budget=(token_budget, lambda v: v >= 0, ">= 0"),
    )
    return _prune(pool, min_score + poison, capacity, token_budget)


def retire(pool: RulePool, rule_id: ArrayLike) -> RulePool:
    """Takes rules out of prompts whatever their score, as those that were absorbed.

        K(n) <- K(n) without {i : i in rule_id[n], i >= 0}

    Args:
      pool: `[N, C]`.
      rule_id: `[N, Q]` int32, rules to retire by task key; -1 is none. One that is not
        in the key's pool is passed over.

    Returns:
      The pool without them.

    Raises:
      ShapeError, InputError: see `check_pool`; other axes, or an id below -1 where
        Python can see it.

    Deviations: the paper says that rules are absorbed, and retires none.

    Reference: Ye and Yu, arXiv:2606.27136, section 1, for absorption.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> pool = init_pool(1, 3).replace(
      ...     active=jnp.ones((1, 3), bool), rule_id=jnp.array([[4, 5, 6]])
      ... )
      >>> retire(pool, jnp.array([[6, 4, -1]])).rule_id.tolist()
      [[-1, 5, -1]]
    """
    check_pool(pool)
    rule_id = jnp.asarray(rule_id)
    check_axes(**{"pool.score": (pool.score, "N C")}, rule_id=(rule_id, "N Q", int))
    check_values("rule_id", rule_id, lambda v: v >= -1, "ids >= 0, or -1 for none")
    gone = jnp.any(pool.rule_id[:, :, None] == rule_id[:, None, :], axis=-1)
    return only(pool, pool.active & ~gone)


@jax.jit
def _prune(
    pool: RulePool,
    min_score: ArrayLike,
    capacity: ArrayLike,
    token_budget: ArrayLike | None,
) -> RulePool:
    # A least score of NaN makes all scores NaN.
    score = jnp.where(jnp.isnan(min_score), jnp.nan, pool.score)
    pool = only(pool.replace(score=score), pool.active & ~(score <= min_score))
    rank = jnp.argsort(order_of(pool.active, -pool.score, pool.born), axis=-1)
    pool = only(pool, pool.active & (rank < capacity))
    return pool if token_budget is None else _within(pool, rank, token_budget)


def _within(pool: RulePool, rank: Array, token_budget: ArrayLike) -> RulePool:
    priced = pool.active & (pool.tokens > 0)
    price = pool.score / jnp.where(priced, pool.tokens, 1)
    first_out = order_of(priced, price, -rank)
    tokens = jnp.take_along_axis(jnp.where(priced, pool.tokens, 0), first_out, axis=-1)
    # What is left of the tokens before each goes in turn.
    left = jnp.sum(tokens, axis=-1, keepdims=True) - jnp.cumsum(tokens, axis=-1)
    goes = left + tokens > token_budget
    goes = jnp.take_along_axis(goes, jnp.argsort(first_out, axis=-1), axis=-1)
    return only(pool, pool.active & ~goes)
