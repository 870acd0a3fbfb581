"""Live against transformers and PEFT in torch, where they are installed.

Folders that jerp writes load there, folders that they write load here, and both give
the same numbers; the golden files are still what they compute. In the default suite
the golden files stand in for this one.
"""

import copy
import importlib.util
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.models.attention import RopeScaling
from jerp.models.decoder import Decoder
from jerp.models.lora import LoraConfig, with_adapters
from jerp.storage.adapters import load_adapters, save_adapters
from jerp.storage.export import export_folder
from jerp.storage.weights import load_weights
from tests.models import families
from tests.models.test_lora import random_adapters
from tests.models.tiny import random_params
from tests.storage.model_files import SIZES
from tests.storage.test_export import FAMILIES, TOKENIZER

HAS_TORCH, HAS_PEFT = (
    all(importlib.util.find_spec(name) for name in names)
    for names in (("torch",), ("torch", "peft"))
)
pytestmark = [
    pytest.mark.skipif(
        not HAS_TORCH, reason="no torch to compare with: pip install 'jerp[parity]'"
    ),
    pytest.mark.filterwarnings("ignore"),  # theirs
]
needs_peft = pytest.mark.skipif(
    not HAS_PEFT, reason="no peft to compare with: pip install 'jerp[parity]'"
)
TOKENS = [[5, 200, 17, 256, 3, 90, 41], [0, 0, 7, 8, 9, 10, 259]]


def theirs(model, tokens):
    import torch

    with torch.no_grad():
        return model.eval()(torch.tensor(tokens)).logits.numpy()


def ours(config, params, tokens):
    return jax.jit(Decoder(config).apply)(params, jnp.asarray(tokens))


def read(folder):
    import torch
    import transformers

    load = transformers.AutoModelForCausalLM.from_pretrained
    return load(folder, dtype=torch.float32)


def built(raw):
    """Their model with the weights of the formula."""
    import torch
    import transformers

    settings = transformers.AutoConfig.for_model(**copy.deepcopy(raw))
    model = transformers.AutoModelForCausalLM.from_config(settings)
    weights = {k: torch.from_numpy(v) for k, v in families.weights(raw).items()}
    found = model.load_state_dict(weights, strict=False)
    assert not found.unexpected_keys
    assert {*found.missing_keys} <= {"lm_head.weight"}
    model.tie_weights()
    return model


@pytest.mark.parametrize("name", list(families.FAMILIES))
def test_golden_logits_are_still_theirs(name):
    golden = families.golden(name)
    logits = theirs(built(golden["config"]), golden["tokens"])
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-5)


@pytest.mark.parametrize("family", list(FAMILIES))
def test_they_read_what_we_write(tmp_path, family):
    """Random weights, in shards."""
    import transformers

    config = replace(SIZES, **FAMILIES[family], context_length=256)
    params = random_params(4, config)
    folder = export_folder(
        tmp_path / "m", config, params, TOKENIZER, shard_bytes=30_000
    )
    expected = theirs(read(folder), TOKENS)
    found = ours(config, params, TOKENS)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-4)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    text = "ab wörld 12<|user|>"
    assert tokenizer.encode(text) == TOKENIZER.encode(text).ids


@pytest.mark.parametrize("name", list(families.FAMILIES))
def test_we_read_what_they_write(tmp_path, name):
    import torch

    torch.manual_seed(0)
    raw = families.FAMILIES[name] | {"vocab_size": 260}
    model = built(raw)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(tmp_path, max_shard_size="20KB")
    TOKENIZER.save(str(tmp_path / "tokenizer.json"))
    assert len([*tmp_path.glob("*.safetensors")]) > 1
    weights = load_weights(tmp_path)
    found = ours(weights.config, weights.params, TOKENS)
    np.testing.assert_allclose(found, theirs(model, TOKENS), atol=1e-4)


@needs_peft
def test_peft_reads_our_adapters(tmp_path):
    import peft

    config = replace(SIZES, qkv_bias=True)
    params = random_params(4, config)
    lora = LoraConfig(rank=3, alpha=5.0, targets=r"layer_0/(q|up)|layer_1/(v|o|down)")
    adapters = random_adapters(1, config, lora)
    base = export_folder(tmp_path / "m", config, params, TOKENIZER)
    folder = save_adapters(tmp_path / "a", adapters, lora, base_model=str(base))
    model = peft.PeftModel.from_pretrained(read(base), str(folder))
    expected = theirs(model, TOKENS)
    scale = np.abs(expected).max()
    found = ours(config, with_adapters(params, adapters, lora), TOKENS)
    np.testing.assert_allclose(found / scale, expected / scale, atol=1e-4)
    plain = ours(config, params, TOKENS)
    assert np.abs(found - plain).max() > 0.1


@needs_peft
def test_we_read_pefts_adapters(tmp_path):
    import peft
    import torch

    torch.manual_seed(0)
    raw = families.FAMILIES["qwen3"] | {"vocab_size": 260}
    model = built(raw)
    model.save_pretrained(tmp_path / "m")
    TOKENIZER.save(str(tmp_path / "m" / "tokenizer.json"))
    settings = peft.LoraConfig(
        r=4,
        lora_alpha=6,
        target_modules=["q_proj", "o_proj", "gate_proj"],
        task_type="CAUSAL_LM",
    )
    adapted = peft.get_peft_model(model, settings)
    for name, parameter in adapted.named_parameters():
        if "lora_B" in name:
            parameter.data = 0.2 * torch.randn_like(parameter)
    adapted.save_pretrained(tmp_path / "a")
    weights = load_weights(tmp_path / "m")
    lora, adapters = load_adapters(tmp_path / "a", weights.config)
    assert (lora.rank, lora.alpha, lora.targets) == (4, 6.0, r"layer_\d+/(q|o|gate)")
    variables = with_adapters(weights.params, adapters, lora)
    found = ours(weights.config, variables, TOKENS)
    np.testing.assert_allclose(found, theirs(adapted, TOKENS), atol=1e-4)


@needs_peft
def test_golden_adapters_are_still_theirs():
    import peft
    import torch

    golden = families.golden("lora")
    settings = peft.LoraConfig(**golden["lora"], task_type="CAUSAL_LM")
    adapted = peft.get_peft_model(built(golden["config"]), settings)
    halves = {
        f"base_model.model.{place}.lora_{half}.default.weight": torch.from_numpy(value)
        for place, pair in families.lora_weights(golden["config"]).items()
        for half, value in zip("AB", pair, strict=True)
    }
    found = adapted.load_state_dict(halves, strict=False)
    assert not found.unexpected_keys
    assert not any("lora" in name for name in found.missing_keys)
    logits = theirs(adapted, golden["tokens"])
    np.testing.assert_allclose(logits, golden["logits"], atol=1e-5)


def test_scaled_frequencies_are_theirs():
    import transformers

    from jerp.models.attention import rotary_angles

    rope = families.LLAMA3 | {"rope_theta": 5e5, "original_max_position_embeddings": 99}
    settings = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=1, rope_parameters=rope
    )
    initialise = transformers.modeling_rope_utils.ROPE_INIT_FUNCTIONS["llama3"]
    expected, _ = initialise(settings, "cpu")
    found = rotary_angles(
        jnp.array([[1]]),
        head_dim=64,
        base=5e5,
        scaling=RopeScaling("llama3", 4.0, 1.0, 4.0, 99),
    )
    np.testing.assert_allclose(found[0, 0], expected.numpy(), rtol=1e-5)
