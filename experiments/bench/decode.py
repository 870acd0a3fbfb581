"""How fast SmolLM2's decoder decodes and prefills, as ratios in one run.

python -m experiments.bench.decode

Random weights of SmolLM2-135M's sizes: speed does not depend on the values, and nothing
has to be fetched. `plain` has one float32 matrix for every projection; `fused` is what
`jerp.models.decoder` does; `bfloat16` is what `LocalExecutor` runs by default. Rounds
go through the ways in turn, so that a busy machine slows all alike; the table shows the
fastest round, because other programs can only add time.
Expected on 2 cores with AVX512-BF16: 270 tok/s plain and fused at 16 rows (the compiler
made joint projections no faster, once the cache was laid out well), 400 in bfloat16 at
16 rows and 520 at 32, of which 150 at 16 rows were asked for; prefill 800 and 1,200.
A single stream is what fixed batches are worst at: 43 tok/s where llama.cpp 0.3.36
decodes 111 (4-bit weights, same kind of machine; its prefill was 255).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from rich.console import Console
from rich.table import Table

from jerp.errors import ConfigError
from jerp.models.attention import apply_rotary, grouped_attention, rotary_angles
from jerp.models.decoder import Decoder, DecoderConfig, cast_products, rms_norm
from jerp.models.generate import DecodeRows, decode, init_cache
from jerp.models.paging import BlockBatch, init_pool, prefill
from jerp.models.sampling import SamplingRows, sample_tokens
from jerp.typing import Array

__all__ = ["SMOLLM2", "Decode", "Way", "all_ways", "measure"]

SMOLLM2 = DecoderConfig(
    vocab_size=49_152,
    hidden_size=576,
    intermediate_size=1536,
    num_layers=30,
    num_heads=9,
    num_kv_heads=3,
    head_dim=64,
    context_length=8192,
    rope_base=100_000.0,
)
POSITION, BLOCK = 120, 16
DECODE_BASE, PREFILL_BASE = "decode plain float32, 16 rows", "prefill float32"


@dataclass(frozen=True)
class Decode:
    """Measures decoding and prefill.

    Attributes:
      rounds: measurements of each way; the fastest is shown.
      capacity: positions of a row.
      chunk: tokens a row in one call.
      blocks: blocks of 16 tokens in one prefill.
    """

    rounds: int = 10
    capacity: int = 256
    chunk: int = 4
    blocks: int = 16

    def __post_init__(self):
        for name in ("rounds", "chunk", "blocks"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")
        if self.capacity % BLOCK or self.capacity < POSITION + self.chunk:
            raise ConfigError(
                f"capacity: expected a multiple of {BLOCK} from {POSITION + self.chunk}"
                f" up, got {self.capacity}"
            )


@dataclass
class Way:
    """One way to compute: `call(state)` returns the next state.

    Attributes:
      tokens: what one call produces or reads.
      seconds: one number a round.
    """

    call: Callable[[Any], Any]
    state: Any
    tokens: int
    seconds: list[float]

    def run(self) -> float:
        """Seconds of one call."""
        start = time.perf_counter()
        self.state = jax.block_until_ready(self.call(self.state))
        return time.perf_counter() - start


def rows(count: int) -> DecodeRows:
    """`count` rows in the middle of a completion."""
    return DecodeRows(
        token=jnp.ones(count, jnp.int32),
        position=jnp.full(count, POSITION, jnp.int32),
        drawn=jnp.zeros(count, jnp.int32),
        keys=jax.random.split(jax.random.key(0), count),
        sampling=SamplingRows(
            temperature=jnp.full(count, 0.7),
            top_k=jnp.zeros(count, jnp.int32),
            top_p=jnp.ones(count),
        ),
    )


def split_matrices(params: Any, model: DecoderConfig) -> dict[str, Any]:
    """The same weights with one matrix for every projection."""
    heads, shared = (n * model.head_dim for n in (model.num_heads, model.num_kv_heads))
    flat = dict(params["params"])
    for i in range(model.num_layers):
        layer = dict(flat[f"layer_{i}"])
        cuts = [heads, heads + shared]
        layer["q"], layer["k"], layer["v"] = jnp.split(layer.pop("qkv"), cuts, axis=1)
        layer["gate"], layer["up"] = jnp.split(layer.pop("gate_up"), 2, axis=1)
        flat[f"layer_{i}"] = layer
    return flat


def plain_step(
    flat: Any, cache: Any, row: DecodeRows, *, model: DecoderConfig
) -> tuple[Any, Array]:
    """One decoding step without joint projections: `(cache, token [B])`."""
    batch, norm = jnp.arange(row.token.shape[0]), model.rms_epsilon
    x = flat["embedding"][row.token][:, None]
    angles = rotary_angles(
        row.position[:, None], head_dim=model.head_dim, base=model.rope_base
    )
    after = []
    for i, (keys, values) in enumerate(cache):
        w = flat[f"layer_{i}"]
        y = rms_norm(x, w["attention_norm"], epsilon=norm)
        q, k, v = (
            (y @ w[n]).reshape(*y.shape[:2], -1, model.head_dim)
            for n in ("q", "k", "v")
        )
        q, k = apply_rotary(q, angles), apply_rotary(k, angles)
        keys = keys.at[batch, :, :, row.position].set(k[:, 0], mode="drop")
        values = values.at[batch, :, row.position].set(v[:, 0], mode="drop")
        seen = jnp.arange(values.shape[2])[None, None] <= row.position[:, None, None]
        mixed = grouped_attention(q, keys, values, seen)
        x = x + mixed.reshape(*x.shape[:2], -1) @ w["out"]
        y = rms_norm(x, w["mlp_norm"], epsilon=norm)
        x = x + (jax.nn.silu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]
        after.append((keys, values))
    hidden = rms_norm(x, flat["final_norm"], epsilon=norm)[:, 0]
    uniform = jax.vmap(jax.random.uniform)(
        jax.vmap(jax.random.fold_in)(row.keys, row.drawn)
    )
    token, _ = sample_tokens(hidden @ flat["embedding"].T, uniform, row.sampling)
    return tuple(after), token


def plain_way(config: Decode, model: DecoderConfig, params: Any, count: int) -> Way:
    """Decoding with one float32 matrix a projection."""
    flat, start = split_matrices(params, model), rows(count)

    def chunk(flat, cache, row):
        def step(carry, _):
            cache, row = carry
            cache, token = plain_step(flat, cache, row, model=model)
            row = row.replace(
                token=token, position=row.position + 1, drawn=row.drawn + 1
            )
            return (cache, row), token

        (cache, _), tokens = jax.lax.scan(step, (cache, row), None, config.chunk)
        return cache, tokens.T

    compiled = jax.jit(chunk, donate_argnums=1)
    cache = init_cache(model, batch_size=count, capacity=config.capacity)
    return Way(
        lambda state: compiled(flat, state[0], start),
        (cache, None),
        count * config.chunk,
        [],
    )


def fused_way(config: Decode, model: DecoderConfig, params: Any, count: int) -> Way:
    """Decoding as the executor does it."""
    start = rows(count)
    compiled = jax.jit(
        partial(decode, decoder=Decoder(model), steps=config.chunk), donate_argnums=1
    )

    def call(state):
        cache, _, tokens, _ = compiled(params, state[0], start)
        return cache, tokens

    cache = init_cache(model, batch_size=count, capacity=config.capacity)
    return Way(call, (cache, None), count * config.chunk, [])


def prefill_way(config: Decode, model: DecoderConfig, params: Any) -> Way:
    """Prefill as the executor does it: blocks of several prompts in one call."""
    count, width = config.blocks, config.capacity // BLOCK
    batch = BlockBatch(
        tokens=jnp.ones((count, BLOCK), jnp.int32),
        start=jnp.zeros(count, jnp.int32),
        block=jnp.arange(count, dtype=jnp.int32),
        table=jnp.zeros((count, width), jnp.int32),
    )
    compiled = jax.jit(partial(prefill, decoder=Decoder(model)), donate_argnums=1)
    pool = init_pool(model, num_blocks=2 * count, block_size=BLOCK)
    return Way(lambda state: compiled(params, state, batch), pool, count * BLOCK, [])


def all_ways(
    config: Decode, model: DecoderConfig = SMOLLM2
) -> dict[str, Callable[[], Way]]:
    """How to set up each way, by its name in the table."""
    params = jax.jit(Decoder(model).init)(
        jax.random.key(0), jnp.zeros((1, 1), jnp.int32)
    )
    exact = cast_products(model, params, jnp.float32)
    half = cast_products(model, params, jnp.bfloat16)
    return {
        DECODE_BASE: lambda: plain_way(config, model, params, 16),
        "decode fused float32, 1 row": lambda: fused_way(config, *exact, 1),
        "decode fused float32, 16 rows": lambda: fused_way(config, *exact, 16),
        "decode fused bfloat16, 16 rows": lambda: fused_way(config, *half, 16),
        "decode fused bfloat16, 32 rows": lambda: fused_way(config, *half, 32),
        "decode fused bfloat16, 64 rows": lambda: fused_way(config, *half, 64),
        PREFILL_BASE: lambda: prefill_way(config, *exact),
        "prefill bfloat16": lambda: prefill_way(config, *half),
    }


def measure(config: Decode, makers: dict[str, Callable[[], Way]]) -> dict[str, Way]:
    """Measures ways by turns; compiling is not counted."""
    ways = {name: make() for name, make in makers.items()}
    for way in ways.values():
        way.run()
    for _ in range(config.rounds):
        for way in ways.values():
            way.seconds.append(way.run())
    return ways


def main(config: Decode) -> None:
    """Measures and prints a table of the fastest rounds."""
    ways = measure(config, all_ways(config))
    table = Table("way", "ms a call", "tok/s", "times the plain one")
    speed = {name: way.tokens / min(way.seconds) for name, way in ways.items()}
    for name, way in ways.items():
        base = speed[PREFILL_BASE if name.startswith("prefill") else DECODE_BASE]
        table.add_row(
            name,
            f"{1e3 * min(way.seconds):.0f}",
            f"{speed[name]:.0f}",
            f"{speed[name] / base:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Decode))
