"""What linear regressions of values share for all target policies: the log's side.

Sums of products of features by fold and action, and the inverses of the matrices of the
ridge regressions. Symbols as in `jerp.estimators.fitted_q`; `K` folds, `J` fits.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jerp.estimators.blocks import Blocks, blocks_of
from jerp.ops.checks import (
    check_axes,
    check_count,
    check_finite,
    check_ids,
    check_prefix,
)
from jerp.typing import Array, ArrayLike

__all__ = ["Regression", "fits_of", "regression"]


class Regression(NamedTuple):
    """What regressions for all target policies share: the log, side by side.

    J fits: with folds one without each fold, in order, and last the one to all.

    Attributes:
      features: `[B, T, F]`, 0 in padding.
      mask: `[B, T]` bool.
      fit: `[B]` int32, the fit that predicts an episode.
      action: `[B, T]` int32.
      blocks: of steps of one fold and action.
      reward, now, after: of the blocks' steps: reward, features, features one step on.
      inverse: `[J, A, F, F]`, of the ridge regression's matrix.
      rewarded: `[J, A, F]`, sum of features times rewards.
    """

    features: Array
    mask: Array
    fit: Array
    action: Array
    blocks: Blocks
    reward: Array
    now: Array
    after: Array
    inverse: Array
    rewarded: Array


def regression(
    features: ArrayLike,
    action: ArrayLike,
    reward: ArrayLike,
    mask: ArrayLike,
    *,
    num_actions: int,
    fold: ArrayLike | None = None,
    num_folds: int | None = None,
    ridge: ArrayLike = 1e-6,
) -> Regression:
    """The part of `fitted_q_evaluation` that no target policy enters.

    Args:
      features: see `fitted_q_evaluation`, as the others.
      action: `[B, T]` int32.
      reward: `[B, T]` float32.
      mask: `[B, T]` bool.
      num_actions: A, static.
      fold: `[B]` int32, or None.
      num_folds: static; with `fold`.
      ridge: > 0.

    Returns:
      `Regression`.

    Raises:
      InputError: see `fitted_q_evaluation`.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> made = regression(
      ...     one[..., None], one.astype(int), one, one > 0, num_actions=2
      ... )
      >>> made.rewarded.tolist()
      [[[0.0], [2.0]]]
    """
    num_folds = _check(features, action, reward, mask, fold, num_folds, num_actions)
    return _regression(
        features,
        action,
        reward,
        mask,
        fold,
        ridge,
        num_actions=num_actions,
        num_folds=num_folds,
    )


def fits_of(sums: Array, has_folds: bool) -> Array:
    """Sums of all that a fit sees, from sums over folds.

    Args:
      sums: `[K, ...]`.
      has_folds: False: there is one fit, to all.

    Returns:
      `[J, ...]`: without each fold, then of all.

    Example:
      >>> fits_of(jnp.array([1.0, 2.0]), True).tolist()
      [2.0, 1.0, 3.0]
    """
    total = jnp.sum(sums, axis=0, keepdims=True)
    return jnp.concatenate([total - sums, total]) if has_folds else total


@partial(jax.jit, static_argnames=("num_actions", "num_folds"))
def _regression(
    features: ArrayLike,
    action: ArrayLike,
    reward: ArrayLike,
    mask: ArrayLike,
    fold: ArrayLike | None,
    ridge: ArrayLike,
    *,
    num_actions: int,
    num_folds: int,
) -> Regression:
    mask, action = jnp.asarray(mask), jnp.asarray(action)
    features = jnp.where(mask[..., None], jnp.asarray(features, jnp.float32), 0.0)
    reward = jnp.where(mask, jnp.asarray(reward, jnp.float32), 0.0)
    of = jnp.zeros(mask.shape[0], jnp.int32) if fold is None else jnp.asarray(fold)
    cell = jnp.where(mask, of[:, None] * num_actions + action, num_folds * num_actions)
    blocks = blocks_of(cell.reshape(-1), num_folds * num_actions)
    after = jnp.pad(features[:, 1:], ((0, 0), (0, 1), (0, 0)))
    reward, now, after = (
        blocks.rows(x.reshape(mask.size, -1)) for x in (reward, features, after)
    )
    shape = (num_folds, num_actions, features.shape[-1], -1)
    gram = fits_of(blocks.products(now, now).reshape(shape), fold is not None)
    rewarded = fits_of(blocks.products(now, reward).reshape(shape), fold is not None)
    return Regression(
        features=features,
        mask=mask,
        fit=of,
        action=action,
        blocks=blocks,
        reward=reward[..., 0],
        now=now,
        after=after,
        inverse=_ridge_inverse(gram, ridge),
        rewarded=rewarded[..., 0],
    )


def _ridge_inverse(gram: Array, ridge: ArrayLike) -> Array:
    """`[..., F, F]`; directions in which no features differ are given weight 0."""
    size = gram.shape[-1]
    added = ridge * jnp.trace(gram, axis1=-2, axis2=-1) / size
    value, vector = jnp.linalg.eigh(gram)
    # Below this it is rounding, which repeated fits would blow up.
    real = value > size * jnp.finfo(gram.dtype).eps * value[..., -1:]
    value = jnp.where(real, value + added[..., None], jnp.inf)
    return jnp.einsum(
        "...fi,...gi->...fg",
        vector / value[..., None, :],
        vector,
        precision=lax.Precision.HIGHEST,
    )


def _check(
    features: ArrayLike,
    action: ArrayLike,
    reward: ArrayLike,
    mask: ArrayLike,
    fold: ArrayLike | None,
    num_folds: int | None,
    num_actions: int,
) -> int:
    """The number of folds, 1 without any."""
    check_axes(
        mask=(mask, "B T", bool),
        features=(features, "B T F"),
        action=(action, "B T", int),
        reward=(reward, "B T"),
    )
    check_prefix("mask", mask)
    check_finite("features", features, jnp.asarray(mask)[..., None])
    check_finite("reward", reward, mask)
    check_ids("action", action, mask, size=num_actions)
    if fold is None:
        return 1
    check_count("num_folds", num_folds or 0, least=2)
    check_axes(mask=(mask, "B T", bool), fold=(fold, "B", int))
    check_ids("fold", fold, jnp.any(jnp.asarray(mask), axis=1), size=num_folds or 0)
    return num_folds or 0
