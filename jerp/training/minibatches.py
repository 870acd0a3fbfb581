"""Epochs of shuffled minibatches over the real steps of a padded buffer.

The real steps are moved to the front once; an epoch then visits `ceil(count / size)`
minibatches, whatever the padding. The result depends on the real steps alone: neither
on `T` nor on invalid episodes between them. Everything is a function of arrays that may
be vmapped; what does not depend on the vmapped argument is then done once for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import chex
import jax
import jax.numpy as jnp
import optax
from jax import lax

from jerp.records import LossOutput
from jerp.typing import Array, ArrayTree, Key

__all__ = ["BatchLoss", "minimize", "real_rows_first", "shuffled_rows"]

Tree = TypeVar("Tree")

BatchLoss = Callable[[Any, Any, Array, Key], LossOutput]
"""`(params, rows [M, ...], mask [M], key) -> LossOutput`, a mean over the real rows;
the key is the minibatch's own, for dropout."""


def real_rows_first(tree: Tree, mask: Array) -> Tree:
    """Flattens `[B, T, ...]` to rows, the real ones first and in order.

    Args:
      tree: leaves `[B, T, ...]`. Padding may hold anything, NaN included.
      mask: `[B, T]` bool.

    Returns:
      Leaves `[B * T, ...]`; rows that are not real come last and are 0.
    """
    real = mask.reshape(-1)
    order = jnp.argsort(~real, stable=True)

    def rows(x: Array) -> Array:
        chex.assert_equal_shape_prefix([x, mask], 2)
        x = jnp.asarray(x).reshape(real.size, *x.shape[2:])[order]
        return jnp.where(real[order].reshape(-1, *(1,) * (x.ndim - 1)), x, 0)

    return jax.tree.map(rows, tree)


def shuffled_rows(key: Key, num_rows: int, count: Array) -> Array:
    """A random order of the first `count` of `num_rows` rows; the others follow.

    A row's random number depends on the key and its index alone, so that the order of
    the first `count` rows does not depend on `num_rows`.

    Args:
      key: consumed.
      num_rows: static.
      count: `[]` int32, at most `num_rows`.

    Returns:
      `[num_rows]` int32, a permutation.
    """
    index = jnp.arange(num_rows, dtype=jnp.int32)
    # One bit less: no random number can pass for the mark of a row that is not real.
    number = jax.random.bits(key, (num_rows,), "uint32") >> 1
    number = jnp.where(index < count, number, jnp.uint32(2**32 - 1))
    return lax.sort((number, index), num_keys=2, is_stable=False)[1]


def minimize(
    key: Key,
    params: ArrayTree,
    rows_of: Callable[[Any], ArrayTree],
    count: Array,
    *,
    loss_fn: BatchLoss,
    optimizer: optax.GradientTransformation,
    epochs: int,
    batch_size: int,
) -> tuple[Any, optax.OptState, LossOutput]:
    """Minimises a loss over `epochs` passes in random order.

    Args:
      key: consumed.
      params: to be learned.
      rows_of: parameters to rows, leaves `[N, ...]`, the real rows first; called before
        every epoch, so that targets may follow the parameters.
      count: `[]` int32, number of real rows.
      loss_fn: of one minibatch; the last one may hold rows that are not real.
      optimizer: its hyper-parameters may be traced.
      epochs: passes.
      batch_size: rows a minibatch.

    Returns:
      Parameters, optimiser state, and the losses and metrics met on the way, summed
      over the rows of each epoch: leaves `[epochs]`.
    """

    def epoch(carry: tuple, number: Array) -> tuple[tuple, LossOutput]:
        rows = rows_of(carry[0])
        num_rows = jax.tree.leaves(rows)[0].shape[0]
        order = shuffled_rows(jax.random.fold_in(key, number), num_rows, count)
        order = jnp.pad(order, (0, -num_rows % batch_size))
        # A stream of its own: that of the order has been drawn from.
        drops = jax.random.fold_in(key, epochs + number)
        batch_of = partial(_minibatch, drops, rows, order, count, batch_size=batch_size)
        num_batches = -(-count // batch_size)
        return _one_pass(carry, batch_of, num_batches, loss_fn, optimizer)

    carry = (params, optimizer.init(params))
    (params, opt_state), output = lax.scan(epoch, carry, jnp.arange(epochs))
    return params, opt_state, output


def _minibatch(
    key: Key,
    rows: ArrayTree,
    order: Array,
    count: Array,
    number: Array,
    *,
    batch_size: int,
) -> tuple[ArrayTree, Array, Key]:
    """Rows, mask and key of one minibatch."""
    start = number * batch_size
    index = lax.dynamic_slice_in_dim(order, start, batch_size)
    mask = start + jnp.arange(batch_size) < count
    rows = jax.tree.map(lambda x: x[index], rows)
    return rows, mask, jax.random.fold_in(key, number)


def _one_pass(
    carry: tuple,
    batch_of: Callable[[Array], tuple[ArrayTree, Array, Key]],
    num_batches: Array,
    loss_fn: BatchLoss,
    optimizer: optax.GradientTransformation,
) -> tuple[tuple, LossOutput]:
    """One update a minibatch; a dynamic loop, so that padding costs nothing."""

    def objective(params: ArrayTree, number: Array) -> tuple[Array, LossOutput]:
        output = loss_fn(params, *batch_of(number))
        return output.loss.value(), output

    def update(number: Array, carry: tuple) -> tuple:
        (params, opt_state), total = carry
        gradient, output = jax.grad(objective, has_aux=True)(params, number)
        change, opt_state = optimizer.update(gradient, opt_state, params)
        total = jax.tree.map(jnp.add, total, output)
        return (optax.apply_updates(params, change), opt_state), total

    _, shapes = jax.eval_shape(objective, carry[0], jnp.zeros((), jnp.int32))
    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), shapes)
    return lax.fori_loop(0, num_batches, update, (carry, nothing))
