"""How many steps a second the fitted simulator takes, beside the hand-made one.

python -m experiments.bench.simulator [--log FOLDER]

4,096 episodes side by side in one jitted scan; one that ended starts anew, so that
every step counted is one of a live episode. The log is 4,800 random episodes of the
hand-made simulator, or a trajectory folder. Policies are a uniform one, which costs
least, and a controller of 64 hidden units. Rounds go through the ways in turn, so that
a busy machine slows all alike. Expected on 2 cores: at least 1e6 steps/s with the
uniform policy; measured 9.8e6, and 3.5e6 with the controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from jax import lax
from rich.console import Console
from rich.table import Table

from jerp.envs.base import Environment
from jerp.envs.fitted_sim import FittedSim, FittedTables
from jerp.envs.fitting import fit_simulator
from jerp.envs.harness_sim import HarnessSim, simulated_tasks
from jerp.errors import ConfigError
from jerp.harness.state import NUM_FEATURES
from jerp.models.controller import Controller, controller_policy, init_policy
from jerp.rollout.scan import rollout
from jerp.storage.trajectories import TrajectoryFolder
from jerp.typing import Array, Key, PolicyFn

__all__ = ["Simulator", "SimulatorSpeed", "measure"]


@dataclass(frozen=True)
class Simulator:
    """Measures simulators.

    Attributes:
      batch: episodes side by side.
      steps: of each in one call.
      episodes: of the log that is made.
      rounds: measurements of each way; the table shows medians.
      log: a trajectory folder, such as RUN/DOMAIN/buffer, to fit in place of that log;
        all its tasks are taken for one difficulty.
    """

    batch: int = 4096
    steps: int = 200
    episodes: int = 4800
    rounds: int = 5
    log: Path | None = None

    def __post_init__(self):
        for name in ("batch", "steps", "episodes", "rounds"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")


@dataclass(frozen=True)
class SimulatorSpeed:
    """What was measured.

    Attributes:
      rate: way to steps a second, a round each.
      length: way to the mean length of the episodes that ended.
      fit_seconds: of fitting the log.
      states: of the fitted simulator.
    """

    rate: dict[str, list[float]]
    length: dict[str, float]
    fit_seconds: float
    states: int


def cheap_uniform(
    params: Any, key: Key, observation: Array, legal: Array
) -> tuple[Array, Array]:
    """Every legal action with the same probability, from one uniform number."""
    del params, observation
    rank = jnp.cumsum(legal)
    place = jnp.floor(jax.random.uniform(key) * rank[-1]).astype(jnp.int32)
    action = jnp.sum(rank <= jnp.minimum(place, rank[-1] - 1))
    return action.astype(jnp.int32), -jnp.log(rank[-1].astype(jnp.float32))


def live_steps(
    env: Environment,
    tasks: Any,
    policy_fn: PolicyFn,
    params: Any,
    key: Key,
    *,
    config: Simulator,
) -> tuple[Array, Array]:
    """Plays `steps` of `batch` episodes; their number that ended and their scores' sum.

    Each ended episode is followed by a fresh one of the same task.
    """
    start = jax.vmap(env.reset)
    fresh_key, loop_key = jax.random.split(key)

    def body(carry: Any, t: Array):
        state, now = carry
        act_keys, step_keys, reset_keys = (
            jax.random.split(k, config.batch)
            for k in jax.random.split(jax.random.fold_in(loop_key, t), 3)
        )
        action, _ = jax.vmap(policy_fn, (None, 0, 0, 0))(
            params, act_keys, now.observation, now.legal
        )
        after = jax.vmap(env.step)(step_keys, state, action, tasks)
        ended = after[1].terminated | after[1].truncated
        score = jnp.where(ended, after[1].score, 0.0)

        def select(new: Array, old: Array) -> Array:
            return jnp.where(ended.reshape(-1, *(1,) * (old.ndim - 1)), new, old)

        carry = jax.tree.map(select, start(reset_keys, tasks), after)
        return carry, (ended.sum(), score.sum())

    carry = start(jax.random.split(fresh_key, config.batch), tasks)
    _, (ended, score) = lax.scan(body, carry, jnp.arange(config.steps))
    return ended.sum(), score.sum()


def measure(config: Simulator) -> SimulatorSpeed:
    """Times every way on the same number of steps; compiling is not counted."""
    tables, fit_seconds = fitted(config)
    task = jnp.arange(config.batch) % 3
    hand_made = jax.tree.map(lambda x: x[task], simulated_tasks(3))
    level = task % (len(tables.first_start) - 1)
    controller = init_policy(jax.random.key(1), Controller(64), NUM_FEATURES)
    policies = {
        "uniform": (cheap_uniform, ()),
        "64-unit controller": (controller_policy, controller),
    }
    ways: dict[str, Callable[[Key], Any]] = {}
    for name, (policy_fn, params) in policies.items():
        for kind, env, tasks in (
            ("fitted", FittedSim(tables), level),
            ("hand-made", HarnessSim(), hand_made),
        ):
            play = partial(live_steps, env, tasks, policy_fn, params, config=config)
            ways[f"{kind}, {name}"] = jax.jit(play)
    count = config.batch * config.steps
    keys = iter(jax.random.split(jax.random.key(2), len(ways) * (config.rounds + 1)))
    length = {name: count / float(way(next(keys))[0]) for name, way in ways.items()}
    rate: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(config.rounds):
        for name, way in ways.items():
            begin = time.perf_counter()
            jax.block_until_ready(way(next(keys)))
            rate[name].append(count / (time.perf_counter() - begin))
    return SimulatorSpeed(rate, length, fit_seconds, int(tables.num_states))


def fitted(config: Simulator) -> tuple[FittedTables, float]:
    """The tables of the log, and the seconds that fitting took."""
    if config.log is not None:
        log = TrajectoryFolder.open(config.log).load()
        difficulty = np.zeros(len(log.score), np.int32)
    else:
        tasks = simulated_tasks(3)
        play = partial(rollout, num_steps=10, batch_size=config.episodes)
        log = play(jax.random.key(0), HarnessSim(), tasks, cheap_uniform, ())
        difficulty = np.asarray(log.task_id)
    begin = time.perf_counter()
    tables = jax.block_until_ready(fit_simulator(log, difficulty))
    return tables, time.perf_counter() - begin


def main(config: Simulator) -> None:
    """Measures and prints a table of medians; ratios are to the hand-made, uniform."""
    found = measure(config)
    base = found.rate["hand-made, uniform"]
    table = Table("way", "steps/s", "fastest", "ratio", "mean length")
    for name, rates in found.rate.items():
        ratio = median(rate / other for rate, other in zip(rates, base, strict=True))
        table.add_row(
            name,
            f"{median(rates):,.0f}",
            f"{max(rates):,.0f}",
            f"{ratio:.2f}",
            f"{found.length[name]:.2f}",
        )
    console = Console()
    console.print(table)
    console.print(f"fitted in {found.fit_seconds:.2f} s, {found.states} states")


if __name__ == "__main__":
    main(tyro.cli(Simulator))
