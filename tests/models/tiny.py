"""A decoder small enough to compile in a blink, in both weight layouts."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.sampling import SamplingRows

CONFIG = DecoderConfig(
    vocab_size=40,
    hidden_size=16,
    intermediate_size=24,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    context_length=64,
    rope_base=1000.0,
)
DECODER = Decoder(CONFIG)


@cache
def random_params(seed=0, config=CONFIG):
    """Weights large enough for logits that differ."""
    init = partial(Decoder(config).init, tokens=jnp.zeros((1, 1), jnp.int32))
    leaves, tree = jax.tree.flatten(jax.eval_shape(init, jax.random.key(0)))
    sizes = np.cumsum([leaf.size for leaf in leaves])
    drawn = 0.4 * np.asarray(jax.random.normal(jax.random.key(seed), (sizes[-1],)))
    parts = np.split(drawn, sizes[:-1])
    arrays = [
        jnp.asarray(part.reshape(leaf.shape) + (len(leaf.shape) == 1))
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(tree, arrays)


def hub_config(config=CONFIG):
    family = "qwen2" if config.qkv_bias else "qwen3" if config.qk_norm else "llama"
    scaling = config.rope_scaling
    if scaling is not None:
        scaling = {
            "rope_type": scaling.kind,
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
            "original_max_position_embeddings": scaling.original_context_length,
        }
    return {
        "model_type": family,
        "rope_scaling": scaling,
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.context_length,
        "rope_theta": config.rope_base,
        "rms_norm_eps": config.rms_epsilon,
        "tie_word_embeddings": config.tied_embeddings,
    }


def hub_weights(params, config=CONFIG):
    """The same weights under Hugging Face names, `[out, in]`, projections apart."""
    flat = jax.tree.map(lambda x: np.asarray(x, np.float32), params["params"])
    out = {
        "model.embed_tokens.weight": flat["embedding"],
        "model.norm.weight": flat["final_norm"],
    }
    if not config.tied_embeddings:
        out["lm_head.weight"] = flat["unembedding"]
    heads, groups = config.num_heads * config.head_dim, config.num_kv_heads
    cuts = [heads, heads + groups * config.head_dim]
    for i in range(config.num_layers):
        layer, name = flat[f"layer_{i}"], f"model.layers.{i}."
        parts = dict(zip("qkv", np.split(layer["qkv"].T, cuts), strict=True))
        gate, up = np.split(layer["gate_up"].T, 2)
        out |= {f"{name}self_attn.{k}_proj.weight": v for k, v in parts.items()}
        out |= {
            f"{name}self_attn.o_proj.weight": layer["out"].T,
            f"{name}mlp.gate_proj.weight": gate,
            f"{name}mlp.up_proj.weight": up,
            f"{name}mlp.down_proj.weight": layer["down"].T,
            f"{name}input_layernorm.weight": layer["attention_norm"],
            f"{name}post_attention_layernorm.weight": layer["mlp_norm"],
        }
        if config.qkv_bias:
            parts = zip("qkv", np.split(layer["qkv_bias"], cuts), strict=True)
            out |= {f"{name}self_attn.{k}_proj.bias": v for k, v in parts}
        if config.qk_norm:
            out |= {
                f"{name}self_attn.q_norm.weight": layer["query_norm"],
                f"{name}self_attn.k_norm.weight": layer["key_norm"],
            }
    return {k: np.ascontiguousarray(v) for k, v in out.items()}


def sampling_rows(temperature, top_k=None, top_p=None):
    """`SamplingRows` from plain lists."""
    temperature = jnp.asarray(temperature, jnp.float32)
    size = temperature.shape
    return SamplingRows(
        temperature=temperature,
        top_k=jnp.asarray(np.zeros(size) if top_k is None else top_k, jnp.int32),
        top_p=jnp.asarray(np.ones(size) if top_p is None else top_p, jnp.float32),
    )
