"""One check that every world must pass."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jerp.rollout.scan import rollout
from jerp.trajectory import check_trajectory
from jerp.typing import Outcome


def random_legal(params, key, observation, legal):
    """Uniform over the legal actions, of any number of actions."""
    del params, observation
    log_prob = jax.nn.log_softmax(jnp.where(legal, 0.0, -1e30))
    action = jax.random.categorical(key, log_prob).astype(jnp.int32)
    return action, log_prob[action]


def check_world(env, env_params, *, num_steps, batch_size, seed=0):
    """Plays random legal actions and checks all that must hold of every episode."""

    @jax.jit
    def play(key):
        return rollout(
            key,
            env,
            env_params,
            random_legal,
            (),
            num_steps=num_steps,
            batch_size=batch_size,
        )

    first, second = (play(jax.random.key(s)) for s in (seed, seed + 1))
    again = play(jax.random.key(seed))
    chex.assert_trees_all_equal(first, again)
    for batch in (first, second):
        host = jax.tree.map(np.asarray, batch)
        check_trajectory(host)
        ends = host.terminated | host.truncated
        last = host.mask & ~np.roll(host.mask, -1, 1)
        last[:, -1] = host.mask[:, -1]
        np.testing.assert_array_equal(ends, last)
        assert host.legal.any(-1)[host.mask].all()
        assert not host.legal[~host.mask].any()
        assert np.isin(host.outcome, list(Outcome)).all()
        assert (host.outcome == Outcome.TRUNCATED)[host.truncated.any(1)].all()
    return jax.tree.map(np.asarray, first)
