"""Rules as input vectors that a decoder reads before an episode: one position a rule.

A rule is told in W fields, small integers, such as its situation and its move; every
value of every field has an embedding, and the input of a rule is their sum, as that of
a step is of its fields. So a rule that was never read is understood from its parts. An
empty place of a working set is the value 0 in every field, which is learned like any
other: "no rule".
"""

from __future__ import annotations

import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.ops.checks import check_axes
from jerp.typing import Array

__all__ = ["rule_inputs", "working_sets"]


def working_sets(
    num_rules: int, batch_size: int, working_set: Array | None
) -> Array | None:
    """`[B, R]` rule ids as a policy of `num_rules` reads them; None if it reads none.

    Raises:
      ConfigError: rules for a policy that reads none: it would act without them.
      ShapeError: not `[batch_size, num_rules]`.
    """
    if not num_rules:
        if working_set is not None:
            raise ConfigError(
                "working_set: expected None for a policy that reads no rules, got "
                f"{list(working_set.shape)} of them; give it num_rules"
            )
        return None
    if working_set is None:
        return jnp.full((batch_size, num_rules), -1, jnp.int32)
    check_axes(
        policy=(jnp.empty((batch_size, num_rules)), "B R"),
        working_set=(working_set, "B R", int),
    )
    return working_set


def rule_inputs(
    rows: Array, rules: Array, working_set: Array, *, sizes: tuple[int, ...]
) -> Array:
    """What a decoder reads of working sets.

        x[b, r] = sum_w E_w[rules[working_set[b, r], w]],   E_w[0] where there is none

    Args:
      rows: `[sum(sizes), F]`, embeddings of the values, field after field.
      rules: `[M, W]` int32, the fields of every rule, by its id.
      working_set: `[B, R]` int32 in [0, M), -1 for none.
      sizes: values of each of the W fields.

    Returns:
      `[B, R, F]`.

    Raises:
      ShapeError: rules of another number of fields than `sizes` has.

    Example:
      >>> rows = jnp.array([[0.0], [1.0], [2.0], [0.0], [10.0]])
      >>> rules = jnp.array([[2, 1], [1, 0]])
      >>> rule_inputs(rows, rules, jnp.array([[0, 1, -1]]), sizes=(3, 2)).tolist()
      [[[12.0], [1.0], [0.0]]]
    """
    check_axes(sizes=(jnp.empty(len(sizes)), "W"), rules=(rules, "M W", int))
    fields = jnp.where(working_set[..., None] >= 0, rules[working_set], 0)
    offset = jnp.cumsum(jnp.asarray((0, *sizes[:-1]), jnp.int32))
    return jnp.sum(rows[fields + offset[None, None]], axis=-2)
