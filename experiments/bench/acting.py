"""How long one decision of a controller takes in a plain Python loop.

python -m experiments.bench.acting

A controller of jerp's own layout acts on states from NumPy, one at a time and in a
batch, beside the jitted JAX policy that is called the same way: with NumPy arrays and
an integer seed, its decision brought back to the host. Garbage collection stays on.
Expected on 2 cores: a median below 200 microseconds (the issue's target). Measured on a
busy machine, the ways taking turns: median 35, 99% below 100, and the JAX call takes
twice as long; alone in its loop `act` takes 24. A batch of 5,000 takes 5 a decision.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from jerp.errors import ConfigError
from jerp.harness.actions import ACTIONS, NUM_ACTIONS
from jerp.harness.state import FEATURE_VERSION, FEATURES, NUM_FEATURES
from jerp.models.acting import HarnessController
from jerp.models.controller import Controller, controller_policy, init_policy

__all__ = ["Acting", "measure"]

WARM_UP = 50


@dataclass(frozen=True)
class Acting:
    """Measures decisions.

    Attributes:
      decisions: how many of each way.
      hidden_size: width of the controller.
      seed: of its parameters and of the states.
    """

    decisions: int = 5000
    hidden_size: int = 64
    seed: int = 0

    def __post_init__(self):
        if min(self.decisions, self.hidden_size) < 1:
            raise ConfigError(
                f"decisions, hidden_size: expected at least 1, got {self}"
            )


def measure(config: Acting) -> dict[str, np.ndarray]:
    """Way to seconds a decision, `[decisions]`; what warms up is not counted.

    The ways take turns decision by decision, so that a busy machine slows all alike.
    """
    controller, features, legal = _problem(config)
    jitted = jax.jit(
        lambda params, seed, x, allowed: controller_policy(
            params, jax.random.key(seed), x, allowed
        )
    )
    ways: dict[str, Callable[[int], Any]] = {
        "act": lambda i: controller.act(features[i], legal[i], seed=i),
        "act, from lists": lambda i: controller.act(
            features[i].tolist(), legal[i].tolist(), seed=i
        ),
        "jitted JAX policy": lambda i: jax.device_get(
            jitted(controller.params, np.uint32(i), features[i], legal[i])
        ),
    }
    seconds = {name: np.zeros(config.decisions) for name in ways}
    for i in range(-min(WARM_UP, config.decisions), config.decisions):
        for name, decide in ways.items():
            began = time.perf_counter()
            decide(max(i, 0))
            seconds[name][max(i, 0)] = time.perf_counter() - began
    began = time.perf_counter()
    controller.act_batch(features, legal, seeds=range(config.decisions))
    each = (time.perf_counter() - began) / config.decisions
    return {**seconds, "act_batch": np.full(config.decisions, each)}


def _problem(config: Acting) -> tuple[HarnessController, np.ndarray, np.ndarray]:
    """A controller, and states with at least one legal action."""
    keys = jax.random.split(jax.random.key(config.seed), 3)
    params = init_policy(keys[0], Controller(config.hidden_size), NUM_FEATURES)
    shape = (config.decisions, NUM_FEATURES)
    features = jax.random.uniform(keys[1], shape, minval=-1.0)
    legal = jax.random.bernoulli(keys[2], 0.6, (config.decisions, NUM_ACTIONS))
    controller = HarnessController(
        jax.device_get(params), FEATURES, ACTIONS, FEATURE_VERSION
    )
    return controller, np.asarray(features), np.asarray(legal.at[:, -1].set(True))


def main(config: Acting) -> None:
    """Measures and prints a table in microseconds."""
    seconds = measure(config)
    median = np.median(seconds["act"])
    table = Table("way", "median", "99%", "times act", title="microseconds a decision")
    for name, values in seconds.items():
        middle, tail = np.percentile(values, [50, 99])
        row = (f"{middle * 1e6:.1f}", f"{tail * 1e6:.1f}", f"{middle / median:.2f}")
        table.add_row(name, *row)
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Acting))
