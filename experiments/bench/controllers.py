"""How fast a grid of controllers trains, beside training them one after the other.

python -m experiments.bench.controllers

16 seeds x 4 temperatures of the paper's setting on 1,600 trajectories x 8 steps, in one
call, against a plain loop that calls a jitted update for every minibatch of every
controller, and against the same loop in torch where it is installed (the [parity]
extra). Rounds go through the ways in turn, so that a busy machine slows all alike.
Expected on 2 idle cores: at most 0.088 s a controller in the grid, a tenth of the
0.88 s that the released torch code takes for one. Beside that code, on a busy machine
and in processor time: 0.050-0.054 s against 0.82-1.08 s, 15 to 22 times less.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import tyro
from rich.console import Console
from rich.table import Table

from jerp.errors import ConfigError
from jerp.harness.actions import NUM_ACTIONS
from jerp.harness.state import NUM_FEATURES
from jerp.training.awr import AwrConfig, hyper_grid, make_awr
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["Controllers", "measure"]

TEMPERATURES = (0.1, 0.2, 0.5, 1.0)
PAPER = AwrConfig()
LEARNING_RATE, ENTROPY_WEIGHT = 1e-3, 0.01


@dataclass(frozen=True)
class Controllers:
    """Measures training.

    Attributes:
      episodes: trajectories in the buffer.
      steps: steps of each.
      seeds: controllers a temperature in the grid.
      rounds: measurements of each way; the table shows medians.
    """

    episodes: int = 1600
    steps: int = 8
    seeds: int = 16
    rounds: int = 5

    def __post_init__(self):
        for name in ("episodes", "steps", "seeds", "rounds"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")


def buffer(config: Controllers, *, num_tasks: int = 80) -> Trajectory:
    """Random episodes of full length with random masks; a score at the last step."""
    keys = jax.random.split(jax.random.key(0), 4)
    shape = (config.episodes, config.steps)
    action = jax.random.randint(keys[0], shape, 0, NUM_ACTIONS)
    legal = jax.random.bernoulli(keys[1], 0.6, (*shape, NUM_ACTIONS))
    last = jnp.broadcast_to(jnp.arange(config.steps) == config.steps - 1, shape)
    score = jax.random.uniform(keys[2], (config.episodes,))
    index = jnp.arange(config.episodes, dtype=jnp.int32)
    return Trajectory(
        observation=jax.random.normal(keys[3], (*shape, NUM_FEATURES)),
        action=action,
        reward=jnp.where(last, score[:, None], 0.0),
        terminated=last,
        truncated=jnp.zeros(shape, bool),
        mask=jnp.ones(shape, bool),
        anchor=jnp.zeros(shape, jnp.int32),
        usage=jnp.zeros((*shape, len(USAGE_KINDS))),
        final_observation=jnp.zeros((config.episodes, NUM_FEATURES)),
        task_id=index % num_tasks,
        group_id=index % num_tasks,
        seed=index // num_tasks,
        outcome=jnp.full(config.episodes, Outcome.SUCCESS, jnp.int32),
        score=score,
        version=jnp.zeros(config.episodes, jnp.int32),
        legal=legal | (jnp.arange(NUM_ACTIONS) == action[..., None]),
        log_prob=jnp.zeros(shape),
    )


def grid_trainer(config: Controllers, data: Trajectory) -> Callable[[], Any]:
    """All controllers in one compiled call."""
    over_seeds = jax.vmap(make_awr(PAPER), in_axes=(0, None, None))
    train = jax.jit(jax.vmap(over_seeds, in_axes=(None, 0, None)))
    keys = jax.random.split(jax.random.key(1), config.seeds)
    hyper = hyper_grid(temperature=TEMPERATURES)
    return lambda: jax.block_until_ready(train(keys, hyper, data))


def single_trainer(data: Trajectory) -> Callable[[], Any]:
    """One controller in one compiled call."""
    train = jax.jit(make_awr(PAPER))
    hyper = jax.tree.map(lambda x: x[0], hyper_grid(temperature=[0.2]))
    return lambda: jax.block_until_ready(train(jax.random.key(1), hyper, data))


def rows(data: Trajectory) -> tuple[np.ndarray, ...]:
    """Features, actions, masks and weights of all steps, as the plain loops want them.

    The loops are given their weights: computing these is not what they are here for.
    """
    steps = [np.asarray(x) for x in (data.observation, data.action, data.legal)]
    flat = [x.reshape(-1, *x.shape[2:]) for x in steps]
    return (*flat, np.ones(data.action.size, np.float32))


def loop_trainer(data: Trajectory) -> Callable[[], Any]:
    """One controller; Python calls a jitted update for every minibatch."""
    optimizer = optax.adam(LEARNING_RATE)

    def loss(params, feature, action, legal, weight):
        w1, b1, w2, b2 = params
        logits = jax.nn.relu(feature @ w1 + b1) @ w2 + b2
        log_prob = jax.nn.log_softmax(jnp.where(legal, logits, -1e30))
        taken = jnp.take_along_axis(log_prob, action[:, None], axis=1)[:, 0]
        entropy = -jnp.sum(jnp.exp(log_prob) * log_prob, axis=1)
        return jnp.mean(-weight * taken - ENTROPY_WEIGHT * entropy)

    @jax.jit
    def update(params, opt_state, batch):
        gradient = jax.grad(loss)(params, *batch)
        change, opt_state = optimizer.update(gradient, opt_state)
        return optax.apply_updates(params, change), opt_state

    steps = rows(data)

    def train():
        keys = jax.random.split(jax.random.key(1), 3)
        params = (
            jax.random.normal(keys[0], (NUM_FEATURES, PAPER.hidden_size)) / 4,
            jnp.zeros(PAPER.hidden_size),
            jax.random.normal(keys[1], (PAPER.hidden_size, NUM_ACTIONS)) / 8,
            jnp.zeros(NUM_ACTIONS),
        )
        opt_state = optimizer.init(params)
        for epoch_key in jax.random.split(keys[2], PAPER.epochs):
            order = np.asarray(jax.random.permutation(epoch_key, len(steps[0])))
            for start in range(0, len(order), PAPER.batch_size):
                index = order[start : start + PAPER.batch_size]
                params, opt_state = update(params, opt_state, [x[index] for x in steps])
        return jax.block_until_ready(params)

    return train


def torch_trainer(data: Trajectory) -> Callable[[], Any]:
    """The same loop in torch; needs the [parity] extra."""
    torch = importlib.import_module("torch")

    feature, action, legal, weight = (torch.from_numpy(x.copy()) for x in rows(data))
    action, illegal = action.long()[:, None], ~legal

    def train():
        policy = torch.nn.Sequential(
            torch.nn.Linear(NUM_FEATURES, PAPER.hidden_size),
            torch.nn.ReLU(),
            torch.nn.Linear(PAPER.hidden_size, NUM_ACTIONS),
        )
        optimizer = torch.optim.Adam(policy.parameters(), lr=LEARNING_RATE)
        for _ in range(PAPER.epochs):
            for index in torch.randperm(len(feature)).split(PAPER.batch_size):
                logits = policy(feature[index]).masked_fill(illegal[index], -1e30)
                log_prob = torch.log_softmax(logits, dim=-1)
                taken = log_prob.gather(1, action[index])[:, 0]
                entropy = -(log_prob.exp() * log_prob).sum(-1)
                loss = (-weight[index] * taken - ENTROPY_WEIGHT * entropy).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()

    return train


def measure(config: Controllers) -> dict[str, list[float]]:
    """Way to seconds a controller, one number a round; compiling is not counted."""
    data = buffer(config)
    ways = {
        "grid, one call": grid_trainer(config, data),
        "one controller a call": single_trainer(data),
        "one update a call": loop_trainer(data),
    }
    if importlib.util.find_spec("torch"):
        ways["torch loop"] = torch_trainer(data)
    shares = dict.fromkeys(ways, 1) | {
        "grid, one call": config.seeds * len(TEMPERATURES)
    }
    for train in ways.values():
        train()
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(config.rounds):
        for name, train in ways.items():
            start = time.perf_counter()
            train()
            seconds[name].append((time.perf_counter() - start) / shares[name])
    return seconds


def main(config: Controllers) -> None:
    """Measures and prints a table of medians."""
    seconds = measure(config)
    grid = seconds["grid, one call"]
    table = Table("way", "s a controller", "fastest", "times the grid's")
    for name, values in seconds.items():
        ratio = median(value / base for value, base in zip(values, grid, strict=True))
        table.add_row(
            name, f"{median(values):.4f}", f"{min(values):.4f}", f"{ratio:.1f}"
        )
    Console().print(table)


if __name__ == "__main__":
    main(tyro.cli(Controllers))
