"""Pools of rules: what is known of each rule.

Every task key (a type of task, or an instance) has a pool of its own, one row. Symbols:
`N` task keys, `C` capacity, `B` episodes, `R` rules of a working set, `M` rule ids. A
rule is its id, the number of a text; texts never come here. Free slots hold rule id -1
and zeros, whatever they held before, and enter nothing. Of equal scores the older rule
comes first, then the lower slot.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax

from jerp.errors import InputError
from jerp.ops.checks import (
    check_axes,
    check_count,
    check_values,
    concrete,
)
from jerp.typing import Array, ArrayLike

__all__ = [
    "RulePool",
    "check_pool",
    "init_pool",
    "record_use",
]


class RulePool(struct.PyTreeNode):
    """The rules of every task key; all `[N, C]`.

    Attributes:
      score: float32, utility.
      active: bool, the slot holds a rule.
      rule_id: int32, at most once active in a row; -1 in free slots.
      born: int32, the step at which the rule, or the oldest it was made of, was added.
      uses: int32, valid episodes with it in the prompt.
      wins: int32, those of them that succeeded.
      tokens: int32, its length in a prompt.
    """

    score: Array
    active: Array
    rule_id: Array
    born: Array
    uses: Array
    wins: Array
    tokens: Array


def init_pool(num_tasks: int, capacity: int) -> RulePool:
    """A pool without rules.

    Args:
      num_tasks: N, task keys.
      capacity: C, slots of each. `apply_edits` prunes nothing, so leave room for the
        edits of a batch beside the rules that `prune` keeps.

    Returns:
      `RulePool` with `N C` free slots.

    Raises:
      InputError: a number below 1.

    Example:
      >>> init_pool(2, 3).rule_id.tolist()
      [[-1, -1, -1], [-1, -1, -1]]
    """
    check_count("num_tasks", num_tasks)
    check_count("capacity", capacity)
    # An array for each field: of one array for all, none could be donated.
    zeros = [jnp.zeros((num_tasks, capacity), jnp.int32) for _ in range(4)]
    return RulePool(
        score=jnp.zeros((num_tasks, capacity), jnp.float32),
        active=jnp.zeros((num_tasks, capacity), bool),
        rule_id=jnp.full((num_tasks, capacity), -1, jnp.int32),
        born=zeros[0],
        uses=zeros[1],
        wins=zeros[2],
        tokens=zeros[3],
    )


def check_pool(pool: RulePool) -> None:
    """Raises unless the pool's arrays fit, and its rules can be meant.

    Args:
      pool: `[N, C]`.

    Raises:
      ShapeError: other axes or types.
      InputError: where Python can see it, an active rule with an id below 0, with a
        score that is not finite, or twice in a row.

    Example:
      >>> check_pool(init_pool(2, 3).replace(active=jnp.ones((2, 3), bool)))
      Traceback (most recent call last):
      ...
      jerp.errors.InputError: pool.rule_id: expected ids >= 0 of active rules, got -1 \
