"""What one edit does to the pool of one task key.

`jerp.rules.edits` applies a sequence of them. Symbols: `C` capacity, `E` edits, `Q`
rules that one merge names. Every change returns the new row and whether it can be made
at all; the row is to be used only where it can.
"""

from __future__ import annotations

from enum import IntEnum
from functools import partial
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.rules.pool import RulePool, only
from jerp.typing import Array, ArrayLike

__all__ = ["EditCounts", "EditNumbers", "EditOp", "RuleEdits", "edited_row"]

MergeScore = Literal["max", "sum"]


class EditOp(IntEnum):
    """What an edit does; the numbers are those of `RuleEdits.op`."""

    ADD = 0
    EDIT = 1
    UPVOTE = 2
    DOWNVOTE = 3
    MERGE = 4


class RuleEdits(struct.PyTreeNode):
    """Edits of one task key's pool.

    Attributes:
      op: `[E]` int32, an `EditOp`.
      target: `[E]` int32, the rule id that EDIT, UPVOTE and DOWNVOTE are about.
      rule_id: `[E]` int32, id of the new text of ADD, EDIT and MERGE.
      tokens: `[E]` int32, length of that text.
      members: `[E, Q]` int32, rule ids that MERGE replaces, -1 padding.
      valid: `[E]` bool, False for padding, which may hold anything.
    """

    op: Array
    target: Array
    rule_id: Array
    tokens: Array
    members: Array
    valid: Array


class EditCounts(struct.PyTreeNode):
    """What became of the edits.

    Attributes:
      applied: `[5]` int32, edits of each `EditOp` that changed the pool.
      dropped: `[5]` int32, the other valid ones.
      took_effect: `[E]` bool, of each edit in the order they were given.
      upvoted: `[E]` bool, those of them that were an EDIT into the text of a rule that
        the pool has, and so the UPVOTE of that one.
    """

    applied: Array
    dropped: Array
    took_effect: Array
    upvoted: Array


class EditNumbers(NamedTuple):
    """By how much edits change scores, and when: all `[]`."""

    initial_score: ArrayLike
    upvote: ArrayLike
    downvote: ArrayLike
    edit_bonus: ArrayLike
    step: ArrayLike


def edited_row(
    row: RulePool, edit: RuleEdits, numbers: EditNumbers, *, merge: MergeScore
) -> tuple[RulePool, Array]:
    """The pool of one task key after one edit.

    Args:
      row: `[C]`.
      edit: `[]`, and `[Q]` members.
      numbers: of scores and time.
      merge: see `apply_edits`, which has the equations.

    Returns:
      `[C]` and `[]` bool: the edit was done. If not, the row is as it was.

    Example:
      >>> from jerp.rules.pool import init_pool
      >>> row = jax.tree.map(lambda x: x[0], init_pool(1, 2))
      >>> edit = RuleEdits(*map(jnp.asarray, (EditOp.ADD, -1, 5, 3, [-1], True)))
      >>> row, done = edited_row(row, edit, EditNumbers(2, 1, 1, 1, 0), merge="max")
      >>> row.rule_id.tolist(), row.score.tolist(), bool(done)
      ([5, -1], [2.0, 0.0], True)
    """
    # In the order of EditOp.
    changes = (_add, _edit, _upvote, _downvote, partial(_merge, score=merge))
    is_op = (edit.op >= 0) & (edit.op < len(changes))
    index = jnp.clip(edit.op, 0, len(changes) - 1)
    changed, can = lax.switch(index, changes, row, edit, numbers)
    can &= edit.valid & is_op
    return jax.tree.map(lambda a, b: jnp.where(can, a, b), changed, row), can


def _at(row: RulePool, rule_id: Array) -> Array:
    """Where in the row the rule is, `[C]` bool."""
    return row.active & (row.rule_id == rule_id)


def _add(
    row: RulePool, edit: RuleEdits, numbers: EditNumbers
) -> tuple[RulePool, Array]:
    free = jnp.argmin(row.active)
    can = ~jnp.any(_at(row, edit.rule_id)) & ~row.active[free] & (edit.rule_id >= 0)
    added = row.replace(
        score=row.score.at[free].set(numbers.initial_score),
        active=row.active.at[free].set(True),
        rule_id=row.rule_id.at[free].set(edit.rule_id),
        born=row.born.at[free].set(numbers.step),
        tokens=row.tokens.at[free].set(edit.tokens),
    )
    return added, can


def _edit(
    row: RulePool, edit: RuleEdits, numbers: EditNumbers
) -> tuple[RulePool, Array]:
    old, same = _at(row, edit.target), _at(row, edit.rule_id)
    new = old & ~jnp.any(same)
    score = jnp.where(new, row.score + numbers.edit_bonus, row.score)
    edited = row.replace(
        score=jnp.where(same, score + numbers.upvote, score),
        rule_id=jnp.where(new, edit.rule_id, row.rule_id),
        tokens=jnp.where(new, edit.tokens, row.tokens),
    )
    return edited, jnp.any(old) & (edit.rule_id >= 0)


def _upvote(
    row: RulePool, edit: RuleEdits, numbers: EditNumbers
) -> tuple[RulePool, Array]:
    at = _at(row, edit.target)
    score = jnp.where(at, row.score + numbers.upvote, row.score)
    return row.replace(score=score), jnp.any(at)


def _downvote(
    row: RulePool, edit: RuleEdits, numbers: EditNumbers
) -> tuple[RulePool, Array]:
    at = _at(row, edit.target)
    score = jnp.where(at, row.score - numbers.downvote, row.score)
    return row.replace(score=score), jnp.any(at)


def _merge(
    row: RulePool, edit: RuleEdits, _numbers: EditNumbers, *, score: MergeScore
) -> tuple[RulePool, Array]:
    named = edit.members >= 0
    found = named[:, None] & jax.vmap(partial(_at, row))(edit.members)
    known = jnp.all(~named | jnp.any(found, axis=1))
    group = jnp.any(found, axis=0)
    can = known & (jnp.sum(group) >= 2) & (edit.rule_id >= 0)
    group |= _at(row, edit.rule_id)
    if score == "max":
        merged = jnp.max(jnp.where(group, row.score, -jnp.inf))
    else:
        merged = jnp.sum(jnp.where(group, row.score, 0))
    first = jnp.argmax(group)
    oldest = jnp.min(jnp.where(group, row.born, jnp.iinfo(jnp.int32).max))
    one = row.replace(
        score=row.score.at[first].set(merged),
        rule_id=row.rule_id.at[first].set(edit.rule_id),
        born=row.born.at[first].set(oldest),
        uses=row.uses.at[first].set(jnp.sum(jnp.where(group, row.uses, 0))),
        wins=row.wins.at[first].set(jnp.sum(jnp.where(group, row.wins, 0))),
        tokens=row.tokens.at[first].set(edit.tokens),
    )
    return only(one, row.active & ~group.at[first].set(False)), can
