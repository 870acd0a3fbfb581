"""What a trajectory buffer can teach, measured where its weights are known."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np

from jerp.models.support import BufferSupport, measure_support
from jerp.ops.returns import discounted_returns
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array, ArrayLike

__all__ = ["episode_returns", "trajectory_support"]


def episode_returns(data: Trajectory, *, discount: ArrayLike = 1.0) -> Array:
    """`[B]` returns of whole episodes, as the advantage of "trajectory" sees them.

    G = sum_t discount^t r_t
    """
    return _returns(data.reward, data.mask, discount)


def trajectory_support(
    data: Trajectory, weight: np.ndarray, *, discount: ArrayLike = 1.0
) -> BufferSupport:
    """`BufferSupport` of the valid episodes of `data`, on the host.

    Args:
      data: with features as observation.
      weight: `[B]` or `[B, T]`, those that training gave.
      discount: of the rewards.

    Raises:
      InputError: no valid episode has a real step.
    """
    valid = np.asarray(valid_episodes(data))
    legal = data.legal
    actions = np.asarray(data.action)[valid]
    mask = np.asarray(data.mask)[valid]
    num_actions = int(actions[mask].max(initial=0)) + 1
    return measure_support(
        np.asarray(data.observation)[valid],
        actions,
        mask,
        np.asarray(episode_returns(data, discount=discount))[valid],
        np.asarray(data.task_id)[valid],
        np.asarray(weight)[valid],
        num_actions=num_actions if legal is None else legal.shape[-1],
    )


@jax.jit
def _returns(reward: Array, mask: Array, discount: ArrayLike) -> Array:
    returns_of = partial(discounted_returns, discount=discount)
    return jax.vmap(returns_of)(reward, mask)[:, 0]
