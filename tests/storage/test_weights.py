"""Both formats give the model that was written; anything broken says so."""

import json
from dataclasses import replace

import chex
import gguf
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import UnknownNameError, WeightsError
from jerp.models.attention import RopeScaling
from jerp.models.decoder import Decoder
from jerp.storage.folder_weights import INDEX
from jerp.storage.gguf_weights import unpermute_rotary
from jerp.storage.weights import MODELS, cache_folder, list_models, load_weights
from tests.models.tiny import hub_config, hub_weights, random_params
from tests.reference import decoder as reference
from tests.reference import gguf_blocks
from tests.storage.model_files import (
    SIZES,
    VOCABULARY,
    llama_cpp_order,
    write_folder,
    write_gguf,
)

KINDS = gguf.GGMLQuantizationType
ERROR = {"F32": 0.0, "F16": 1e-3, "BF16": 0.01, "Q8_0": 0.02, "Q4_0": 0.2, "Q4_1": 0.2}
ERROR |= {"Q5_0": 0.1, "Q5_1": 0.1}
"""Largest relative error of a weight in each kind."""


def test_rotary_rows_by_hand():
    """One head of four rows: pairs (0, 1) and (2, 3) become (0, 2) and (1, 3)."""
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert unpermute_rotary(rows, num_heads=1).tolist() == [[0], [2], [1], [3]]


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_rotary_rows_undo_the_converter(heads):
    rows = np.arange(heads * 8 * 2.0).reshape(heads * 8, 2)
    stored = llama_cpp_order(rows, heads)
    assert (stored != rows).any()
    np.testing.assert_array_equal(unpermute_rotary(stored, num_heads=heads), rows)


@pytest.mark.parametrize("kind", list(ERROR))
def test_gguf_gives_back_the_parameters(tmp_path, kind):
    path = write_gguf(tmp_path / "m.gguf", kind=KINDS[kind])
    weights = load_weights(path)
    assert weights.config == replace(SIZES, rms_epsilon=weights.config.rms_epsilon)
    assert weights.config.rms_epsilon == pytest.approx(SIZES.rms_epsilon)
    for ours, written in zip(
        jax.tree.leaves(weights.params),
        jax.tree.leaves(random_params(4, SIZES)),
        strict=True,
    ):
        scale = ERROR[kind] * float(jnp.abs(written).max())
        np.testing.assert_allclose(ours, written, atol=scale)
    assert weights.fingerprint.endswith(kind)


@pytest.mark.parametrize("kind", list(gguf_blocks.BYTES))
def test_blocks_of_256_equal_loops(tmp_path, kind):
    config = replace(SIZES, hidden_size=256, num_layers=1)
    blocks = gguf_blocks.blocks(kind, config.vocab_size)
    raw = {"token_embd.weight": (blocks, KINDS[kind])}
    weights = load_weights(write_gguf(tmp_path / "m.gguf", config, raw=raw))
    expected = [gguf_blocks.decode(kind, block) for block in blocks[:4]]
    embedding = weights.params["params"]["embedding"]
    np.testing.assert_allclose(embedding[:4], expected, rtol=1e-6, atol=1e-7)
    assert np.std(expected, axis=1).min() > 0.5
    assert weights.fingerprint.endswith(f"/{kind}")


FAMILIES = {
    "tied": {},
    "untied": {"tied_embeddings": False},
    "qwen2": {"qkv_bias": True},
    "qwen3": {"qk_norm": True, "head_dim": 10},
}


@pytest.mark.parametrize("family", list(FAMILIES))
@pytest.mark.parametrize("kind", ["gguf", "folder"])
def test_logits_are_those_of_the_written_weights(tmp_path, kind, family):
    """The reference reads the matrices before any format or permutation."""
    config = replace(SIZES, **FAMILIES[family])
    write = {"gguf": write_gguf, "folder": write_folder}[kind]
    weights = load_weights(write(tmp_path / "m", config))
    tokens = [5, 200, 17, 256, 3]
    logits = jax.jit(Decoder(weights.config).apply)(weights.params, jnp.array([tokens]))
    written = hub_weights(random_params(4, config), config)
    expected = reference.logits(written, tokens, hub_config(config))
    np.testing.assert_allclose(logits[0], expected, rtol=1e-4, atol=1e-4)


