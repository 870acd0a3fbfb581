"""A Llama-family decoder and its sampler by loops and float64; imports nothing of jerp.

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


def rotate(vector, position, base):
    """As complex numbers: pair (i, i + d/2) turned by position / base^(2 i / d)."""
    half = len(vector) // 2
    out = np.zeros(len(vector))
    for i in range(half):
        angle = position / base ** (2 * i / len(vector))
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


def attention(x, weights, prefix, config):
    heads, groups = config["num_attention_heads"], config["num_key_value_heads"]
    dim = config["hidden_size"] // heads
    project = {
        name: x @ np.array(weights[f"{prefix}{name}_proj.weight"]).T for name in "qkv"
    }
    out = np.zeros((len(x), heads * dim))
    for h in range(heads):
        g = h // (heads // groups)
        q = [
            rotate(row[h * dim : (h + 1) * dim], t, config["rope_theta"])
            for t, row in enumerate(project["q"])
        ]
        k = [
            rotate(row[g * dim : (g + 1) * dim], t, config["rope_theta"])
            for t, row in enumerate(project["k"])
        ]
        v = [row[g * dim : (g + 1) * dim] for row in project["v"]]
        for t in range(len(x)):
            out[t, h * dim : (h + 1) * dim] = attend(q[t], k[: t + 1], v[: t + 1])
    return out @ np.array(weights[f"{prefix}o_proj.weight"]).T


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
        gate, up, down = (
            np.array(weights[f"{layer}mlp.{n}_proj.weight"])
            for n in ("gate", "up", "down")
        )
        x = x + (silu(y @ gate.T) * (y @ up.T)) @ down.T
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
