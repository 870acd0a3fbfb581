"""From losses of tokens to one loss: which tokens and sequences weigh how much.

`[B, L]` holds B sequences of L padded tokens. The four modes differ in the weights
alone. Each is a total and a weight that add across microbatches, because a mean of
means is another number: never average what `WeightedMean.value` gives. A sequence
without a real token enters neither the total nor the weight.
"""

from __future__ import annotations

from typing import Literal, get_args

import jax.numpy as jnp

from jerp.errors import ConfigError
from jerp.objectives.entries import entry_mean
from jerp.ops.checks import (
    check_any,
    check_axes,
    check_choice,
    check_finite,
    check_settings,
)
from jerp.ops.masked import masked_mean, masked_sum
from jerp.records import WeightedMean
from jerp.typing import Array, ArrayLike

__all__ = ["Aggregation", "aggregate_loss"]

Aggregation = Literal[
    "token_mean",
    "sequence_mean_token_mean",
    "sequence_mean_token_sum",
    "sum_over_constant",
]


def aggregate_loss(
    loss: Array,
    mask: Array,
    *,
    aggregation: Aggregation,
    constant: ArrayLike | None = None,
) -> WeightedMean:
    """Loss of a batch from the losses of its tokens.

        "token_mean":               sum_it m_it l_it / sum_it m_it
        "sequence_mean_token_mean": sum_i (sum_t m_it l_it / n_i) / S
        "sequence_mean_token_sum":  sum_it m_it l_it / S
        "sum_over_constant":        sum_it m_it l_it / (constant S)

    with `n_i = sum_t m_it` and S the number of sequences that have a real token.

    A batch cut into microbatches of whole sequences gives the value and the gradient of
    the whole: add outputs, add the gradients of their totals, divide once at the end.

        outputs = [loss_fn(params, part) for part in parts]
        output = jax.tree.map(lambda *x: sum(x), *outputs)     # output.loss.value()
        gradient = sum(grad(lambda p: loss_fn(p, part).loss.total)(params))
                   / output.loss.weight

    Args:
      loss: `[B, L]` float, one a token. Padding may hold anything, NaN included.
      mask: `[B, L]` bool, True for tokens that are learned from.
      aggregation: see above. DAPO has "token_mean", GRPO "sequence_mean_token_mean".
      constant: > 0, for "sum_over_constant" and no other: the longest length that a
        sequence can have, whatever the batch (Dr.GRPO).

    Returns:
      `WeightedMean`, float32. Where nothing is real under jit, total and weight are 0,
      so that an empty microbatch adds nothing; its `value()` is 0.

    Raises:
      ConfigError: a `constant` that is missing or out of place.
      InputError: a NaN or infinite real entry, an all-masked batch or a `constant` not
        > 0, where Python can see it. Under jit a NaN in a real entry makes the total
        NaN.

    Deviations: verl counts sequences without a token in S, and they make its mean of
      means NaN. Its "seq-mean-token-sum-norm" divides by the constant but not by S,
      and its value grows with the batch: multiply by S to get it.

    Reference: DAPO, Yu et al., arXiv:2503.14476, eq. 12; GRPO, Shao et al.,
      arXiv:2402.03300, eq. 3; Dr.GRPO, Liu et al., arXiv:2503.20783.

    Example:
      >>> loss = jnp.array([[1.0, 2.0, 3.0], [6.0, jnp.nan, jnp.nan]])
      >>> mask = jnp.array([[True, True, True], [True, False, False]])
      >>> float(aggregate_loss(loss, mask, aggregation="token_mean").value())
      3.0
      >>> each = {"aggregation": "sequence_mean_token_mean"}
      >>> float(aggregate_loss(loss, mask, **each).value())
      4.0
      >>> parts = [aggregate_loss(loss[i:i+1], mask[i:i+1], **each) for i in (0, 1)]
      >>> float((parts[0] + parts[1]).value())
      4.0
    """
    check_axes(loss=(loss, "B L"), mask=(mask, "B L", bool))
    poison = _check_constant(aggregation, constant)
    check_any("mask", mask)
    check_finite("loss", loss, mask)
    if aggregation == "token_mean":
        return entry_mean(loss, mask)
    loss = jnp.asarray(loss, jnp.float32)
    sequences = jnp.sum(jnp.any(mask, axis=1), dtype=jnp.float32)
    if aggregation == "sequence_mean_token_mean":
        means = masked_mean(loss, mask, axis=1)
        return WeightedMean(total=jnp.sum(means), weight=sequences)
    if constant is not None:
        sequences = jnp.multiply(jnp.add(constant, poison), sequences)
    return WeightedMean(total=masked_sum(loss, mask), weight=sequences)


def _check_constant(aggregation: str, constant: ArrayLike | None) -> ArrayLike:
    check_choice("aggregation", aggregation, get_args(Aggregation))
    if aggregation != "sum_over_constant":
        if constant is not None:
            raise ConfigError(
                'constant: expected None unless aggregation="sum_over_constant", got '
                f"{constant} with {aggregation!r}"
            )
    elif constant is None:
        raise ConfigError(
            'constant: expected a number > 0 with aggregation="sum_over_constant", '
            "got None. Give the longest length a sequence can have"
        )
    else:
        return check_settings(constant=(constant, lambda v: v > 0, "> 0"))
    return 0.0