def test_both_formats_agree(tmp_path):
    a = load_weights(write_gguf(tmp_path / "m.gguf"))
    b = load_weights(write_folder(tmp_path / "m", shards=3))
    chex.assert_trees_all_equal(a.params, b.params)
    assert a.stop_tokens == b.stop_tokens == (256,)
    assert a.chat_template == b.chat_template
    assert a.template_variables["bos_token"] == "<|user|>"
    assert b.template_variables == {"bos_token": "<|user|>"}
    text = "Hello wörld 123 <|user|>"
    assert b.tokenizer.encode(text, add_special_tokens=False).ids[-1] == 257
    assert a.tokenizer.decode(a.tokenizer.encode(text).ids) == "Hello wörld 123 "


LLAMA3 = RopeScaling("llama3", 4.0)


def rope_factors(scaling, *, dim, base):
    """What llama.cpp's converter divides the frequencies by."""
    raw = hub_config(replace(SIZES, rope_scaling=scaling))["rope_scaling"]
    return np.array(
        [
            reference.frequency(i, dim, base) / reference.frequency(i, dim, base, raw)
            for i in range(dim // 2)
        ],
        np.float32,
    )


def test_llama_3_positions_of_a_gguf_file(tmp_path):
    config = replace(SIZES, rope_base=5e5)
    factors = rope_factors(LLAMA3, dim=8, base=5e5)
    assert 1.0 == factors[0] < factors[-1] == 4.0
    raw = {"rope_freqs.weight": (factors, KINDS.F32)}
    weights = load_weights(write_gguf(tmp_path / "m.gguf", config, raw=raw))
    assert weights.config.rope_scaling == LLAMA3
    other = rope_factors(RopeScaling("llama3", 4.0, 1.0, 4.0, 512), dim=8, base=5e5)
    raw = {"rope_freqs.weight": (other, KINDS.F32)}
    with pytest.raises(WeightsError, match=r"factors 1.0 and 4.0 of 8192, got another"):
        load_weights(write_gguf(tmp_path / "o.gguf", config, raw=raw))


def test_linear_positions_of_a_gguf_file(tmp_path):
    path = write_gguf(tmp_path / "m.gguf", scaling=gguf.RopeScalingType.LINEAR)
    assert load_weights(path).config.rope_scaling == RopeScaling("linear", 2.0)


@pytest.mark.parametrize("scaling", [LLAMA3, RopeScaling("linear", 2.0)])
def test_scaled_positions_of_a_folder(tmp_path, scaling):
    config = replace(SIZES, rope_scaling=scaling)
    assert load_weights(write_folder(tmp_path / "m", config)).config == config


def test_pre_tokenizers_of_a_gguf_file(tmp_path):
    cut = {"smollm": 3, "llama-bpe": 1, "qwen2": 3}
    for pre, pieces in cut.items():
        tokens = [*VOCABULARY[:-2], "12", "123"]
        merges = ["1 2", "12 3"]
        path = write_gguf(tmp_path / pre, pre=pre, tokens=tokens, merges=merges)
        assert len(load_weights(path).tokenizer.encode("123").ids) == pieces


def test_an_unknown_quantisation_names_the_known_ones(tmp_path):
    blocks = np.zeros((SIZES.vocab_size, 18), np.uint8)
    raw = {"token_embd.weight": (blocks, KINDS.IQ4_NL)}
    path = write_gguf(tmp_path / "m.gguf", raw=raw)
    message = r"one of F32, F16, .*Q6_K, got IQ4_NL \(token_embd.weight\)"
    with pytest.raises(WeightsError, match=message):
        load_weights(path)
    # A kind of tomorrow: its number stands behind the name and the two sizes.
    data = bytearray(write_gguf(tmp_path / "n.gguf").read_bytes())
    place = data.index(b"token_embd.weight") + len(b"token_embd.weight") + 4 + 16
    data[place] = 200
    path.write_bytes(data)
    with pytest.raises(WeightsError, match=r"F32, .*Q6_K, got one .*\b200\b"):
        load_weights(path)


def test_half_precision_folders_become_float32(tmp_path):
    weights = load_weights(write_folder(tmp_path / "m", dtype=np.float16))
    written = random_params(4, SIZES)
    chex.assert_trees_all_close(weights.params, written, atol=1e-3)
    assert {x.dtype for x in jax.tree.leaves(weights.params)} == {jnp.dtype("float32")}


def test_the_fingerprint_is_of_the_bytes(tmp_path):
    one = write_gguf(tmp_path / "one.gguf")
    same = tmp_path / "same.gguf"
    same.write_bytes(one.read_bytes())
    other = write_gguf(tmp_path / "other.gguf", kind=KINDS.F16)
    prints = [load_weights(p).fingerprint for p in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]


def test_stop_tokens_of_a_folder(tmp_path):
    folder = write_folder(tmp_path / "m")
    (folder / "generation_config.json").write_text('{"eos_token_id": [256, 258]}')
    assert load_weights(folder).stop_tokens == (256, 258)


def test_a_template_in_a_file_of_its_own_wins(tmp_path):
    folder = write_folder(tmp_path / "m")
    (folder / "chat_template.jinja").write_text("own")
    assert load_weights(folder).chat_template == "own"


@pytest.mark.parametrize("keep", [0, 3, 40, 2000, 20_000, -64])
def test_a_cut_gguf_file_says_so(tmp_path, keep):
    path = write_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WeightsError, match=r"m\.gguf: not a complete GGUF.*pull"):
        load_weights(path)


