"""What a training step of low-rank adapters costs beside one of all weights.

python -m experiments.bench.lora

Random weights of SmolLM2-135M's sizes: speed does not depend on the values, and nothing
has to be fetched. A step is loss, gradient and AdamW's update over 2 sequences of 128
tokens. Adapters are of all projections of attention. Rounds go through the ways in
turn, so that a busy machine slows all alike; the table shows medians of the rounds'
ratios, and the fastest round, because other programs can only add time. Memory is what
the compiled program holds: arguments, results and temporaries.
Arithmetic alone makes a gradient of adapters 0.69 of that of all weights: the backward
pass needs the products with activations' gradients, and not those with the weights'.
Expected on 2 cores: a step of adapters takes 0.57 to 0.69 times one of all weights, the
less the busier the memory is, where two thirds are asked for; and holds 1.07 GB against
2.30.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import optax
import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench.decode import SMOLLM2, Decode, Way, measure
from jerp.errors import ConfigError
from jerp.models.decoder import Decoder, DecoderConfig
from jerp.models.lora import LoraConfig, init_adapters, with_adapters
from jerp.typing import Array

__all__ = ["FULL", "LORA", "Lora", "all_ways", "held"]

FULL, LORA = "all weights", "adapters"


@dataclass(frozen=True)
class Lora:
    """Measures training steps.

    Attributes:
      rounds: measurements of each way.
      rows: sequences of a step.
      length: tokens of each.
      rank: of the adapters.
    """

    rounds: int = 10
    rows: int = 2
    length: int = 128
    rank: int = 16

    def __post_init__(self):
        for name in ("rounds", "rows", "rank"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")
        if self.length < 2:
            raise ConfigError(f"length: expected >= 2, got {self.length}")


def next_token_loss(decoder: Decoder, variables: Any, tokens: Array) -> Array:
    """Mean of -log p(token | those before), a scalar."""
    logits: Any = decoder.apply(variables, tokens[:, :-1])
    log_probs = jax.nn.log_softmax(logits)
    return -jnp.take_along_axis(log_probs, tokens[:, 1:, None], axis=-1).mean()


def training_step(
    loss: Callable[[Any, Any], Array], optimizer: optax.GradientTransformation
) -> Any:
    """`(trained, state, frozen) -> (trained, state, loss)`, compiled."""

    def step(trained: Any, state: Any, frozen: Any):
        value, gradient = jax.value_and_grad(loss)(trained, frozen)
        change, state = optimizer.update(gradient, state, trained)
        return optax.apply_updates(trained, change), state, value

    return jax.jit(step, donate_argnums=(0, 1))


def all_ways(
    config: Lora, model: DecoderConfig = SMOLLM2
) -> dict[str, tuple[Any, tuple[Any, Any, Any]]]:
    """Step and first arguments of each way, by its name in the table."""
    decoder, lora = Decoder(model), LoraConfig(config.rank, float(2 * config.rank))
    shape = (config.rows, config.length)
    tokens = jnp.arange(shape[0] * shape[1], dtype=jnp.int32).reshape(shape)
    tokens = tokens * 37 % model.vocab_size
    optimizer = optax.adamw(1e-4)

    def params():
        return jax.jit(decoder.init)(jax.random.key(0), tokens[:1, :1])

    def full_loss(trained: Any, _: Any) -> Array:
        return next_token_loss(decoder, trained, tokens)

    def lora_loss(adapters: Any, frozen: Any) -> Array:
        variables = with_adapters(frozen, adapters, lora)
        return next_token_loss(decoder, variables, tokens)

    everything, adapters = params(), init_adapters(jax.random.key(1), model, lora)
    return {
        FULL: (
            training_step(full_loss, optimizer),
            (everything, optimizer.init(everything), None),
        ),
        LORA: (
            training_step(lora_loss, optimizer),
            (adapters, optimizer.init(adapters), params()),
        ),
    }


def held(step: Any, arguments: tuple[Any, Any, Any]) -> int:
    """Bytes that one call of a compiled step holds at most."""
    memory = step.lower(*arguments).compile().memory_analysis()
    sizes = ("argument_size", "output_size", "temp_size")
    total = sum(getattr(memory, f"{name}_in_bytes") for name in sizes)
    return total - memory.alias_size_in_bytes


def training_way(
    step: Any, arguments: tuple[Any, Any, Any], tokens: int
) -> Callable[[], Way]:
    """A `Way` whose state is what is trained, its optimizer's state, and the loss."""
    frozen = arguments[2]

    def call(state: Any) -> Any:
        return step(state[0], state[1], frozen)

    return lambda: Way(call, (*arguments[:2], None), tokens, [])


def main(config: Lora) -> None:
    """Measures and prints a table."""
    setups = all_ways(config)
    sizes = {name: held(*setup) for name, setup in setups.items()}
    count = config.rows * config.length
    ways = measure(
        Decode(rounds=config.rounds),
        {name: training_way(*setup, count) for name, setup in setups.items()},
    )
    table = Table("trained", "ms a step", "times all weights", "GB held")
    for name, way in ways.items():
        ratios = [a / b for a, b in zip(way.seconds, ways[FULL].seconds, strict=True)]
        table.add_row(
            name,
            f"{1e3 * min(way.seconds):.0f}",
            f"{median(ratios):.2f}",
            f"{sizes[name] / 1e9:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Lora))
