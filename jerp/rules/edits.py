"""Edits of a pool of rules: add, rewrite, vote for, vote against, merge.

A whole sequence of edits is one scan. Symbols: `N` task keys, `C` capacity, `E` edits,
`Q` rules that one merge names. Edits name rules by id, never by slot, so that an edit
means the same whatever those before it did. What cannot be done is dropped and counted.
Nothing is pruned here: a later edit can save a rule at 0. Prune afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jerp.errors import ConfigError
from jerp.ops.checks import (
    check_axes,
    check_choice,
    check_count,
    check_settings,
    check_values,
)
from jerp.rules.operations import (
    EditCounts,
    EditNumbers,
    EditOp,
    MergeScore,
    RuleEdits,
    edited_row,
)
from jerp.rules.pool import RulePool, check_pool, check_task, only
from jerp.typing import Array, ArrayLike

__all__ = ["EditCounts", "EditOp", "RuleEdits", "apply_edits"]

EditOrder = Literal["expel", "given"]

EXPEL_ORDER = (
    EditOp.DOWNVOTE,
    EditOp.UPVOTE,
    EditOp.EDIT,
    EditOp.MERGE,
    EditOp.ADD,
)


def apply_edits(
    pool: RulePool,
    task: ArrayLike,
    edits: RuleEdits,
    *,
    step: ArrayLike = 0,
    initial_score: ArrayLike = 2.0,
    upvote: ArrayLike = 1.0,
    downvote: ArrayLike = 1.0,
    full_downvote: ArrayLike = 3.0,
    edit_bonus: ArrayLike = 1.0,
    merge: MergeScore = "max",
    order: EditOrder = "expel",
    full: ArrayLike | None = None,
    full_at: int | None = None,
) -> tuple[RulePool, EditCounts]:
    """Applies edits to the pool of one task key, one after the other.

        ADD(z):      a free slot gets z, s = initial_score
        EDIT(q, z):  q's text becomes z, s_q += edit_bonus
        UPVOTE(q):   s_q += upvote
        DOWNVOTE(q): s_q -= downvote, or full_downvote where the pool is full
        MERGE(Q, z): one rule z for all of Q, s the max or sum of theirs

    An edit is dropped if a rule that it names is not in the pool at its turn; ADD also
    if z is there already or no slot is free; MERGE also if it names fewer than two
    rules. Where z is there already, EDIT(q, z) is UPVOTE(z) and leaves q, and MERGE
    takes the old z in. An edited rule keeps its age, uses and wins; a merged one has
    the age of the oldest.

    Args:
      pool: `[N, C]`.
      task: `[]` int32, the task key.
      edits: `[E]`.
      step: `[]` int32, when it is: `born` of the rules that are added.
      initial_score: of an added rule; ExpeL's number, as are the next four.
      upvote: >= 0.
      downvote: >= 0.
      full_downvote: >= 0.
      edit_bonus: >= 0.
      merge: "max", so that saying a thing twice is not worth more, or "sum".
      order: "expel" sorts the edits: DOWNVOTE, UPVOTE, EDIT, MERGE, ADD, each kind as
        given. "given" leaves them as they are.
      full: `[]` bool, the pool counts as full. None: it holds `full_at` rules or more
        before the first edit.
      full_at: ExpeL's number is 25, its 20 rules and 5 more. None: the capacity C.

    Returns:
      The pool, other task keys as they were, and `EditCounts`. Under jit an edit with
      an op, task or id that cannot be is dropped (an unknown op is in neither count),
      and a number out of range makes NaN of every score that an edit touches.

    Raises:
      ShapeError, InputError: see `check_pool`; an edit or number that cannot be meant,
        where Python can see it.
      UnknownNameError: another `merge` or `order`.
      ConfigError: both `full` and `full_at`.

    Deviations: the paper gives the operations and no numbers. ExpeL has no MERGE; its
      code finds rules as parts of a text, adds a text twice if one batch does, and
      tells by the pool before the batch whether an EDIT is an UPVOTE.

    Reference: Ye and Yu, "Joint learning of experiential rules and policies",
      arXiv:2606.27136, eq. 11; Zhao et al., "ExpeL", arXiv:2308.10144, `update_rules`.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> edits = RuleEdits(
      ...     op=jnp.array([EditOp.UPVOTE, EditOp.ADD, EditOp.ADD]),
      ...     target=jnp.array([9, -1, -1]),
      ...     rule_id=jnp.array([-1, 4, 7]),
      ...     tokens=jnp.array([0, 6, 5]),
      ...     members=jnp.full((3, 2), -1),
      ...     valid=jnp.ones(3, bool),
      ... )
      >>> pool, counts = apply_edits(init_pool(1, 3), 0, edits)
      >>> pool.rule_id.tolist(), pool.score.tolist()
      ([[4, 7, -1]], [[2.0, 2.0, 0.0]])
      >>> counts.took_effect.tolist()  # there was no rule 9
      [False, True, True]
    """
    poison = check_settings(
        initial_score=(initial_score, lambda v: abs(v) < np.inf, "a finite number"),
        upvote=(upvote, _not_negative, ">= 0"),
        downvote=(downvote, _not_negative, ">= 0"),
        full_downvote=(full_downvote, _not_negative, ">= 0"),
        edit_bonus=(edit_bonus, _not_negative, ">= 0"),
    )
    scores = (initial_score, upvote, downvote, full_downvote, edit_bonus)
    check_choice("merge", merge, get_args(MergeScore))
    check_choice("order", order, get_args(EditOrder))
    task, edits = _checked(pool, task, edits)
    _check_full(full, full_at)
    return _apply(
        pool,
        task,
        edits,
        [jnp.asarray(x, jnp.float32) + poison for x in scores],
        jnp.asarray(step, jnp.int32),
        full,
        full_at=full_at,
        merge=merge,
        order=order,
    )


@partial(jax.jit, static_argnames=("full_at", "merge", "order"))
def _apply(
    pool: RulePool,
    task: Array,
    edits: RuleEdits,
    scores: list[Array],
    step: Array,
    full: ArrayLike | None,
    *,
    full_at: int | None,
    merge: MergeScore,
    order: EditOrder,
) -> tuple[RulePool, EditCounts]:
    inside = (task >= 0) & (task < pool.active.shape[0])
    row = jax.tree.map(lambda x: x[jnp.where(inside, task, 0)], pool)
    row = only(row, row.active)
    if full is None:
        least = row.active.shape[0] if full_at is None else full_at
        full = jnp.sum(row.active) >= least
    initial_score, upvote, downvote, full_downvote, edit_bonus = scores
    numbers = EditNumbers(
        initial_score=initial_score,
        upvote=upvote,
        downvote=jnp.where(full, full_downvote, downvote),
        edit_bonus=edit_bonus,
        step=step,
    )
    edits = edits.replace(valid=edits.valid & inside)
    row, took_effect, upvoted = _in_turn(row, edits, numbers, merge, order)
    to = jnp.where(inside, task, pool.active.shape[0])
    pool = jax.tree.map(lambda x, new: x.at[to].set(new, mode="drop"), pool, row)
    return pool, _counts(edits, took_effect, upvoted)


def _in_turn(
    row: RulePool,
    edits: RuleEdits,
    numbers: EditNumbers,
    merge: MergeScore,
    order: EditOrder,
) -> tuple[RulePool, Array, Array]:
    """The row after all edits, and which took effect or upvoted, as they were given."""

    def one(row: RulePool, edit: RuleEdits) -> tuple[RulePool, tuple[Array, Array]]:
        there = jnp.any(row.active & (row.rule_id == edit.rule_id))
        row, can = edited_row(row, edit, numbers, merge=merge)
        return row, (can, can & there & (edit.op == EditOp.EDIT))

    turn = jnp.arange(edits.op.shape[0])
    if order == "expel":
        place = jnp.argsort(jnp.array(EXPEL_ORDER))
        place = place[jnp.clip(edits.op, 0, len(EditOp) - 1)]
        turn = jnp.argsort(place, stable=True)
    row, found = lax.scan(one, row, jax.tree.map(lambda x: x[turn], edits))
    took_effect, upvoted = (jnp.zeros_like(x).at[turn].set(x) for x in found)
    return row, took_effect, upvoted


def _checked(
    pool: RulePool, task: ArrayLike, edits: RuleEdits
) -> tuple[Array, RuleEdits]:
    check_pool(pool)
    task = jnp.asarray(task)
    check_axes(task=(task, "", int))
    check_task(pool, task)
    names = ("op", "target", "rule_id", "tokens")
    check_axes(
        **{f"edits.{n}": (getattr(edits, n), "E", int) for n in names},
        **{"edits.members": (edits.members, "E Q", int)},
        **{"edits.valid": (edits.valid, "E", bool)},
    )
    ops = "an EditOp, 0 to 4, where valid"
    known = edits.valid
    check_values("edits.op", edits.op, _is_op, ops, mask=known)
    makes = known & (edits.op != EditOp.UPVOTE) & (edits.op != EditOp.DOWNVOTE)
    for name in ("rule_id", "tokens"):
        expected = ">= 0 where valid and op is ADD, EDIT or MERGE"
        value = getattr(edits, name)
        check_values(f"edits.{name}", value, _not_negative, expected, mask=makes)
    return task, edits


def _not_negative(v):
    return (v >= 0) & (v < np.inf)


def _is_op(v):
    return (v >= 0) & (v < len(EditOp))


def _check_full(full: ArrayLike | None, full_at: int | None) -> None:
    if full is not None and full_at is not None:
        raise ConfigError(
            f"full and full_at: expected one of them, got full={full} and "
            f"full_at={full_at}. Drop the one that is not meant"
        )
    if full is not None:
        check_axes(full=(full, "", bool))
    if full_at is not None:
        check_count("full_at", full_at)


def _counts(edits: RuleEdits, took_effect: Array, upvoted: Array) -> EditCounts:
    ops = jnp.arange(len(EditOp), dtype=edits.op.dtype)
    is_op = edits.op[:, None] == ops[None]
    valid, done = edits.valid[:, None], took_effect[:, None]
    return EditCounts(
        applied=jnp.sum(is_op & done, axis=0, dtype=jnp.int32),
        dropped=jnp.sum(is_op & valid & ~done, axis=0, dtype=jnp.int32),
        took_effect=took_effect,
        upvoted=upvoted,
    )