def test_another_kind_of_file_says_so(tmp_path):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"PK\x03\x04" + bytes(5000))
    with pytest.raises(WeightsError, match="not a complete GGUF file"):
        load_weights(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"skip": ["blk.1.ffn_up.weight"]}, "no tensor 'blk.1.ffn_up.weight'"),
        ({"pre": "mpt"}, "qwen2, got 'gpt2'/'mpt'; use a Hugging Face folder"),
        ({"model": "llama"}, "got 'llama'/'smollm'"),
        ({"architecture": "mamba"}, "of llama, qwen2, qwen3, got 'mamba'"),
        ({"scaling": gguf.RopeScalingType.YARN}, "none or linear, got 'yarn'"),
        ({"rotated": 4}, "rope.dimension_count: expected the 8 features of a head"),
        ({"parts": 3}, "one of 3 parts of a model"),
        (
            {"scaling": gguf.RopeScalingType.LINEAR, "factor": 0.5},
            r"m\.gguf: factor: expected at least 1, got 0.5",
        ),
        (
            {"tokens": [*VOCABULARY[:-5], "ab"]},
            "has 256 tokens, expected vocab_size=260",
        ),
        (
            {"raw": {"blk.0.attn_q.bias": (np.zeros(32, np.float32), KINDS.F32)}},
            "'blk.0.attn_q.bias' and 0 more tensors have no place in a llama decoder",
        ),
        ({"merges": ["a zz"]}, "merge 'a zz': expected tokens of the vocabulary"),
    ],
)
def test_an_unsupported_gguf_file_says_what(tmp_path, changes, message):
    path = write_gguf(tmp_path / "m.gguf", **changes)
    with pytest.raises(WeightsError, match=message):
        load_weights(path)


