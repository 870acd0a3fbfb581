"""Tiny decoders of each family: a config.json, and weights by a formula.

Element `n` of tensor `i` (tensors in the order of their names, elements in C order) is

    w = s sin(0.731 n^2 + i),    s = 0.4; norms: 1 + 0.3 sin(0.731 n^2 + i)

in float64, rounded to float32. Quadratic phases give matrices of full rank, and no
generator of any library enters. Adapters continue the numbering of the weights.
"""

import json
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parents[1] / "golden"
LLAMA = {
    "model_type": "llama",
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-05,
    "rope_theta": 100.0,
    "tie_word_embeddings": True,
    "hidden_act": "silu",
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
FAMILIES = {
    "smollm2": LLAMA,
    "llama3": LLAMA
    | {"head_dim": 8, "tie_word_embeddings": False, "rope_scaling": LLAMA3},
    "linear": LLAMA | {"rope_scaling": {"rope_type": "linear", "factor": 2.5}},
    "qwen2": LLAMA | {"model_type": "qwen2", "rms_norm_eps": 1e-06},
    "qwen3": LLAMA | {"model_type": "qwen3", "head_dim": 6, "rms_norm_eps": 1e-06},
}
"""By the name of the golden file."""

TOKENS = [[3, 1, 4, 1, 5, 9, 2, 6, 5, 31], [27, 18, 28, 18, 28, 4, 5, 9, 0, 4]]
LORA = {"r": 2, "lora_alpha": 3.0, "target_modules": ["q_proj", "v_proj", "down_proj"]}


def golden(name):
    return json.loads((GOLDEN / f"decoder_{name}.json").read_text())


def shapes(raw):
    """Of each tensor of a folder, by name."""
    hidden, wide = raw["hidden_size"], raw["intermediate_size"]
    heads, groups = raw["num_attention_heads"], raw["num_key_value_heads"]
    dim = raw.get("head_dim") or hidden // heads
    rows = {"q": heads * dim, "k": groups * dim, "v": groups * dim}
    out = {"model.embed_tokens.weight": (raw["vocab_size"], hidden)}
    out["model.norm.weight"] = (hidden,)
    if not raw["tie_word_embeddings"]:
        out["lm_head.weight"] = (raw["vocab_size"], hidden)
    for i in range(raw["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        attention, mlp = f"{layer}self_attn.", f"{layer}mlp."
        out |= {f"{attention}{n}_proj.weight": (rows[n], hidden) for n in "qkv"}
        if raw["model_type"] == "qwen2":
            out |= {f"{attention}{n}_proj.bias": (rows[n],) for n in "qkv"}
        if raw["model_type"] == "qwen3":
            out |= {f"{attention}{n}_norm.weight": (dim,) for n in "qk"}
        out |= {
            f"{attention}o_proj.weight": (hidden, heads * dim),
            f"{mlp}gate_proj.weight": (wide, hidden),
            f"{mlp}up_proj.weight": (wide, hidden),
            f"{mlp}down_proj.weight": (hidden, wide),
            f"{layer}input_layernorm.weight": (hidden,),
            f"{layer}post_attention_layernorm.weight": (hidden,),
        }
    return dict(sorted(out.items()))


def formula(index, shape, *, norm=False):
    n = np.arange(np.prod(shape), dtype=np.float64).reshape(shape)
    wave = np.sin(0.731 * n * n + index)
    return (1 + 0.3 * wave if norm else 0.4 * wave).astype(np.float32)


def weights(raw):
    """Of a folder, by name."""
    return {
        name: formula(i, shape, norm="norm" in name)
        for i, (name, shape) in enumerate(shapes(raw).items())
    }


def lora_weights(raw, lora=LORA):
    """`{module: (lora_A [r, in], lora_B [out, r])}` of every target."""
    sizes = shapes(raw)
    modules = [
        name.removesuffix(".weight")
        for name in sizes
        if name.endswith(tuple(f"{target}.weight" for target in lora["target_modules"]))
    ]
    out = {}
    for i, module in enumerate(modules):
        rows, columns = sizes[f"{module}.weight"]
        first = len(sizes) + 2 * i
        a = formula(first, (lora["r"], columns))
        out[module] = a, formula(first + 1, (rows, lora["r"]))
    return out
