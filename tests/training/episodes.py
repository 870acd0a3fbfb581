"""Random but seeded trajectories for the learner's tests."""

import jax
import numpy as np

from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

NUM_FEATURES, NUM_ACTIONS = 5, 4


def random_trajectory(seed=0, batch=24, steps=6, num_tasks=4):
    """Episodes of 1 to `steps` steps; odd ones end naturally, even ones are cut."""
    keys = jax.random.split(jax.random.key(seed), 6)

    def draw(key, *shape):
        return np.array(jax.random.normal(key, shape), np.float32)

    length = np.array(jax.random.randint(keys[0], (batch,), 1, steps + 1))
    mask = np.arange(steps) < length[:, None]
    last = np.arange(steps) == length[:, None] - 1
    legal = np.array(jax.random.bernoulli(keys[1], 0.6, (batch, steps, NUM_ACTIONS)))
    action = np.array(jax.random.randint(keys[2], (batch, steps), 0, NUM_ACTIONS))
    np.put_along_axis(legal, action[..., None], True, -1)
    odd = (np.arange(batch) % 2 == 1)[:, None]
    reward = draw(keys[3], batch, steps) * 0.3
    index = np.arange(batch, dtype=np.int32)
    return Trajectory(
        observation=draw(keys[4], batch, steps, NUM_FEATURES),
        action=action.astype(np.int32),
        reward=reward,
        terminated=last & odd,
        truncated=last & ~odd,
        mask=mask,
        anchor=np.zeros((batch, steps), np.int32),
        usage=np.zeros((batch, steps, len(USAGE_KINDS)), np.float32),
        final_observation=draw(keys[5], batch, NUM_FEATURES),
        task_id=index % num_tasks,
        group_id=index % num_tasks,
        seed=index,
        outcome=np.where(odd[:, 0], Outcome.SUCCESS, Outcome.TRUNCATED).astype(
            np.int32
        ),
        score=np.zeros(batch, np.float32),
        version=np.zeros(batch, np.int32),
        legal=legal,
        log_prob=np.full((batch, steps), -1.0, np.float32),
    )


def poisoned(trajectory, poison, mask=None):
    """The same trajectory with `poison` wherever nothing is real."""
    mask = trajectory.mask if mask is None else mask

    def fill(x):
        return np.where(mask.reshape(*mask.shape, *(1,) * (x.ndim - 2)), x, poison)

    ended = trajectory.terminated.any(1)[:, None]
    return trajectory.replace(
        observation=fill(trajectory.observation).astype(np.float32),
        reward=fill(trajectory.reward).astype(np.float32),
        final_observation=np.where(
            ended, np.float32(poison), trajectory.final_observation
        ),
    )


def with_padding(trajectory, steps):
    """The same episodes, padded to `steps` steps."""
    extra = steps - trajectory.mask.shape[1]

    def pad(x):
        if x.ndim < 2 or x.shape[:2] != trajectory.mask.shape:
            return x
        return np.pad(x, [(0, 0), (0, extra), *[(0, 0)] * (x.ndim - 2)])

    return jax.tree.map(pad, trajectory)
