"""Llama 3, SmolLM2, Qwen2 and Qwen3 against transformers' numbers and against loops."""

from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, UnknownNameError
from jerp.models.attention import RopeScaling, rotary_angles, scaled_frequencies
from jerp.models.decoder import Decoder
from jerp.models.presets import small_decoder, tiny_decoder
from jerp.storage.hub_layout import decoder_config
from jerp.storage.raw_model import parameter_shapes
from tests.models import families
from tests.models.tiny import CONFIG, hub_weights, random_params
from tests.reference import decoder as reference
from tests.storage.model_files import variables_of


def read(name):
    golden = families.golden(name)
    config = decoder_config(Path("config.json"), golden["config"])
    weights = families.weights(golden["config"])
    return golden, config, weights


@pytest.mark.parametrize("name", list(families.FAMILIES))
def test_logits_equal_transformers_and_loops(name):
    golden, config, weights = read(name)
    assert golden["config"] == families.FAMILIES[name]
    params, tokens = variables_of(config, weights), jnp.asarray(golden["tokens"])
    logits = jax.jit(Decoder(config).apply)(params, tokens)
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-4)
    loops = reference.logits(weights, golden["tokens"][0], golden["config"])
    np.testing.assert_allclose(loops, golden["logits"][0], atol=1e-4)


@pytest.mark.parametrize("name", ["llama3", "linear", "qwen2", "qwen3"])
def test_golden_logits_need_what_the_family_adds(name):
    golden, _, weights = read(name)
    plain = {k: v for k, v in golden["config"].items() if k != "rope_scaling"}
    added = (".bias", "q_norm.weight", "k_norm.weight")
    kept = {k: v for k, v in weights.items() if not k.endswith(added)}
    without = reference.logits(kept, golden["tokens"][0], plain)
    assert np.abs(without - golden["logits"][0]).max() > 0.01


def test_biases_and_head_norms_learn():
    config = replace(CONFIG, num_layers=1, qkv_bias=True, qk_norm=True)
    params, tokens = random_params(2, config), jnp.array([[1, 2, 3]])

    @jax.jit
    @jax.grad
    def gradient(params):
        return jnp.tanh(Decoder(config).apply(params, tokens)).sum()

    layer = gradient(params)["params"]["layer_0"]
    for part in ("qkv_bias", "query_norm", "key_norm"):
        assert jnp.isfinite(layer[part]).all() and jnp.abs(layer[part]).max() > 0


def test_scaled_frequencies_by_hand(transform):
    """16 positions: 4 waves of length 4 are fast, 1 is slow, 2 lie a third between."""
    turns = jnp.array([8.0, 4.0, 2.0, 1.0, 0.5])
    frequency = 2 * jnp.pi * turns / 16
    scaling = RopeScaling("llama3", 2.0, 1.0, 4.0, 16)
    scaled = transform(lambda f: scaled_frequencies(f, scaling))(frequency)
    expected = [1.0, 1.0, 2 / 3, 0.5, 0.5]
    np.testing.assert_allclose(scaled / frequency, expected, rtol=1e-5)


@pytest.mark.parametrize(
    "scaling",
    [
        RopeScaling("linear", 3.0),
        RopeScaling("llama3", 8.0),
        RopeScaling("llama3", 32.0, 0.5, 6.0, 100),
    ],
)
def test_scaled_angles_equal_loops(scaling):
    raw = {
        "rope_type": scaling.kind,
        "factor": scaling.factor,
        "low_freq_factor": scaling.low_frequency_factor,
        "high_freq_factor": scaling.high_frequency_factor,
        "original_max_position_embeddings": scaling.original_context_length,
    }
    angles = rotary_angles(
        jnp.array([[7]]), head_dim=64, base=500_000.0, scaling=scaling
    )
    expected = [7 * reference.frequency(i, 64, 500_000.0, raw) for i in range(32)]
    np.testing.assert_allclose(angles[0, 0], expected, rtol=2e-5)


def test_a_factor_of_one_scales_nothing():
    frequency = jnp.array([1.0, 0.01, 0.0001])
    for kind in ("linear", "llama3"):
        scaled = scaled_frequencies(frequency, RopeScaling(kind, 1.0))
        np.testing.assert_allclose(scaled, frequency, rtol=1e-6)
    assert scaled_frequencies(frequency, None) is frequency


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"kind": "yarn"}, UnknownNameError, "known: linear, llama3"),
        ({"factor": 0.5}, ConfigError, "factor: expected at least 1, got 0.5"),
        ({"low_frequency_factor": 4.0}, ConfigError, "0 < low < high, got 4.0 and 4.0"),
        ({"original_context_length": 0}, ConfigError, "at least 1, got 0"),
    ],
)
def test_impossible_scalings_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        RopeScaling(**({"kind": "llama3", "factor": 2.0} | changes))


def test_presets_have_the_sizes_they_name():
    for preset, millions in ((tiny_decoder, 0.13), (small_decoder, 4.2)):
        config = preset(100, context_length=32)
        shapes = parameter_shapes(config)
        size = sum(np.prod(shape) for shape in shapes.values())
        assert (size - 100 * config.hidden_size) / 1e6 == pytest.approx(
            millions, rel=0.02
        )
        assert (config.vocab_size, config.context_length) == (100, 32)


@pytest.mark.parametrize("name", list(families.FAMILIES))
def test_the_helpers_of_these_tests_agree(name):
    _, config, weights = read(name)
    again = hub_weights(variables_of(config, weights), config)
    assert again.keys() == weights.keys()
    for tensor, value in weights.items():
        np.testing.assert_array_equal(again[tensor], value)
