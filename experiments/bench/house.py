"""How many steps a second households take, and what looking at them costs.

python -m experiments.bench.house [--preset large]

4,096 homes side by side in one jitted scan, under a policy that draws any admissible
action; a home whose episode ended starts anew, so that every step counted is one of a
live episode. "anchor and mask" is transition, reward, anchor and admissible mask alone;
"fields" and "tokens" also make the observation. Rounds go through the ways in turn, so
that a busy machine slows all alike. Expected on 2 cores: at least 2e6 steps/s, and 2e5
with tokens; measured on a busy machine, the fastest of five: 5.6e6 and 4.7e6, and in
large homes 3.7e6 and 3.4e6.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, Literal

import jax
import jax.numpy as jnp
import tyro
from jax import lax
from rich.console import Console
from rich.table import Table

from jerp.envs.base import TimeStep
from jerp.envs.house import House, house_large, house_small
from jerp.envs.house_tasks import house_tasks
from jerp.errors import ConfigError
from jerp.typing import Array, Key

__all__ = ["HouseBench", "HouseSpeed", "measure"]

WAYS = ("anchor and mask", "fields", "tokens")


@dataclass(frozen=True)
class HouseBench:
    """Measures households.

    Attributes:
      batch: homes side by side.
      steps: of each in one call.
      rounds: measurements of each way; the table shows medians.
      preset: of the homes.
    """

    batch: int = 4096
    steps: int = 200
    rounds: int = 5
    preset: Literal["small", "large"] = "small"

    def __post_init__(self):
        for name in ("batch", "steps", "rounds"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class HouseSpeed:
    """What was measured.

    Attributes:
      rate: way to steps a second, a round each.
      success: share of the episodes that ended which succeeded.
    """

    rate: dict[str, list[float]]
    success: float


def any_admissible(legal: Array, share: Array) -> Array:
    """`[B]` int32: each admissible action of `[B, A]` alike, by one number in [0, 1).

    The rank of an action among the admissible ones is a product with a triangle of
    ones, which is exact in float32 and much faster here than a running sum.
    """
    triangle = jnp.triu(jnp.ones((legal.shape[1], legal.shape[1])))
    rank = legal.astype(jnp.float32) @ triangle
    place = jnp.minimum(jnp.floor(share * rank[:, -1]), rank[:, -1] - 1)
    return jnp.sum(rank <= place[:, None], axis=1).astype(jnp.int32)


def live_steps(
    env: House, looks: bool, config: HouseBench, tasks: Any, key: Key
) -> tuple[Array, Array, Array]:
    """Plays; how many episodes ended, how many in success, and a sum over the rest.

    The sum makes sure that what is measured is computed.
    """
    start = jax.vmap(env.reset, (None, 0))(key, tasks)
    step = jax.vmap(env.step, (None, 0, 0, 0))

    def body(carry: tuple[Any, Array], t: Array):
        state, legal = carry
        share = jax.random.uniform(jax.random.fold_in(key, t), (config.batch,))
        action = any_admissible(legal, share)
        state, now = step(key, state, action, tasks)
        ended = now.terminated | now.truncated

        def anew(new: Array, old: Array) -> Array:
            return jnp.where(ended.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

        carry = jax.tree.map(anew, (start[0], start[1].legal), (state, now.legal))
        return carry, (ended.sum(), now.reward.sum(), _touched(now, looks))

    carry = (start[0], start[1].legal)
    _, counts = lax.scan(body, carry, jnp.arange(config.steps))
    ended, success, touched = jax.tree.map(jnp.sum, counts)
    return ended, success, touched


def _touched(now: TimeStep, looks: bool) -> Array:
    total = now.anchor.sum().astype(jnp.float32)
    return total + (jnp.asarray(now.observation).sum() if looks else 0)


def measure(config: HouseBench) -> HouseSpeed:
    """Times every way on the same number of steps; compiling is not counted."""
    preset = {"small": house_small, "large": house_large}[config.preset]
    tasks = house_tasks(jax.random.key(0), config.batch, size=preset().size)
    ways: dict[str, Callable[..., Any]] = {}
    for name in WAYS:
        env = preset(observation="tokens" if name == "tokens" else "fields")
        looks = name != WAYS[0]
        ways[name] = jax.jit(partial(live_steps, env, looks, config))
    counts = {name: way(tasks, jax.random.key(1)) for name, way in ways.items()}
    ended, success, _ = counts[WAYS[0]]
    rate: dict[str, list[float]] = {name: [] for name in ways}
    for i in range(config.rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            jax.block_until_ready(way(tasks, jax.random.key(2 + i)))
            seconds = time.perf_counter() - begin
            rate[name].append(config.batch * config.steps / seconds)
    return HouseSpeed(rate, float(success) / max(float(ended), 1))


def main(config: HouseBench) -> None:
    """Measures and prints a table of medians; ratios are to the first way."""
    found = measure(config)
    base = found.rate[WAYS[0]]
    table = Table("way", "steps/s", "fastest", "ratio")
    for name, rates in found.rate.items():
        ratio = median(rate / other for rate, other in zip(rates, base, strict=True))
        table.add_row(
            name, f"{median(rates):,.0f}", f"{max(rates):,.0f}", f"{ratio:.2f}"
        )
    console = Console()
    console.print(table)
    console.print(f"{100 * found.success:.1f}% of the random episodes succeed")


if __name__ == "__main__":
    main(tyro.cli(HouseBench))
