"""An exported folder gives back the model bit for bit, and is what others read."""

import json
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from jerp.errors import ConfigError, WeightsError
from jerp.models.attention import RopeScaling
from jerp.models.decoder import cast_products
from jerp.models.lora import LoraConfig, init_adapters, with_adapters
from jerp.storage.export import export_folder
from jerp.storage.folder_weights import INDEX
from jerp.storage.tokenizer import byte_level_tokenizer
from jerp.storage.weights import load_weights
from tests.bridge.tiny_model import SPECIAL
from tests.models.tiny import hub_weights, random_params
from tests.storage.model_files import MERGES, SIZES, TEMPLATE, VOCABULARY

TOKENIZER = byte_level_tokenizer(VOCABULARY, MERGES, special=SPECIAL)
FAMILIES = {
    "llama": {},
    "llama3": {
        "tied_embeddings": False,
        "rope_scaling": RopeScaling("llama3", 8.0, 0.5, 5.0, 32),
    },
    "linear": {"rope_scaling": RopeScaling("linear", 1.5)},
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": True, "head_dim": 10},
}


@pytest.mark.parametrize("family", list(FAMILIES))
def test_reading_back_gives_the_same_model(tmp_path, family):
    config = replace(SIZES, **FAMILIES[family])
    params = random_params(4, config)
    folder = export_folder(
        tmp_path / "m",
        config,
        params,
        TOKENIZER,
        chat_template=TEMPLATE,
        template_variables={"bos_token": "<|user|>"},
        stop_tokens=(256, 258),
    )
    weights = load_weights(folder)
    assert weights.config == config
    chex.assert_trees_all_equal(weights.params, params)
    assert weights.tokenizer.to_str() == TOKENIZER.to_str()
    assert weights.chat_template == TEMPLATE
    assert weights.template_variables == {"bos_token": "<|user|>"}
    assert weights.stop_tokens == (256, 258)
    stored = load_file(folder / "model.safetensors")
    expected = hub_weights(params, config)
    assert stored.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(stored[name], value)


def test_a_base_model_has_neither_template_nor_stop_tokens(tmp_path):
    folder = export_folder(tmp_path / "m", SIZES, random_params(4, SIZES), TOKENIZER)
    weights = load_weights(folder)
    assert (weights.chat_template, weights.stop_tokens) == ("", ())
    assert weights.template_variables == {}


def test_shards_are_of_the_size_asked_for(tmp_path):
    params, limit = random_params(4, SIZES), 20_000
    folder = export_folder(tmp_path / "m", SIZES, params, TOKENIZER, shard_bytes=limit)
    shards = sorted(folder.glob("*.safetensors"))
    count = len(shards)
    names = [f"model-{i:05d}-of-{count:05d}.safetensors" for i in range(1, count + 1)]
    assert [shard.name for shard in shards] == names and count > 2
    held = {shard.name: load_file(shard) for shard in shards}
    sizes = {n: sum(x.nbytes for x in part.values()) for n, part in held.items()}
    assert all(sizes[n] <= limit or len(held[n]) == 1 for n in names)
    index = json.loads((folder / INDEX).read_text())
    assert index["metadata"]["total_size"] == sum(sizes.values())
    assert index["weight_map"] == {t: n for n, part in held.items() for t in part}
    chex.assert_trees_all_equal(load_weights(folder).params, params)


def test_half_precision_is_written_exactly(tmp_path):
    config, half = cast_products(SIZES, random_params(4, SIZES), jnp.bfloat16)
    folder = export_folder(tmp_path / "m", config, half, TOKENIZER)
    weights = load_weights(folder)
    assert not weights.config.tied_embeddings
    widened = jax.tree.map(lambda x: x.astype(jnp.float32), half)
    chex.assert_trees_all_equal(weights.params, widened)


def test_an_earlier_model_is_replaced_as_a_whole(tmp_path):
    for seed, size in ((1, 20_000), (2, 10**9)):
        params = random_params(seed, SIZES)
        folder = export_folder(
            tmp_path / "m", SIZES, params, TOKENIZER, shard_bytes=size
        )
    assert not (folder / INDEX).exists()
    chex.assert_trees_all_equal(load_weights(folder).params, params)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_another_folder_is_left_alone(tmp_path):
    for name in ("notes.txt", "data.safetensors"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(ConfigError, match="expected no folder yet, or a model's"):
            export_folder(tmp_path, SIZES, random_params(4, SIZES), TOKENIZER)
        assert [path.name for path in tmp_path.iterdir()] == [name]
        (tmp_path / name).unlink()


def with_lora(params):
    lora = LoraConfig(rank=2, alpha=2.0)
    adapters = init_adapters(jax.random.key(0), SIZES, lora)
    return with_adapters(params, adapters, lora)


@pytest.mark.parametrize(
    ("config", "change", "error", "message"),
    [
        ({}, with_lora, ConfigError, "plain variables, got adapters beside them"),
        ({"hidden_size": 16}, None, ConfigError, r"embedding: expected shape \(260, 1"),
        ({"num_layers": 1}, None, ConfigError, "layer_1/.*expected shape None"),
        ({"qk_norm": True, "qkv_bias": True}, None, ConfigError, "got both"),
        ({"vocab_size": 300}, None, WeightsError, "260 tokens, expected vocab_size=30"),
        ({"vocab_size": 259}, None, WeightsError, "260 tokens, expected vocab_size=25"),
    ],
)
def test_what_no_folder_can_hold_is_refused(tmp_path, config, change, error, message):
    changed = replace(SIZES, **config)
    own = {"vocab_size", "qk_norm"} & config.keys()
    params = random_params(4, changed if own else SIZES)
    with pytest.raises(error, match=message):
        export_folder(
            tmp_path / "m", changed, change(params) if change else params, TOKENIZER
        )
    assert not list(tmp_path.iterdir())
