"""What training on questions made the arms forget: their success in the other worlds.

Every arm plays the same tasks with the same keys, once each. The base is cloned from
demonstrations of all worlds, and what is trained from it sees questions alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np

from experiments.pass_surface.config import Sizes
from experiments.pass_surface.places import Place, place_named
from experiments.pass_surface.questions import ELSEWHERE
from jerp.estimators.intervals import bootstrap_interval, paired_difference
from jerp.estimators.student import student_interval
from jerp.models.token_policy import TokenPolicy
from jerp.rollout.scan import rollout
from jerp.runs.cells import interval, number, plain_interval
from jerp.runs.pass_surface.tables import Table
from jerp.typing import Array, Key, Outcome

__all__ = ["forgetting_numbers", "forgetting_table", "play_elsewhere"]

SPLIT = "seen"
"""Of the tasks: none is in a demonstration."""

BLOCK = 64
"""Episodes at once; those of a house are long."""

TASKS, EPISODES = range(2)
"""Streams of random keys."""


def play_elsewhere(key: Key, params: Any, sizes: Sizes) -> dict[str, np.ndarray]:
    """Success `[N]` bool in each of the other worlds, a task an episode.

    Args:
      key: of the seed's evaluation, the same for all arms; not consumed.
      params: of the policy; a value head is not needed.
      sizes: number of tasks.
    """
    key = jax.random.fold_in(key, ELSEWHERE)
    return {
        name: _successes(
            jax.random.fold_in(key, stream), place_named(name), params, sizes
        )
        for stream, name in enumerate(sizes.other_worlds)
    }


def _successes(key: Key, place: Place, params: Any, sizes: Sizes) -> np.ndarray:
    """Tasks are played in blocks, each with a key of its own: the same for all arms.

    What happens to a task therefore depends on how many tasks there are.
    """
    tasks = place.tasks(jax.random.fold_in(key, TASKS), sizes.other_tasks, SPLIT)
    key = jax.random.fold_in(key, EPISODES)
    size, found = min(BLOCK, sizes.other_tasks), []
    for start in range(0, sizes.other_tasks, size):
        # The last block begins earlier, so that all are of one shape.
        begin = min(start, sizes.other_tasks - size)
        block = jax.tree.map(lambda x, at=begin: x[at : at + size], tasks)
        won = _won(
            jax.random.fold_in(key, begin),
            block,
            params,
            place=place,
            policy=place.policy(),
        )
        found.append(np.asarray(won)[start - begin :])
    return np.concatenate(found)


@partial(jax.jit, static_argnames=("place", "policy"))
def _won(
    key: Key, tasks: Any, params: Any, *, place: Place, policy: TokenPolicy
) -> Array:
    size = jax.tree.leaves(tasks)[0].shape[0]
    steps = {"num_steps": place.num_steps, "batch_size": size}
    return rollout(key, place.env, tasks, policy, params, **steps).outcome == (
        Outcome.SUCCESS
    )


def forgetting_numbers(
    key: Key, seeds: Sequence[Mapping[str, Mapping[str, np.ndarray]]]
) -> dict[str, dict[str, Any]]:
    """By world and arm: success, and the difference from the base.

    Args:
      key: consumed.
      seeds: of each seed, by arm, what `play_elsewhere` returned; "base" among them.

    Returns:
      `success` and, but for the base, `difference`, with 95% intervals over tasks, and
      `by_seed`; and `seeds`, Student's interval of the seeds' mean differences, limits
      NaN of a single seed.
    """
    arms, worlds = [*seeds[0]], [*seeds[0]["base"]]
    keys = iter(jax.random.split(key, 2 * len(arms) * len(worlds)))
    return {
        world: {
            arm: _against_base(
                (next(keys), next(keys)),
                [np.asarray(seed[arm][world], np.float32) for seed in seeds],
                [np.asarray(seed["base"][world], np.float32) for seed in seeds],
                is_base=arm == "base",
            )
            for arm in arms
        }
        for world in worlds
    }


def _against_base(
    keys: tuple[Key, Key],
    own: Sequence[np.ndarray],
    base: Sequence[np.ndarray],
    *,
    is_base: bool,
) -> dict[str, Any]:
    whole = np.concatenate(own)
    numbers: dict[str, Any] = {
        "num_tasks": len(whole),
        "success": {
            **plain_interval(bootstrap_interval(keys[0], whole)),
            "by_seed": [float(each.mean()) for each in own],
        },
    }
    if not is_base:
        by_seed = [float((a - b).mean()) for a, b in zip(own, base, strict=True)]
        found = paired_difference(keys[1], whole, np.concatenate(base))
        numbers["difference"] = {**plain_interval(found), "by_seed": by_seed}
        numbers["seeds"] = plain_interval(
            student_interval(np.asarray(by_seed, np.float32))
        )
    return numbers


def forgetting_table(
    forgetting: Mapping[str, Mapping[str, Mapping[str, Any]]],
    labels: Mapping[str, str],
) -> Table:
    """A row a world and arm, from the results document."""
    rows = [
        _row(world, labels[arm], numbers)
        for world, arms in forgetting.items()
        for arm, numbers in arms.items()
    ]
    return Table(
        "Forgetting: success in worlds that no arm was trained in",
        ("world", "arm", "success", "- base", "by seed", "between seeds"),
        rows,
    )


def _row(world: str, label: str, numbers: Mapping[str, Any]) -> tuple[str, ...]:
    success = interval(numbers["success"], digits=2)
    if "difference" not in numbers:
        return world, label, success, "", "", ""
    difference = numbers["difference"]
    by_seed = " ".join(number(x, 2, sign=True) for x in difference["by_seed"])
    between = numbers["seeds"]
    shown = "-" if between["low"] is None else interval(between, digits=2, sign=True)
    return (
        *(world, label, success, interval(difference, digits=2, sign=True)),
        *(by_seed, shown),
    )
