"""Adapters in PEFT's layout; against PEFT itself in `test_parity.py`."""

import json
from dataclasses import replace

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from jerp.errors import ConfigError, WeightsError
from jerp.models.lora import ATTENTION, LoraConfig, init_adapters
from jerp.storage.adapters import load_adapters, save_adapters
from tests.models.test_lora import random_adapters
from tests.models.tiny import CONFIG

LORA = LoraConfig(rank=2, alpha=3.0, dropout=0.1)
SETTINGS, TENSORS = "adapter_config.json", "adapter_model.safetensors"


@pytest.mark.parametrize(
    "targets", [ATTENTION, r"layer_\d+/.*", r"layer_1/(q|down)", r".*/up|layer_0/k"]
)
def test_reading_back_gives_the_same_adapters(tmp_path, targets):
    lora = replace(LORA, targets=targets)
    adapters = random_adapters(1, CONFIG, lora)
    again, read = load_adapters(
        save_adapters(tmp_path / "a", adapters, lora, base_model="base"), CONFIG
    )
    chex.assert_trees_all_equal(read, adapters)
    assert replace(again, targets=targets) == lora
    chex.assert_trees_all_equal_shapes(
        read, init_adapters(jax.random.key(0), CONFIG, again)
    )


def test_names_and_axes_are_those_of_peft(tmp_path):
    lora = replace(LORA, targets="layer_1/(gate|k)")
    adapters = random_adapters(1, CONFIG, lora)
    folder = save_adapters(tmp_path / "a", adapters, lora, base_model="base")
    stored = load_file(folder / TENSORS)
    prefix = "base_model.model.model.layers.1"
    pairs = {"self_attn.k_proj": "k", "mlp.gate_proj": "gate"}
    assert stored.keys() == {
        f"{prefix}.{place}.lora_{half}.weight" for place in pairs for half in "AB"
    }
    for place, name in pairs.items():
        for half in "AB":
            expected = adapters["layer_1"][name][half.lower()].T
            found = stored[f"{prefix}.{place}.lora_{half}.weight"]
            np.testing.assert_array_equal(found, expected)
    settings = json.loads((folder / SETTINGS).read_text())
    assert (settings["r"], settings["lora_alpha"]) == (2, 3.0)
    assert settings["target_modules"] == [
        "model.layers.1.mlp.gate_proj",
        "model.layers.1.self_attn.k_proj",
    ]
    assert settings["base_model_name_or_path"] == "base"


def saved(folder, **changes):
    adapters = random_adapters(1, CONFIG, LORA)
    save_adapters(folder, adapters, LORA)
    settings = json.loads((folder / SETTINGS).read_text()) | changes
    (folder / SETTINGS).write_text(json.dumps(settings))
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"use_dora": True}, "use_dora: expected False, got True; this variant"),
        ({"use_rslora": True}, "use_rslora: expected False"),
        ({"bias": "all"}, "bias: expected 'none', got 'all'"),
        ({"rank_pattern": {"q_proj": 4}}, "rank_pattern: expected None, got"),
        ({"modules_to_save": ["lm_head"]}, "modules_to_save: expected None, got"),
        ({"peft_type": "IA3"}, "peft_type: expected 'LORA', got 'IA3'"),
        ({"r": 3}, r"layer_0/q/a: expected shape \(16, 3\), got \(16, 2\)"),
        ({"lora_alpha": -1}, "alpha: expected a positive number"),
        ({"r": None}, r"adapter_config\.json: .*NoneType"),
    ],
)
def test_other_variants_are_refused(tmp_path, changes, message):
    with pytest.raises(WeightsError, match=message):
        load_adapters(saved(tmp_path / "a", **changes), CONFIG)


def test_empty_settings_of_peft_are_no_variants(tmp_path):
    empty = {"rank_pattern": {}, "alpha_pattern": {}, "modules_to_save": None}
    load_adapters(saved(tmp_path / "a", **empty), CONFIG)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num_layers": 1}, "adapters of layer_1, expected layers below 1"),
        ({"hidden_size": 32}, r"layer_0/q/a: expected shape \(32, 2\), got \(16, 2\)"),
    ],
)
def test_adapters_of_another_model_are_refused(tmp_path, config, message):
    folder = saved(tmp_path / "a")
    with pytest.raises(WeightsError, match=message):
        load_adapters(folder, replace(CONFIG, **config))


def test_half_of_a_pair_or_something_else_is_refused(tmp_path):
    folder = saved(tmp_path / "a")
    stored = load_file(folder / TENSORS)
    name = "base_model.model.model.layers.1.self_attn.v_proj.lora_B.weight"
    rest = {key: value for key, value in stored.items() if key != name}
    save_file(rest, folder / TENSORS)
    with pytest.raises(
        WeightsError, match=r"layer 1 has no lora_B of self_attn\.v_proj"
    ):
        load_adapters(folder, CONFIG)
    other = "base_model.model.lm_head.lora_A.weight"
    save_file(stored | {other: stored[name]}, folder / TENSORS)
    with pytest.raises(WeightsError, match=r"lm_head.*nothing else is supported"):
        load_adapters(folder, CONFIG)
    save_file({}, folder / TENSORS)
    with pytest.raises(WeightsError, match="expected adapters, got none"):
        load_adapters(folder, CONFIG)


def test_half_precision_becomes_float32(tmp_path):
    folder = saved(tmp_path / "a")
    stored = load_file(folder / TENSORS)
    halves = {key: value.astype(np.float16) for key, value in stored.items()}
    save_file(halves, folder / TENSORS)
    _, read = load_adapters(folder, CONFIG)
    assert {x.dtype for x in jax.tree.leaves(read)} == {jnp.dtype("float32")}
    chex.assert_trees_all_close(read, random_adapters(1, CONFIG, LORA), atol=1e-3)


@pytest.mark.parametrize("name", [SETTINGS, TENSORS])
@pytest.mark.parametrize("content", [None, b"", b"[]"])
def test_a_broken_file_says_which(tmp_path, name, content):
    folder = saved(tmp_path / "a")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(WeightsError, match=name):
        load_adapters(folder, CONFIG)


def test_a_setting_that_is_missing_is_named(tmp_path):
    folder = saved(tmp_path / "a")
    (folder / SETTINGS).write_text('{"peft_type": "LORA", "r": 2}')
    with pytest.raises(WeightsError, match="has no 'lora_alpha'"):
        load_adapters(folder, CONFIG)


def test_another_folder_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds 'notes.txt'; name another folder"):
        save_adapters(tmp_path, random_adapters(1, CONFIG, LORA), LORA)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
