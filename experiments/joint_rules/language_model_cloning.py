"""Adapters of a language model, cloned from someone who does as rules say."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.jobs.adapters import (
    ADAPTERS,
    clone_adapters,
    longest_episode,
    read_adapters,
)
from experiments.joint_rules.base import all_rules, left_to_rules
from experiments.joint_rules.language_model_reader import (
    Chosen,
    Reader,
    chosen_tasks,
    told_of,
)
from experiments.joint_rules.oracle import oracle_moves, right_moves
from jerp.bridge.world_episodes import Replay
from jerp.models.lora import init_adapters
from jerp.rollout.rule_demonstrations import rule_demonstrations
from jerp.storage.tensors import save_tree
from jerp.trajectory import Trajectory
from jerp.typing import Key

__all__ = ["cloned_adapters"]


def cloned_adapters(where: Path, key: Key, reader: Reader) -> Any:
    """Adapters that do as a follower of rules did, having read what there was.

    Args:
      where: the part's folder, in which they are kept; found there, they are read.
      key: consumed.
      reader: whose.
    """
    path, sizes = where / ADAPTERS, reader.sizes
    if path.exists():
        return read_adapters(where)
    keys, policy = jax.random.split(key, 3), reader.policy
    assert policy.lora is not None  # reader_task gives one
    fresh = init_adapters(keys[0], policy.config, policy.lora)
    noted: dict[str, Any] = {"loss": [], "success": 0.0}
    adapters = fresh
    if sizes.demonstrations:
        data = _demonstrations(keys[1], reader)
        # Demonstrations are short: what no token is in need not be computed.
        short = replace(policy, capacity=longest_episode(data))
        adapters, loss = clone_adapters(
            *(keys[2], short, reader.decoder, fresh, data),
            epochs=sizes.epochs,
            batch_size=sizes.microbatch,
            learning_rate=sizes.cloning_rate,
        )
        noted = {"loss": loss, "success": _success(data)}
    save_tree(path, adapters, noted)
    return adapters


def _demonstrations(key: Key, reader: Reader) -> Trajectory:
    """What a follower of rules did, played again for the sake of the words.

    Prompts have right rules, wrong ones about the same situations, or none: only who
    reads them knows what comes next.
    """
    place, sizes = reader.place, reader.sizes
    keys = jax.random.split(key, 4)
    shown = chosen_tasks(
        keys[0], reader, sizes.demonstrations // len(sizes.types), "train"
    )
    right = right_moves(oracle_moves(keys[1], place, sizes.oracle_tasks))
    settings = {
        "num_steps": sizes.demonstration_steps,
        "batch_size": len(shown.kinds),
    }
    prompts = _prompts(keys[2], reader, shown)
    show = partial(
        rule_demonstrations,
        env=place.env,
        noise=sizes.noise,
        unknown=left_to_rules(right),
        **settings,
    )
    table = jnp.asarray(all_rules(place.rule_sizes))
    done = jax.jit(show)(
        keys[3], env_params=shown.tasks, rules=table, working_set=prompts
    )
    told_again = reader.play(
        jax.random.clone(keys[3]),
        place.env,
        shown.tasks,
        Replay(),
        done.action,
        working_set=prompts,
        rule_texts=reader.texts,
        **settings,
    )
    return reader.policy.with_tokens(told_again)


def _prompts(key: Key, reader: Reader, shown: Chosen) -> np.ndarray:
    """`[N, R]` ids of rules, in random order within a prompt. Consumes `key`."""
    told_key, kind_key, order_key = jax.random.split(key, 3)
    right, wrong = told_of(told_key, reader, shown)
    sizes, rows = reader.sizes, right.shape[0]
    drawn = np.asarray(jax.random.uniform(kind_key, (rows, 1)))
    misled = np.where(drawn < sizes.right + sizes.wrong, wrong, -1)
    prompts = np.where(drawn < sizes.right, right, misled)
    order = np.asarray(jax.random.uniform(order_key, prompts.shape)).argsort(axis=1)
    return np.take_along_axis(prompts, order, axis=1).astype(np.int32)


def _success(data: Trajectory) -> float:
    return float(np.asarray(data.reward).sum(axis=1).mean())