@pytest.mark.parametrize("keep", [0, 5, 300, -8])
def test_a_cut_safetensors_file_says_so(tmp_path, keep):
    folder = write_folder(tmp_path / "m")
    shard = folder / "model-0.safetensors"
    shard.write_bytes(shard.read_bytes()[:keep])
    with pytest.raises(WeightsError, match=r"not a complete safetensors file.*pull"):
        load_weights(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "mamba"}, "expected one of llama, qwen2, qwen3, got 'mamba'"),
        ({"hidden_act": "gelu"}, "hidden_act: expected 'silu', got 'gelu'"),
        ({"attention_bias": True}, "attention_bias: expected False, got True"),
        ({"mlp_bias": True}, "mlp_bias: expected False, got True"),
        ({"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}, "linear, llama3, got"),
        (
            {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 1},
            "layer_types: expected 'full_attention', got 'full_attention.sliding",
        ),
        ({"model_type": "qwen2"}, "no 'model.layers.0.self_attn.q_proj.bias'"),
        ({"num_hidden_layers": 1}, "'model.layers.1.*' and 8 more tensors"),
        ({"num_attention_heads": 3}, "refuses it|multiple of num_kv_heads"),
        ({"vocab_size": 259}, "has 260 tokens, expected vocab_size=259"),
        ({"vocab_size": 270}, "has 260 tokens, expected vocab_size=270"),
        ({"rope_scaling": {"rope_type": "llama3"}}, "Missing required keys"),
        ({"intermediate_size": 65}, "layer_0/down: expected shape"),
        ({"num_hidden_layers": 3}, "no 'model.layers.2"),
    ],
)
def test_an_unsupported_folder_says_what(tmp_path, changes, message):
    folder = write_folder(tmp_path / "m", **changes)
    with pytest.raises(WeightsError, match=message):
        load_weights(folder)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("config.json", "has no config.json"),
        ("tokenizer.json", "has no tokenizer.json"),
        ("model-0.safetensors", "has no .safetensors file"),
    ],
)
def test_a_folder_without_a_file_says_which(tmp_path, name, message):
    folder = write_folder(tmp_path / "m")
    (folder / name).unlink()
    with pytest.raises(WeightsError, match=message):
        load_weights(folder)


@pytest.mark.parametrize("by_name", [True, False])
def test_a_missing_shard_is_named(tmp_path, by_name):
    """Whether the index names it, or only the numbers in the others' names."""
    folder = write_folder(tmp_path / "m", shards=3)
    shards = [f"model-{i + 1:05d}-of-00003.safetensors" for i in range(3)]
    for i, shard in enumerate(shards):
        (folder / f"model-{i}.safetensors").rename(folder / shard)
    names = sorted(hub_weights(random_params(4, SIZES), SIZES))
    if not by_name:
        index = {"weight_map": {n: shards[i % 3] for i, n in enumerate(names)}}
        (folder / INDEX).write_text(json.dumps(index))
    load_weights(folder)
    (folder / shards[1]).unlink()
    with pytest.raises(WeightsError, match=f"the shard {shards[1]} is missing"):
        load_weights(folder)


@pytest.mark.parametrize("map_", [None, {"a": 3}, {"a": "../other.safetensors"}])
def test_a_broken_index_says_so(tmp_path, map_):
    folder = write_folder(tmp_path / "m")
    (folder / INDEX).write_text(json.dumps({"weight_map": map_}))
    with pytest.raises(WeightsError, match="weight_map: expected an object of file"):
        load_weights(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_broken_json_file_says_which(tmp_path, name):
    folder = write_folder(tmp_path / "m")
    (folder / name).write_text('{"model_type": "lla')
    with pytest.raises(WeightsError, match=name):
        load_weights(folder)


def test_a_config_without_a_size_says_which(tmp_path):
    folder = write_folder(tmp_path / "m")
    raw = json.loads((folder / "config.json").read_text())
    del raw["vocab_size"]
    (folder / "config.json").write_text(json.dumps(raw))
    with pytest.raises(WeightsError, match="has no 'vocab_size'"):
        load_weights(folder)


def test_names_paths_and_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JERP_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    with pytest.raises(WeightsError, match="type: jerp models pull smollm2"):
        load_weights("smollm2")
    with pytest.raises(UnknownNameError, match="did you mean 'smollm2'"):
        load_weights("smollm")
    with pytest.raises(WeightsError, match="no such file"):
        load_weights(tmp_path / "missing.gguf")
    [info] = list_models()
    assert (info.name, info.present) == ("smollm2", False)
    info.path.parent.mkdir(parents=True)
    write_gguf(info.path)
    [info] = list_models()
    assert info.present
    assert load_weights("smollm2").name == "smollm2"


def test_the_hub_folder_is_used_where_only_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("JERP_CACHE", str(tmp_path))
    folder = tmp_path / "models" / "smollm2"
    folder.mkdir(parents=True)
    write_folder(folder / "hub")
    assert list_models()[0].path == folder / "hub"
    assert load_weights("smollm2").fingerprint.endswith("/none")
    write_gguf(folder / MODELS["smollm2"].member)
    assert load_weights("smollm2").fingerprint.endswith("/F32")


def test_the_cache_is_in_the_home_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("JERP_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "jerp"
