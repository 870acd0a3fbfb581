"""How every policy is asked the test questions, and what is kept of its answers.

Budgets and policies share the keys of episodes, as they share questions. Where the
budget is hidden, an episode with a small one is therefore the beginning of the same
episode with a large one, up to the answer that the cap forces.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from experiments.pass_surface.config import CATEGORIES, TRAINED_LIMIT, Sizes
from experiments.pass_surface.places import LOOKUP, Place
from experiments.pass_surface.questions import (
    Asked,
    Questions,
    episode_key,
    questions,
)
from jerp.models.policy import SequencePolicy
from jerp.rollout.scan import rollout
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = [
    "BUDGETS",
    "NO_ACTION",
    "episodes",
    "evaluate",
    "play",
]

BUDGETS = ("announced", "hidden")
"""Whether the look-ups that are left are shown."""

FEW = 32
"""Samples below which a program a T takes longer to compile than it saves."""

NO_ACTION = -1
"""After the end of an episode."""


def episodes(
    key: Key,
    place: Place,
    params: Any,
    asked: Questions,
    *,
    limit: int,
    announced: bool,
    samples: int,
    block: int,
    num_steps: int | None = None,
    policy: SequencePolicy | None = None,
) -> Iterator[Trajectory]:
    """The episodes of questions in blocks of a few samples of every question.

    Row `b` of a block is question `b % Q`; the blocks are those of `play`, so that who
    needs more than outcomes of them has the same episodes again.

    Args:
      key: of the episodes; not consumed: all that is compared uses it.
      place: of questions.
      params: of the policy; a value head is not needed.
      asked: Q questions.
      limit: T, look-ups that are allowed.
      announced: whether those that are left are shown.
      samples: n; the last block may play more, which are cut off.
      block: the most episodes at once.
      num_steps: budget of steps, T + 1 if None: the least. It changes no episode.
      policy: the place's decoder if None.
    """
    num_steps = limit + 1 if num_steps is None else num_steps
    asked, number = asked.under(limit, announced=announced), asked.number
    together = max(min(block // number, samples), 1)
    for index, first in enumerate(range(0, samples, together)):
        data = _played(
            jax.random.fold_in(key, index),
            asked,
            params,
            env=Asked(place.env),
            policy=policy or place.policy(num_steps=num_steps),
            num_steps=num_steps,
            batch_size=together * number,
        )
        wanted = min(together, samples - first) * number
        yield data if wanted == together * number else _first(data, wanted)


def _first(data: Trajectory, number: int) -> Trajectory:
    return jax.tree.map(lambda x: x[:number], data)


@partial(jax.jit, static_argnames=("env", "policy", "num_steps", "batch_size"))
def _played(
    key: Key,
    asked: Questions,
    params: Any,
    *,
    env: Asked,
    policy: SequencePolicy,
    num_steps: int,
    batch_size: int,
) -> Trajectory:
    return rollout(
        *(key, env, asked, policy, params), num_steps=num_steps, batch_size=batch_size
    )


def play(
    key: Key,
    place: Place,
    params: Any,
    asked: Questions,
    *,
    limit: int,
    announced: bool,
    samples: int,
    block: int,
    num_steps: int | None = None,
) -> dict[str, np.ndarray]:
    """What came of the episodes of questions; the one way in which they are played.

    Args:
      key: of the episodes; not consumed.
      place: of questions.
      params: of the policy.
      asked: Q questions.
      limit: T, look-ups that are allowed.
      announced: whether those that are left are shown.
      samples: n.
      block: the most episodes at once.
      num_steps: budget of steps, T + 1 if None.

    Returns:
      `[Q, n]` each: `outcome` int8; `supported` bool, whether all that the question
      needs had been found before it was answered, see `Asked`; `lookups` int8;
      `tokens` int16, those that the policy generated; and `actions`
      `[Q, n, num_steps]` int16, `NO_ACTION` after the end.
    """
    settings: Any = {"limit": limit, "announced": announced, "samples": samples}
    settings["num_steps"] = num_steps
    found = [
        jax.device_get(_numbers(data))
        for data in episodes(key, place, params, asked, block=block, **settings)
    ]
    return {
        name: np.concatenate([_by_question(x[name], asked.number) for x in found], 1)
        for name in found[0]
    }


def _by_question(rows: np.ndarray, number: int) -> np.ndarray:
    """`[M * Q, ...]` to `[Q, M, ...]`."""
    return rows.reshape(-1, number, *rows.shape[1:]).swapaxes(0, 1)


@jax.jit
def _numbers(data: Trajectory) -> dict[str, Array]:
    searches = data.mask & (data.action < LOOKUP.size.num_entities)
    actions = jnp.where(data.mask, data.action, NO_ACTION)
    written: Any = data.token_mask
    return {
        "outcome": data.outcome.astype(jnp.int8),
        # What has been found is never lost, so that the last step has the largest.
        "supported": jnp.max(data.anchor, axis=1) > 0,
        "lookups": jnp.sum(searches, axis=1).astype(jnp.int8),
        "tokens": jnp.sum(written & data.mask[..., None], (1, 2)).astype(jnp.int16),
        "actions": actions.astype(jnp.int16),
    }


def evaluate(
    key: Key, place: Place, params: Any, sizes: Sizes
) -> dict[str, dict[str, dict[str, dict[str, np.ndarray]]]]:
    """All test questions under all budgets: by kind, "announced" or "hidden", and T.

    Actions are kept where the budget is hidden and T the largest.

    Args:
      key: of the seed's evaluation, the same for all policies; not consumed.
      place: of questions.
      params: of the policy.
      sizes: numbers of questions and samples.
    """
    most = TRAINED_LIMIT + 1
    return {
        category: {
            budget: {
                str(limit): _kept(
                    play(
                        *(episode_key(key, category), place, params),
                        questions(key, sizes, category),
                        limit=limit,
                        announced=budget == "announced",
                        samples=sizes.samples,
                        block=sizes.block,
                        num_steps=most if sizes.samples < FEW else None,
                    ),
                    actions=budget == "hidden" and limit == TRAINED_LIMIT,
                )
                for limit in horizons
            }
            for budget in BUDGETS
        }
        for category, horizons in CATEGORIES.items()
    }


def _kept(numbers: dict[str, np.ndarray], *, actions: bool) -> dict[str, np.ndarray]:
    return {name: x for name, x in numbers.items() if actions or name != "actions"}
