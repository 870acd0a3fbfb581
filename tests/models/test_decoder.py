"""The decoder against hand results, loops in float64, and a torch implementation."""

import json
from dataclasses import replace
from pathlib import Path

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError
from jerp.models import decoder
from jerp.models.decoder import Decoder, DecoderConfig
from tests.models.tiny import CONFIG, DECODER, hub_config, hub_weights, random_params
from tests.reference import decoder as reference
from tests.storage.model_files import variables_of

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "llama_logits.json").read_text()
)

forward = jax.jit(DECODER.apply)


def normal(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def test_rms_norm_by_hand(transform):
    x, scale = jnp.array([[3.0, -4.0]]), jnp.array([1.0, 2.0])
    y = transform(lambda a, b: decoder.rms_norm(a, b, epsilon=0.0))(x, scale)
    root = np.sqrt(12.5)
    np.testing.assert_allclose(y, [[3 / root, -8 / root]], rtol=1e-6)


def test_rms_norm_equals_loops_and_forgets_scale():
    x, scale = normal(0, 5, 7), normal(1, 7)
    y = decoder.rms_norm(x, scale, epsilon=1e-5)
    expected = reference.rms_norm(np.asarray(x), np.asarray(scale), 1e-5)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)
    scaled = decoder.rms_norm(100 * x, scale, epsilon=0.0)
    np.testing.assert_allclose(scaled, y, rtol=1e-4, atol=1e-5)


def test_rms_norm_of_zeros_has_a_finite_gradient():
    gradient = jax.grad(lambda x: decoder.rms_norm(x, jnp.ones(3), epsilon=1e-5).sum())(
        jnp.zeros((1, 3))
    )
    assert jnp.isfinite(gradient).all()


def test_logits_equal_torch():
    """`origin` in the file says which implementation made them."""
    raw = GOLDEN["config"]
    config = DecoderConfig(
        vocab_size=raw["vocab_size"],
        hidden_size=raw["hidden_size"],
        intermediate_size=raw["intermediate_size"],
        num_layers=raw["num_hidden_layers"],
        num_heads=raw["num_attention_heads"],
        num_kv_heads=raw["num_key_value_heads"],
        head_dim=raw["hidden_size"] // raw["num_attention_heads"],
        context_length=raw["max_position_embeddings"],
        rope_base=raw["rope_theta"],
        rms_epsilon=raw["rms_norm_eps"],
    )
    params = variables_of(config, GOLDEN["weights"])
    logits = jax.jit(Decoder(config).apply)(params, jnp.asarray(GOLDEN["tokens"]))
    np.testing.assert_allclose(logits, np.array(GOLDEN["logits"]), atol=1e-4)
    for tokens, expected in zip(GOLDEN["tokens"], GOLDEN["logits"], strict=True):
        loops = reference.logits(GOLDEN["weights"], tokens, raw)
        np.testing.assert_allclose(loops, np.array(expected), atol=1e-4)


@pytest.mark.parametrize("tied", [True, False])
def test_logits_equal_loops(tied):
    config = replace(CONFIG, tied_embeddings=tied)
    params = random_params(3, config)
    tokens = [5, 0, 39, 17, 17, 2]
    logits = jax.jit(Decoder(config).apply)(params, jnp.asarray([tokens]))
    expected = reference.logits(hub_weights(params, config), tokens, hub_config(config))
    np.testing.assert_allclose(logits[0], expected, rtol=1e-4, atol=1e-4)


def test_later_tokens_do_not_matter():
    params = random_params()
    first = forward(params, jnp.array([[1, 2, 3, 4]]))
    second = forward(params, jnp.array([[1, 2, 3, 30]]))
    chex.assert_trees_all_equal(first[:, :3], second[:, :3])
    assert not np.allclose(first[:, 3], second[:, 3])


def test_gradients_are_finite():
    def loss(params):
        log_probs = jax.nn.log_softmax(forward(params, jnp.array([[1, 2, 3]])))
        return -log_probs[0, jnp.arange(2), jnp.array([2, 3])].sum()

    gradient = jax.jit(jax.grad(loss))(random_params())
    chex.assert_tree_all_finite(gradient)
    assert all(jnp.abs(g).max() > 0 for g in jax.tree.leaves(gradient))


@pytest.mark.parametrize("tied", [True, False])
def test_products_in_bfloat16_stay_close(tied):
    config = replace(CONFIG, tied_embeddings=tied)
    params, tokens = random_params(0, config), jnp.array([[1, 2, 3, 4]])
    half_config, half = decoder.cast_products(config, params, jnp.bfloat16)
    assert half["params"]["embedding"].dtype == jnp.float32
    assert half["params"]["unembedding"].dtype == jnp.bfloat16
    assert half["params"]["layer_0"]["qkv"].dtype == jnp.bfloat16
    assert half["params"]["layer_0"]["mlp_norm"].dtype == jnp.float32
    exact = jax.jit(Decoder(config).apply)(params, tokens)
    rounded = jax.jit(Decoder(half_config).apply)(half, tokens)
    assert rounded.dtype == jnp.float32
    error = jnp.abs(exact - rounded).max() / jnp.abs(exact).max()
    assert 0 < error < 0.05


def test_products_in_float32_change_nothing():
    config, params = decoder.cast_products(CONFIG, random_params(), jnp.float32)
    tokens = jnp.array([[1, 2, 3, 4]])
    same = jax.jit(Decoder(config).apply)(params, tokens)
    chex.assert_trees_all_equal(same, forward(random_params(), tokens))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_kv_heads": 3}, "num_heads: expected a multiple of num_kv_heads=3"),
        ({"head_dim": 5}, "head_dim: expected an even number, got 5"),
    ],
)
def test_impossible_sizes_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        replace(CONFIG, **change)


def test_qkv_size():
    assert CONFIG.qkv_size == (4 + 2 * 2) * 4
