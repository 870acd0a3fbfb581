"""Llama- and Qwen-family decoders and a sampler by loops; imports nothing of jerp.

Weights have the names and the `[out, in]` layout of a Hugging Face folder.
"""

import math

import numpy as np


def rms_norm(x, scale, epsilon):
    out = []
    for row in x:
        mean_square = sum(float(v) ** 2 for v in row) / len(row)
        out.append(
            [
                v / math.sqrt(mean_square + epsilon) * s
                for v, s in zip(row, scale, strict=True)
            ]
        )
    return np.array(out)


def frequency(index, dim, base, scaling=None):
    """Radians a position, of pair `index`; `scaling` as in a config.json."""
    plain = 1 / base ** (2 * index / dim)
    if scaling is None:
        return plain
    slow = plain / scaling["factor"]
    if scaling["rope_type"] == "linear":
        return slow
    context = scaling["original_max_position_embeddings"]
    wave = 2 * math.pi / plain
    if wave < context / scaling["high_freq_factor"]:
        return plain
    if wave > context / scaling["low_freq_factor"]:
        return slow
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    share = (context / wave - low) / (high - low)
    return (1 - share) * slow + share * plain


def rotate(vector, position, base, scaling=None):
    """As complex numbers: pair (i, i + d/2) turned by its frequency times position."""
    half = len(vector) // 2
    out = np.zeros(len(vector))
    for i in range(half):
        angle = position * frequency(i, len(vector), base, scaling)
        turned = complex(vector[i], vector[i + half]) * complex(
            math.cos(angle), math.sin(angle)
        )
        out[i], out[i + half] = turned.real, turned.imag
    return out


def attend(query, keys, values):
    scores = np.array([float(query @ k) / math.sqrt(len(query)) for k in keys])
    weights = np.exp(scores - scores.max())
    weights = weights / weights.sum()
    return sum(w * v for w, v in zip(weights, values, strict=True))


def silu(x):
    return x / (1 + np.exp(-x))


def projected(x, weights, module):
    """`x W^T`, plus a bias and an adapter's product where `weights` have them."""
    out = x @ np.array(weights[f"{module}.weight"], np.float64).T
    if f"{module}.bias" in weights:
        out = out + np.array(weights[f"{module}.bias"])
    if f"{module}.lora_A" in weights:
        a, b = weights[f"{module}.lora_A"], weights[f"{module}.lora_B"]
        out = out + weights["lora_scale"] * (x @ np.array(a).T) @ np.array(b).T
    return out


def attention(x, weights, prefix, config):
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config.get("head_dim") or config["hidden_size"] // heads
    base, scaling = config["rope_theta"], config.get("rope_scaling")
    project = {name: projected(x, weights, f"{prefix}{name}_proj") for name in "qkv"}

    def turned(name, head):
        rows = project[name][:, head * dim : (head + 1) * dim]
        if f"{prefix}{name}_norm.weight" in weights:
            scale = weights[f"{prefix}{name}_norm.weight"]
            rows = rms_norm(rows, scale, config["rms_norm_eps"])
        return [rotate(row, t, base, scaling) for t, row in enumerate(rows)]

    out = np.zeros((len(x), heads * dim))
    for h in range(heads):
        g = h // (heads // groups)
        q, k = turned("q", h), turned("k", g)
        v = [row[g * dim : (g + 1) * dim] for row in project["v"]]
        for t in range(len(x)):
            out[t, h * dim : (h + 1) * dim] = attend(q[t], k[: t + 1], v[: t + 1])
    return projected(out, weights, f"{prefix}o_proj")


def logits(weights, tokens, config):
    """`[T, V]` of one sequence."""
    embedding = np.array(weights["model.embed_tokens.weight"], np.float64)
    x = np.array([embedding[t] for t in tokens])
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        y = rms_norm(
            x, weights[f"{layer}input_layernorm.weight"], config["rms_norm_eps"]
        )
        x = x + attention(y, weights, f"{layer}self_attn.", config)
        y = rms_norm(
            x,
            weights[f"{layer}post_attention_layernorm.weight"],
            config["rms_norm_eps"],
        )
        gate = projected(y, weights, f"{layer}mlp.gate_proj")
        up = projected(y, weights, f"{layer}mlp.up_proj")
        x = x + projected(silu(gate) * up, weights, f"{layer}mlp.down_proj")
    x = rms_norm(x, weights["model.norm.weight"], config["rms_norm_eps"])
    unembedding = np.array(weights.get("lm_head.weight", embedding))
    return x @ unembedding.T


def probabilities(row, temperature, top_k, top_p):
    """What a token is drawn from, by sorting; ties at the edge are kept."""
    scaled = [float(v) / temperature for v in row]
    top = max(scaled)
    weight = [math.exp(v - top) for v in scaled]
    order = sorted(range(len(row)), key=lambda i: -scaled[i])
    if top_k:
        edge = scaled[order[min(top_k, len(order)) - 1]]
        weight = [w if v >= edge else 0.0 for w, v in zip(weight, scaled, strict=True)]
    if top_p < 1:
        total, mass = sum(weight), 0.0
        for i in order:
            mass += weight[i]
            if mass >= top_p * total:
                weight = [
                    w if v >= scaled[i] else 0.0
                    for w, v in zip(weight, scaled, strict=True)
                ]
                break
    return [w / sum(weight) for w in weight]


def draw(probability, uniform):
    """First token whose cumulative probability exceeds `uniform`."""
    mass = 0.0
    for token, p in enumerate(probability):
        mass += p
        if p > 0 and mass > uniform:
            return token
    return max(i for i, p in enumerate(probability) if p > 0)
