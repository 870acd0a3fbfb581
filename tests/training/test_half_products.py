"""Products in bfloat16: numbers close to float32's, and what is trained stays float32.

bfloat16 has 8 bits: a rounding is off by at most 2^-9 of a number, a product of two
rounded ones by about 2^-8, and a log-probability, some products further on, by a few
times that. What is stated below is 2^-5, and must not be met by changing nothing.
"""

import doctest
from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np

from jerp.models import half_products
from jerp.models.decoder import cast_products
from jerp.models.half_products import HalfProducts
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from tests.training.cue_world import CRITIC, play
from tests.training.test_frozen import LORA, parts, shown

TOLERANCE = 2**-5
# With a bonus for entropy, for the loss of a single update is 0 otherwise.
HYPER = GroupHyper(learning_rate=0.01, max_grad_norm=1e3, entropy_weight=0.5)


def stepped(policy, params, data, **settings):
    """State, metrics and gradient (the first moment is a tenth of it) of a step."""
    init, step = make_group_step(GroupConfig(4), policy)
    state = init(jax.random.key(2), HYPER, params)
    state, metrics = jax.jit(step)(state, HYPER, data, **settings)
    leaves = jax.tree.leaves(state.opt_state[1][0].mu)
    gradient = 10 * np.concatenate([np.ravel(leaf) for leaf in leaves])
    return state, metrics, gradient


def check_close(exact, half):
    (_, numbers, gradient), (state, rounded, close) = exact, half
    kinds = {x.dtype for x in jax.tree.leaves((state.params, state.opt_state))}
    assert kinds == {np.dtype(np.float32), np.dtype(np.int32)}
    assert all(np.isfinite(x) for x in rounded.values()) and np.isfinite(close).all()
    for name in ("loss", "entropy", "sampler_gap"):
        assert abs(float(rounded[name]) - float(numbers[name])) < TOLERANCE
    assert abs(float(numbers["loss"])) > 0.1
    assert float(rounded["loss"]) != float(numbers["loss"])
    error = np.linalg.norm(close - gradient) / np.linalg.norm(gradient)
    assert 1e-5 < error < TOLERANCE, error


@cache
def played():
    params = jax.jit(CRITIC.init)(jax.random.key(0))
    params = jax.tree.map(lambda x: 10 * x if x.ndim == 2 else x, params)
    return params, play(jax.random.key(1), params, policy=CRITIC)


def test_a_whole_policy():
    params, data = played()
    check_close(*(stepped(p, params, data) for p in (CRITIC, HalfProducts(CRITIC))))


def test_adapters_beside_a_rounded_decoder():
    decoder, adapters = parts()
    adapters = {"adapters": jax.tree.map(lambda x: x + 0.3, adapters)}
    config, half = cast_products(LORA.config, {"params": decoder}, jnp.bfloat16)
    frozen = {"decoder": half["params"]}
    assert frozen["decoder"]["layer_0"]["qkv"].dtype == jnp.bfloat16
    exact = stepped(LORA, adapters, shown(), frozen={"decoder": decoder})
    rounded = stepped(replace(LORA, config=config), adapters, shown(), frozen=frozen)
    check_close(exact, rounded)


def test_acting_is_close_to_evaluating():
    """As close as roundings on the way allow, which is not 1e-4."""
    params, exact = played()
    policy = HalfProducts(CRITIC)
    data = play(jax.random.key(1), params, policy=policy)
    found = jax.jit(policy.evaluate)(params, data)
    gap = np.abs(np.asarray(found.log_prob - data.log_prob))[np.asarray(data.mask)]
    assert gap.max() < TOLERANCE
    assert np.mean(np.asarray(data.action == exact.action)) > 0.9


def test_the_example():
    assert doctest.testmod(half_products).failed == 0
