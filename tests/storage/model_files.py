"""Writes one tiny random model as a GGUF file and as a Hugging Face folder."""

import json
from dataclasses import replace

import gguf
import numpy as np
from gguf.quants import quantize
from safetensors.numpy import save_file

from jerp.storage.tokenizer import byte_level_tokenizer
from tests.bridge.tiny_model import SPECIAL, TOKENS
from tests.models.tiny import CONFIG, hub_config, hub_weights, random_params

VOCABULARY = [*TOKENS, "ab"]
MERGES = ["a b"]
SIZES = replace(
    CONFIG,
    vocab_size=len(VOCABULARY),
    hidden_size=32,
    intermediate_size=64,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
)
TEMPLATE = "{{ bos_token }}{{ messages[0].content }}"
GGUF_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}
F32 = gguf.GGMLQuantizationType.F32


def llama_cpp_order(rows, num_heads):
    """Row `j D/2 + i` of a head goes to `2 i + j`, as llama.cpp's converter has it."""
    half = len(rows) // num_heads // 2
    out = np.empty_like(rows)
    for head in range(num_heads):
        first = head * 2 * half
        for j in range(2):
            for i in range(half):
                out[first + 2 * i + j] = rows[first + j * half + i]
    return out


def write_gguf(path, config=SIZES, kind=F32, skip=(), raw=None, **metadata):
    """Matrices in `kind`, norms in float32; `skip` leaves tensors out.

    `raw` are more tensors, or others, as `(bytes or floats, kind)` by name.
    """
    family = hub_config(config)["model_type"]
    writer = gguf.GGUFWriter(path, metadata.get("architecture", family))
    writer.add_block_count(config.num_layers)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_heads)
    writer.add_head_count_kv(config.num_kv_heads)
    if config.num_heads * config.head_dim != config.hidden_size:
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)
    writer.add_rope_dimension_count(metadata.get("rotated", config.head_dim))
    writer.add_rope_freq_base(config.rope_base)
    if "scaling" in metadata:
        writer.add_rope_scaling_type(metadata["scaling"])
        writer.add_rope_scaling_factor(metadata.get("factor", 2.0))
    writer.add_layer_norm_rms_eps(config.rms_epsilon)
    writer.add_tokenizer_model(metadata.get("model", "gpt2"))
    writer.add_tokenizer_pre(metadata.get("pre", "smollm"))
    tokens = metadata.get("tokens", VOCABULARY)
    writer.add_token_list(tokens)
    writer.add_token_types([3 if t in SPECIAL else 1 for t in tokens])
    writer.add_token_merges(metadata.get("merges", MERGES))
    writer.add_eos_token_id(256)
    writer.add_bos_token_id(257)
    writer.add_chat_template(TEMPLATE)
    if "parts" in metadata:
        writer.add_uint16("split.count", metadata["parts"])
    tensors = {
        name: (quantize(value, kind if value.ndim == 2 else F32), kind)
        for name, value in gguf_tensors(config).items()
    } | (raw or {})
    for name, (value, stored) in tensors.items():
        if name not in skip:
            stored = stored if value.ndim == 2 else F32
            writer.add_tensor(name, value, raw_dtype=stored)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def gguf_tensors(config):
    """Query and key rows in llama.cpp's order, where it has one of its own."""
    weights = hub_weights(random_params(4, config), config)
    names = {"embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output"}
    heads = {"attn_q": config.num_heads, "attn_k": config.num_kv_heads}
    permuted = hub_config(config)["model_type"] == "llama"
    out = {}
    for name, value in weights.items():
        *parts, end = name.split(".")
        if "layers" in parts:
            short = GGUF_NAMES[".".join(parts[3:])]
            if permuted and short in heads:
                value = llama_cpp_order(value, heads[short])
            out[f"blk.{parts[2]}.{short}.{end}"] = value
        else:
            out[f"{names[parts[-1]]}.{end}"] = value
    return out


def write_folder(folder, config=SIZES, dtype=np.float32, shards=1, **changes):
    """A Hugging Face folder; `changes` go into config.json."""
    folder.mkdir()
    weights = hub_weights(random_params(4, config), config)
    names = sorted(weights)
    for i in range(shards):
        part = {n: weights[n].astype(dtype) for n in names[i::shards]}
        save_file(part, folder / f"model-{i}.safetensors")
    raw = hub_config(config) | {"hidden_act": "silu", "eos_token_id": 256} | changes
    (folder / "config.json").write_text(json.dumps(raw))
    tokenizer = byte_level_tokenizer(VOCABULARY, MERGES, special=SPECIAL)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"bos_token": {"content": "<|user|>"}, "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def variables_of(config, weights):
    """Variables of a decoder from tensors of a folder, joined without jerp."""
    w = {name: np.asarray(value, np.float32) for name, value in weights.items()}
    params = {
        "embedding": w["model.embed_tokens.weight"],
        "final_norm": w["model.norm.weight"],
    }
    if not config.tied_embeddings:
        params["unembedding"] = w["lm_head.weight"]
    for i in range(config.num_layers):
        attention = f"model.layers.{i}.self_attn."
        mlp, layer = f"model.layers.{i}.mlp.", f"model.layers.{i}."
        qkv = [w[f"{attention}{n}_proj.weight"] for n in "qkv"]
        gate_up = [w[f"{mlp}{n}_proj.weight"] for n in ("gate", "up")]
        params[f"layer_{i}"] = {
            "attention_norm": w[f"{layer}input_layernorm.weight"],
            "qkv": np.concatenate(qkv).T,
            "out": w[f"{attention}o_proj.weight"].T,
            "mlp_norm": w[f"{layer}post_attention_layernorm.weight"],
            "gate_up": np.concatenate(gate_up).T,
            "down": w[f"{mlp}down_proj.weight"].T,
        }
        if config.qkv_bias:
            biases = [w[f"{attention}{n}_proj.bias"] for n in "qkv"]
            params[f"layer_{i}"]["qkv_bias"] = np.concatenate(biases)
        if config.qk_norm:
            params[f"layer_{i}"] |= {
                "query_norm": w[f"{attention}q_norm.weight"],
                "key_norm": w[f"{attention}k_norm.weight"],
            }
    return {"params": params}
