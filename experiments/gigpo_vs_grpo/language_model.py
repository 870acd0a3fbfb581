"""A language model in the house: adapters cloned from text, then trained by episodes.

    <run>/base/     adapters.safetensors, adapter/ (PEFT), evaluation.safetensors
    <run>/trained/  metrics.jsonl, checkpoints/, adapter/, evaluation.safetensors

    python -m experiments.gigpo_vs_grpo.language_model RUN-FOLDER CONFIG-AS-JSON

The model's own matrices stay as they are. It reads what the house says in words and
writes an admissible action; the ids it read and wrote are the ids it learns from. Each
part that is there is not done again, and training resumes behind its last checkpoint.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from experiments.gigpo_vs_grpo.config import ReaderSizes, arm_algorithm
from experiments.jobs.adapters import (
    ADAPTERS,
    clone_adapters,
    export_adapters,
    longest_episode,
    read_adapters,
)
from experiments.jobs.config import MODELS
from experiments.jobs.parts import Made, make_parts
from experiments.jobs.program import run_program
from jerp.bridge.world_episodes import Replay, play_worlds
from jerp.bridge.world_text import TextView
from jerp.envs.house import House, house_small
from jerp.envs.house_tasks import house_tasks
from jerp.envs.house_text import HouseText
from jerp.models.lora import LoraConfig, init_adapters
from jerp.models.token_policy import TokenPolicy
from jerp.rollout.demonstrations import demonstrations
from jerp.runs.policy.groups import Play, PolicyTask
from jerp.runs.policy.training import train_policy
from jerp.storage.documents import write_json
from jerp.storage.tensors import save_tree
from jerp.storage.weights import Weights, load_weights
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["PARTS", "run_reader"]

PARTS = ("base", "trained")
TASKS, HELD_OUT, DEMONSTRATE, INITIALISE, CLONE, TRAIN, EVALUATE = range(7)
"""Streams of random keys."""

CLONE_ROWS = 4
"""Demonstrations an update; as many episodes at once in training."""


@dataclass(frozen=True)
class Reader:
    """All that plays and learns, and does not change.

    Attributes:
      env: the house.
      view: it in words.
      policy: the model, with adapters.
      decoder: its own matrices.
    """

    env: House
    view: TextView
    policy: TokenPolicy
    decoder: Any

    @property
    def play(self) -> Play:
        """Plays episodes in words."""
        return partial(play_worlds, view=self.view)


def run_reader(folder: Path, policy: str, sizes: ReaderSizes, seed: int) -> None:
    """Does what is not done yet of a run."""
    weights = load_weights(MODELS.get(policy, policy))
    reader, key = _reader(weights, sizes), jax.random.key(seed)

    def part(make: Callable[..., Any], where: Path) -> Made:
        adapters = make(where, key, reader, sizes)
        export_adapters(where, reader.policy, weights.name, adapters)
        return _evaluate(key, reader, sizes, adapters), {}

    parts = {"base": partial(part, _clone), "trained": partial(part, _train)}
    make_parts(folder, parts, weights.fingerprint)


def _reader(weights: Weights, sizes: ReaderSizes) -> Reader:
    env = house_small()
    tokens = (sizes.num_observation_tokens, sizes.num_action_tokens)
    view = TextView(
        HouseText(env.size),
        weights.tokenizer,
        num_actions=env.num_actions,
        num_observation_tokens=tokens[0],
        num_action_tokens=tokens[1],
    )
    policy = TokenPolicy(
        replace(weights.config, remat=True),
        *tokens,
        sizes.num_steps,
        lora=LoraConfig(sizes.rank, 2.0 * sizes.rank, targets=r"layer_\d+/.*"),
        capacity=sizes.num_tokens,
    )
    return Reader(env, view, policy, weights.params["params"])  # pyright: ignore


def _tasks(key: Key, reader: Reader, number: int, stream: int, split: str) -> Any:
    drawn = jax.random.fold_in(key, stream)
    return house_tasks(drawn, number, size=reader.env.size, split=split)  # pyright: ignore


def _clone(where: Path, key: Key, reader: Reader, sizes: ReaderSizes) -> Any:
    """Adapters that do as a noisy oracle did, having read what there was to read."""
    if (where / ADAPTERS).exists():
        return read_adapters(where)
    data = _demonstrations(key, reader, sizes)
    # Demonstrations are short: what no token is in need not be computed.
    policy = replace(reader.policy, capacity=longest_episode(data))
    fresh = init_adapters(
        jax.random.fold_in(key, INITIALISE),
        policy.config,
        policy.lora,  # pyright: ignore
    )
    adapters, loss = clone_adapters(
        *(jax.random.fold_in(key, CLONE), policy, reader.decoder, fresh, data),
        epochs=sizes.epochs,
        batch_size=CLONE_ROWS,
    )
    save_tree(where / ADAPTERS, adapters, {"loss": loss})
    return adapters


def _demonstrations(key: Key, reader: Reader, sizes: ReaderSizes) -> Trajectory:
    """What the oracle did, played again for the sake of the words."""
    settings = {"num_steps": sizes.num_steps, "batch_size": sizes.demonstrations}
    tasks = _tasks(key, reader, sizes.train_tasks, TASKS, "train")
    show = partial(demonstrations, env=reader.env, noise=sizes.noise, **settings)
    stream = jax.random.fold_in(key, DEMONSTRATE)
    done = jax.jit(show)(stream, env_params=tasks)
    told = reader.play(stream, reader.env, tasks, Replay(), done.action, **settings)
    return reader.policy.with_tokens(told)


def _train(where: Path, key: Key, reader: Reader, sizes: ReaderSizes) -> Any:
    config, hyper = arm_algorithm(sizes.arm, sizes.num_groups, learning_rate=2e-4)
    rows = sizes.num_groups * sizes.group_size
    config = replace(config, microbatches=max(rows // CLONE_ROWS, 1))
    state, warnings = train_policy(
        where,
        jax.random.fold_in(key, TRAIN),
        PolicyTask(
            reader.env, reader.policy, config, sizes.group_size, sizes.num_steps
        ),
        hyper,
        _tasks(key, reader, sizes.train_tasks, TASKS, "train"),
        {"adapters": read_adapters(where.parent / "base")},
        iterations=sizes.iterations,
        chunk=1,
        play=reader.play,
        frozen={"decoder": reader.decoder},
    )
    write_json(where / "warnings.json", {"warnings": warnings})
    return state.params["adapters"]  # pyright: ignore


def _evaluate(
    key: Key, reader: Reader, sizes: ReaderSizes, adapters: Any
) -> dict[str, Any]:
    """Plays held-out tasks, the same ones with the same keys before and after."""
    data = reader.play(
        jax.random.fold_in(key, EVALUATE),
        reader.env,
        _tasks(key, reader, sizes.held_out, HELD_OUT, "seen"),
        reader.policy,
        {"decoder": reader.decoder, "adapters": adapters},
        num_steps=sizes.num_steps,
        batch_size=sizes.held_out * sizes.samples,
    )
    # Episode b plays task b % N.
    shape = (sizes.samples, sizes.held_out)
    return {
        "outcome": np.asarray(data.outcome).reshape(shape).T,
        "steps": np.sum(data.mask, axis=1, dtype=np.int32).reshape(shape).T,
    }


def main(words: list[str]) -> int:
    """See the module's first lines."""
    folder, config = words
    settings = json.loads(config)
    sizes = ReaderSizes(**settings["sizes"])
    run_reader(Path(folder), settings["policy"], sizes, settings["seed"])
    return 0


if __name__ == "__main__":
    run_program(main)
