"""Policies and arguments that the episode tests share."""

import jax
import jax.numpy as jnp
import numpy as np


def uniform(params, key, observation, legal):
    """Uniform over legal actions; `params` are ignored."""
    logits = jnp.where(legal, 0.0, -1e9)
    action = jax.random.categorical(key, logits).astype(jnp.int32)
    return action, jax.nn.log_softmax(logits)[action]


def linear(params, key, observation, legal):
    """Softmax of a linear map of the features over legal actions."""
    logits = jnp.where(legal, observation @ params, -1e9)
    action = jax.random.categorical(key, logits).astype(jnp.int32)
    return action, jax.nn.log_softmax(logits)[action]


def scripted(*actions):
    """Takes `actions` in order, whatever is legal."""

    def policy(params, key, observation, legal):
        step = jnp.round(observation[0] * 8).astype(jnp.int32)
        return jnp.array(actions + (0,) * (9 - len(actions)))[step], jnp.float32(0)

    return policy


def labels(batch, *, num_steps=8):
    """The keyword arguments of `run_episodes` that only label episodes."""
    return {
        "num_steps": num_steps,
        "task_id": np.arange(batch),
        "group_id": np.arange(batch) // 2,
        "seed": np.arange(batch) + 10,
    }


def keys(batch, seed=0):
    return jax.random.split(jax.random.key(seed), batch)
