"""How many steps a second a policy is trained on, and what playing them costs of it.

python -m experiments.bench.policy

One GRPO iteration of the preset `tiny` over pooled steps of small households: 256
episodes of at most 30 steps, played and learned from in one program. Padded steps
count, because they are computed. Rounds go through the ways in turn, so that a busy
machine slows all alike. Expected on 2 cores: at least 30,000 steps/s.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import jax
import tyro
from rich.console import Console
from rich.table import Table

from jerp.envs.house import house_small
from jerp.envs.house_tasks import house_tasks
from jerp.errors import ConfigError
from jerp.models.step_policy import step_policy
from jerp.runs.policy.groups import PolicyTask, play_groups
from jerp.training.group import make_group_step
from jerp.training.group_settings import algorithm

__all__ = ["PolicyBench", "measure"]


@dataclass(frozen=True)
class PolicyBench:
    """Measures one training iteration.

    Attributes:
      groups: comparison groups.
      size: episodes of a group.
      rounds: measurements of each way; the table shows medians.
    """

    groups: int = 32
    size: int = 8
    rounds: int = 7

    def __post_init__(self):
        for name in ("groups", "size", "rounds"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")


def measure(bench: PolicyBench) -> dict[str, list[float]]:
    """Seconds of playing, of learning, and of both in one program, a round each."""
    env = house_small()
    policy = step_policy(env.field_sizes, env.num_actions, num_steps=env.horizon)
    config, hyper = algorithm("grpo", num_groups=bench.groups)
    task = PolicyTask(env, policy, config, bench.size, env.horizon)
    init, step = make_group_step(config, policy)
    tasks = house_tasks(jax.random.key(0), 2 * bench.groups, size=env.size)
    params = policy.init(jax.random.key(1))
    state = init(jax.random.key(2), hyper, params)
    play = jax.jit(partial(play_groups, task=task, env_params=tasks))
    learn = jax.jit(partial(step, hyper=hyper))

    @jax.jit
    def iterate(key: Any, state: Any) -> Any:
        return step(state, hyper, play_groups(key, task, tasks, state.params))

    data = play(jax.random.key(3), params=params)
    ways: dict[str, Callable[[int], Any]] = {
        "play": lambda i: play(jax.random.key(i), params=params),
        "learn": lambda _: learn(state, data=data),
        "both": lambda i: iterate(jax.random.key(i), state),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(bench.rounds + 1):
        for name, run in ways.items():
            start = time.perf_counter()
            jax.block_until_ready(run(number))
            if number:  # the first call compiles
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main(bench: PolicyBench) -> None:
    """Prints the table."""
    seconds = measure(bench)
    steps = bench.groups * bench.size * house_small().horizon
    table = Table(title=f"{steps:,} steps an iteration", box=None)
    for place, name in enumerate(("way", "ms", "steps/s", "best", "of both")):
        table.add_column(name, justify="right" if place else "left")
    both = median(seconds["both"])
    for name, found in seconds.items():
        middle = median(found)
        table.add_row(
            name,
            f"{1e3 * middle:.0f}",
            f"{steps / middle:,.0f}",
            f"{steps / min(found):,.0f}",
            f"{middle / both:.0%}",
        )
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(PolicyBench))