at [0, 0] (6 of 6 wrong)
    """
    kinds = {"active": bool, "rule_id": int, "born": int}
    kinds |= {"uses": int, "wins": int, "tokens": int}
    check_axes(
        **{"pool.score": (pool.score, "N C")},
        **{f"pool.{n}": (getattr(pool, n), "N C", kinds[n]) for n in kinds},
    )
    active, rule_id = concrete(pool.active), concrete(pool.rule_id)
    if active is None or rule_id is None:
        return
    ids = "ids >= 0 of active rules"
    check_values("pool.rule_id", rule_id, lambda v: v >= 0, ids, mask=active)
    finite = "finite scores of active rules"
    check_values("pool.score", pool.score, np.isfinite, finite, mask=active)
    for row, (ids_of_row, kept) in enumerate(zip(rule_id, active, strict=True)):
        names, count = np.unique(ids_of_row[kept], return_counts=True)
        if (count > 1).any():
            raise InputError(
                f"pool.rule_id: expected each rule once a row, got "
                f"{names[count > 1][0]} {count.max()} times in row {row}. Keep one"
            )


def record_use(
    pool: RulePool,
    task: ArrayLike,
    working_set: ArrayLike,
    success: ArrayLike,
    valid: ArrayLike,
) -> RulePool:
    """Counts the episodes that had a rule in the prompt, and their successes.

        uses_i += sum_b v_b [i in W_b],   wins_i += sum_b v_b y_b [i in W_b]

    Args:
      pool: `[N, C]`, as it was when the episodes were played, or later.
      task: `[B]` int32, the task key of each episode.
      working_set: `[B, R]` int32 rule ids, -1 padding, as in `Trajectory`. One that is
        no longer in the task's pool counts nowhere, one named twice once.
      success: `[B]` bool.
      valid: `[B]` bool, False for episodes that nobody answered.

    Returns:
      The pool with `uses` and `wins` added to. Scores stay: they are the edits'.

    Raises:
      ShapeError, InputError: see `select_top`.

    Example:
      >>> pool = init_pool(1, 2).replace(
      ...     active=jnp.array([[True, True]]), rule_id=jnp.array([[4, 5]])
      ... )
      >>> task, sets = jnp.array([0, 0]), jnp.array([[5, -1], [4, 5]])
      >>> won = jnp.array([True, False])
      >>> pool = record_use(pool, task, sets, won, jnp.ones(2, bool))
      >>> pool.uses.tolist(), pool.wins.tolist()
      ([[1, 2]], [[0, 1]])
    """
    check_pool(pool)
    task, working_set = jnp.asarray(task), jnp.asarray(working_set)
    check_axes(
        task=(task, "B", int),
        working_set=(working_set, "B R", int),
        success=(success, "B", bool),
        valid=(valid, "B", bool),
    )
    check_task(pool, task)
    return _record_use(pool, task, working_set, success, valid)


def only(pool: RulePool, keep: Array) -> RulePool:
    """The pool with the slots that are kept, and nothing in all others.

    Example:
      >>> only(init_pool(1, 2), jnp.zeros((1, 2), bool)).rule_id.tolist()
      [[-1, -1]]
    """

    def kept(x: Array) -> Array:
        return jnp.where(keep, x, jnp.zeros((), x.dtype))

    cleared = jax.tree.map(kept, pool)
    rule_id = jnp.where(keep, pool.rule_id, jnp.int32(-1))
    return cleared.replace(active=keep & pool.active, rule_id=rule_id)


@jax.jit
def _record_use(
    pool: RulePool, task: Array, working_set: Array, success: Array, valid: Array
) -> RulePool:
    rows, inside = rows_of(pool, task)
    same = rows.rule_id[:, :, None] == working_set[:, None, :]
    used = rows.active & jnp.any(same, axis=-1) & valid[:, None]
    won = used & success[:, None]
    row = jnp.where(inside, task, pool.active.shape[0])
    return only(
        pool.replace(
            uses=pool.uses.at[row].add(used.astype(jnp.int32), mode="drop"),
            wins=pool.wins.at[row].add(won.astype(jnp.int32), mode="drop"),
        ),
        pool.active,
    )


def check_task(pool: RulePool, task: Array) -> None:
    number = pool.active.shape[0]
    exists = f"task keys in [0, {number})"
    check_values("task", task, lambda v: (v >= 0) & (v < number), exists)


def rows_of(pool: RulePool, task: Array) -> tuple[RulePool, Array]:
    """The rows of the tasks, `[B, C]`, and whether there is such a task, `[B]`."""
    inside = (task >= 0) & (task < pool.active.shape[0])
    row = jnp.where(inside, task, 0)
    return jax.tree.map(lambda x: x[row], pool), inside


def order_of(active: Array, *keys: Array) -> Array:
    """Slots by ascending keys, then by slot, those that are not active last; int32."""
    slot = lax.broadcasted_iota(jnp.int32, active.shape, active.ndim - 1)
    clean = [jnp.where(active, key, jnp.zeros((), key.dtype)) for key in keys]
    return lax.sort((~active, *clean, slot), num_keys=len(clean) + 2, dimension=-1)[-1]
