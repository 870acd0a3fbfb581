"""Behaviour cloning of policies over whole episodes.

The base from which reinforcement learning starts where nothing can be learned from
nothing: a policy that never succeeds has no gradient.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax

from jerp.models.policy import SequencePolicy
from jerp.ops.checks import check_any
from jerp.records import LossOutput, WeightedMean
from jerp.training.frozen import beside_frozen
from jerp.training.minibatches import minimize
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array, ArrayLike, Key

__all__ = ["clone_policy"]


def clone_policy(
    key: Key,
    policy: SequencePolicy,
    params: Any,
    data: Trajectory,
    *,
    learning_rate: ArrayLike = 1e-3,
    epochs: int = 10,
    batch_size: int = 64,
    frozen: Mapping[str, Any] | None = None,
) -> tuple[Any, Array]:
    """Maximises the likelihood of what the episodes show.

        L = - mean over decisions of log pi(decision | all before it)

    A token that had no alternative is no decision: see `jerp.models.policy.Evaluated`.

    Args:
      key: consumed, by the order of episodes and by dropout.
      policy: what is trained; it drops what it drops, such as inputs of adapters.
      params: to start from.
      data: valid episodes are learned from, the others are not.
      learning_rate: of Adam.
      epochs: passes over the episodes.
      batch_size: episodes an update.
      frozen: entries of the policy's dict of parameters that are not trained and not in
        `params`, such as the decoder beside adapters.

    Returns:
      Parameters, and the loss by epoch `[epochs]`; NaN where nothing was learned from.

    Raises:
      InputError: no valid episode.
    """
    policy = beside_frozen(policy, frozen)
    valid = valid_episodes(data)
    check_any("data.mask of valid episodes", valid[:, None] & data.mask)
    # Episodes that are valid come first: the others are never visited.
    order = jnp.argsort(~valid, stable=True)
    rows = jax.tree.map(lambda x: x[order], data)

    def loss_fn(params: Any, rows: Trajectory, mask: Array, key: Key) -> LossOutput:
        found = policy.evaluate(params, rows, key=key)
        decisions = rows.mask & mask[:, None]
        if rows.token_mask is not None:
            decisions = rows.token_mask & decisions[..., None]
        if found.choice is not None:
            decisions = decisions & found.choice
        total = -jnp.sum(jnp.where(decisions, found.log_prob, 0.0))
        loss = WeightedMean(total, jnp.sum(decisions, dtype=jnp.float32))
        return LossOutput(loss, {})

    params, _, output = minimize(
        key,
        params,
        lambda _: rows,
        jnp.sum(valid, dtype=jnp.int32),
        loss_fn=loss_fn,
        optimizer=optax.adam(jnp.asarray(learning_rate)),
        epochs=epochs,
        batch_size=batch_size,
    )
    loss = output.loss
    return params, jnp.where(loss.weight > 0, loss.value(), jnp.nan)
