"""What is frozen gets neither gradients nor state: adapters beside a real decoder."""

from dataclasses import replace
from functools import cache, partial

import chex
import jax
import jax.numpy as jnp
import numpy as np

from jerp.models.lora import LoraConfig
from jerp.models.token_policy import token_policy
from jerp.training.cloning import clone_policy
from jerp.training.frozen import beside_frozen
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from tests.models.tiny import random_params
from tests.training.episodes import random_trajectory

PLAIN = token_policy(
    5, 1, 1, num_steps=2, actions=((3,), (4,)), hidden_size=8, num_layers=1, num_heads=2
)
LORA = replace(PLAIN, lora=LoraConfig(rank=2, alpha=4.0))
HYPER = GroupHyper(learning_rate=0.05)


@cache
def parts():
    """The decoder, and adapters beside it."""
    adapters = jax.jit(LORA.init)(jax.random.key(1))["adapters"]
    return random_params(0, LORA.config)["params"], adapters


@cache
def shown():
    """16 episodes of up to two steps that repeat one of two words, in four groups."""
    data = random_trajectory(batch=16, steps=2)
    word = data.action % 2
    data = data.replace(
        observation=1 + word[..., None],
        action=np.where(data.mask, word, 0),
        legal=np.ones((16, 2, 2), bool),
    )
    return jax.jit(PLAIN.with_tokens)(data)


def norm(tree):
    return max(float(np.abs(leaf).max()) for leaf in jax.tree.leaves(tree))


def test_a_step_moves_adapters_alone_and_no_other_has_state():
    decoder, adapters = parts()
    init, step = make_group_step(GroupConfig(4), LORA)
    state = init(jax.random.key(3), HYPER, {"adapters": adapters})
    moments = [x for x in jax.tree.leaves(state.opt_state) if x.ndim]
    shapes = sorted(x.shape for x in jax.tree.leaves(adapters))
    assert sorted(x.shape for x in moments) == sorted(2 * shapes)
    after, metrics = jax.jit(step)(state, HYPER, shown(), frozen={"decoder": decoder})
    assert after.params.keys() == {"adapters"}
    change = jax.tree.map(
        lambda x, y: np.asarray(x) - np.asarray(y), after.params["adapters"], adapters
    )
    # The other factor is 0 at first, so it is B that moves.
    assert norm(change["layer_0"]["q"]["b"]) > 1e-3
    assert float(metrics["grad_norm"]) > 0


def test_gradients_beside_what_is_frozen_are_those_of_the_whole():
    decoder, adapters = parts()
    moved = jax.tree.map(lambda x: x + 0.3, adapters)

    @jax.jit
    def gradients(decoder, adapters, data):
        def total(evaluated):
            return jnp.sum(evaluated.log_prob)

        whole = jax.grad(lambda params: total(LORA.evaluate(params, data)))(
            {"decoder": decoder, "adapters": adapters}
        )
        alone = beside_frozen(LORA, {"decoder": decoder})
        part = jax.grad(lambda params: total(alone.evaluate(params, data)))(
            {"adapters": adapters}
        )
        return whole, part

    whole, part = gradients(decoder, moved, shown())
    chex.assert_trees_all_close(part["adapters"], whole["adapters"], atol=1e-5)
    # Nothing in the policy itself stops the decoder from learning beside adapters.
    assert norm(whole["decoder"]) > 1e-3
    assert beside_frozen(LORA, None) is LORA


def cloned(policy, seed=4):
    decoder, adapters = parts()
    clone = jax.jit(
        partial(clone_policy, policy=policy, learning_rate=0.05, epochs=6, batch_size=8)
    )
    return clone(
        jax.random.key(seed),
        params={"adapters": adapters},
        data=shown(),
        frozen={"decoder": decoder},
    )


def test_cloning_moves_adapters_alone():
    params, loss = cloned(LORA)
    assert params.keys() == {"adapters"}
    assert float(loss[-1]) < float(loss[0]) - 0.02


DROPPED = replace(LORA, lora=replace(LORA.lora, dropout=0.4))


def test_cloning_drops_inputs_of_adapters():
    """The order of episodes is that of the key in both: what differs is dropped."""
    plain, dropped = cloned(LORA)[0], cloned(DROPPED)[0]
    again = cloned(DROPPED)[0]
    chex.assert_trees_all_equal(again, dropped)
    change = jax.tree.map(lambda x, y: np.asarray(x - y), plain, dropped)
    assert norm(change) > 1e-3


def test_what_acts_and_learns_by_policy_gradient_drops_nothing():
    """Without a key dropout is none; the mean of many drops is near that, not it."""
    decoder, adapters = parts()
    moved = jax.tree.map(lambda x: x + 0.3, adapters)
    params, data = {"decoder": decoder, "adapters": moved}, shown()

    @jax.jit
    def evaluated(keys):
        def log_prob(key):
            return DROPPED.evaluate(params, data, key=key).log_prob

        plain = LORA.evaluate(params, data).log_prob
        return plain, log_prob(None), jax.vmap(log_prob)(keys)

    plain, without, dropped = evaluated(jax.random.split(jax.random.key(6), 64))
    np.testing.assert_array_equal(without, plain)
    spread = np.abs(dropped - plain[None])
    assert spread.max() > 0.05
    assert np.abs(dropped.mean(axis=0) - plain).max() < spread.max() / 2
