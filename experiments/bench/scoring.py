"""What scoring candidates costs beside reading the prompt alone, as a ratio in one run.

python -m experiments.bench.scoring

Random weights of SmolLM2-135M's sizes: speed does not depend on the values, and nothing
has to be fetched. `prefill` reads the prompt and gives the logits of the next token;
`all at once` is `jerp.models.scoring.score_candidates`; `one by one` is a forward pass
over prompt and candidate, for each. Rounds go through the ways in turn, so that a busy
machine slows all alike; the table shows medians of the rounds' ratios, and the fastest
round, because other programs can only add time.
Expected for 8 candidates of 4 tokens after 200: at most 1.3 times the prefill. On 2
busy cores 1.18 (processor time 1.18 to 1.19, arithmetic alone 1.15), with single rounds
up to 1.4; one by one took 8.4 times the prefill.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench.decode import SMOLLM2
from jerp.errors import ConfigError
from jerp.models.decoder import Decoder, DecoderConfig, cast_products, output_logits
from jerp.models.prefix import prefill_prefix
from jerp.models.scoring import score_candidates
from jerp.typing import Array

__all__ = ["Scoring", "all_ways", "measure"]

PREFILL = "prefill"


@dataclass(frozen=True)
class Scoring:
    """Measures scoring.

    Attributes:
      rounds: measurements of each way.
      prompt: tokens of the prompt.
      candidates: how many.
      length: tokens of each.
      bfloat16: round the matrices, as executors do by default.
    """

    rounds: int = 10
    prompt: int = 200
    candidates: int = 8
    length: int = 4
    bfloat16: bool = False

    def __post_init__(self):
        for name in ("rounds", "prompt", "candidates", "length"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")


def next_logits(params: Any, tokens: Array, length: Array, *, decoder: Decoder):
    """Logits `[1, V]` after one prompt."""
    prefix = prefill_prefix(params, tokens[None], length[None], decoder=decoder)
    return output_logits(decoder, params, prefix.hidden)


def joined_score(
    params: Any, prompt: Array, candidate: Array, *, decoder: Decoder
) -> Array:
    """One candidate by a pass over everything; logits where they are needed alone."""
    tokens = jnp.concatenate([prompt, candidate])[None]
    positions = jnp.arange(tokens.shape[1])[None]
    hidden, _ = decoder.apply(params, tokens, positions, method="hidden")
    logits = output_logits(decoder, params, hidden[0, len(prompt) - 1 : -1])
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), candidate[:, None], 1)
    return jnp.sum(chosen)


def all_ways(
    config: Scoring, model: DecoderConfig = SMOLLM2
) -> dict[str, Callable[[], Any]]:
    """What is measured, by its name in the table."""
    params = jax.jit(Decoder(model).init)(
        jax.random.key(0), jnp.zeros((1, 1), jnp.int32)
    )
    dtype = jnp.bfloat16 if config.bfloat16 else jnp.float32
    model, params = cast_products(model, params, dtype)
    decoder = Decoder(model)
    keys = jax.random.split(jax.random.key(1))
    prompt = jax.random.randint(keys[0], (config.prompt,), 0, model.vocab_size)
    shape = (config.candidates, config.length)
    candidates = jax.random.randint(keys[1], shape, 0, model.vocab_size)
    length = jnp.asarray(config.prompt, jnp.int32)
    sizes = jnp.full(config.candidates, config.length, jnp.int32)
    prefill = jax.jit(partial(next_logits, decoder=decoder))
    together = jax.jit(partial(score_candidates, decoder=decoder))
    single = jax.jit(partial(joined_score, decoder=decoder))
    return {
        PREFILL: lambda: prefill(params, prompt, length),
        "all at once": lambda: together(params, prompt, length, candidates, sizes),
        "one by one": lambda: [single(params, prompt, row) for row in candidates],
    }


def measure(ways: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Way to seconds, one number a round; compiling is not counted."""
    for call in ways.values():
        jax.block_until_ready(call())
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, call in ways.items():
            start = time.perf_counter()
            jax.block_until_ready(call())
            seconds[name].append(time.perf_counter() - start)
    return seconds


def main(config: Scoring) -> None:
    """Measures and prints a table."""
    seconds = measure(all_ways(config), config.rounds)
    table = Table("way", "ms", "fastest", "times the prefill", "of the fastest")
    for name, values in seconds.items():
        ratio = median(x / y for x, y in zip(values, seconds[PREFILL], strict=True))
        table.add_row(
            name,
            f"{1e3 * median(values):.0f}",
            f"{1e3 * min(values):.0f}",
            f"{ratio:.2f}",
            f"{min(values) / min(seconds[PREFILL]):.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Scoring))
