"""Test questions, and how every policy is asked them.

A test question is the form of one and the key of a reset, which draws whom it names and
all that can be looked up: the same for all samples, all budgets and all policies.
Budgets and policies share the keys of episodes as well. Where the budget is hidden, an
episode with a small one is therefore the beginning of the same episode with a large
one, up to the answer that the cap forces.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from experiments.pass_surface.config import CATEGORIES, TRAINED_LIMIT, Sizes
from experiments.pass_surface.places import LOOKUP, Place
from jerp.envs.base import TimeStep
from jerp.envs.lookup_tasks import LookupKind, LookupParams, lookup_tasks
from jerp.envs.shared_words import SharedWords
from jerp.models.policy import SequencePolicy
from jerp.rollout.scan import rollout
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key

__all__ = [
    "BUDGETS",
    "ELSEWHERE",
    "NO_ACTION",
    "Asked",
    "Questions",
    "episode_key",
    "episodes",
    "evaluate",
    "play",
    "questions",
]

BUDGETS = ("announced", "hidden")
"""Whether the look-ups that are left are shown."""

FEW = 32
"""Samples below which a program a T takes longer to compile than it saves."""

ASK, PLAY, ELSEWHERE = range(3)
"""Streams of random keys; the last is of the other worlds, see `forgetting`."""

NO_ACTION = -1
"""After the end of an episode."""


class Questions(struct.PyTreeNode):
    """Test questions, leaves `[Q, ...]`.

    Attributes:
      tasks: forms.
      starts: uint32, data of the keys of the resets, each of which is used by many
        episodes.
    """

    tasks: LookupParams
    starts: Array

    @property
    def number(self) -> int:
        """Q."""
        return self.starts.shape[0]

    def under(self, limit: int, *, announced: bool) -> Questions:
        """The same questions with a budget of look-ups."""
        like = self.tasks.limit
        tasks = self.tasks.replace(
            limit=jnp.full_like(like, limit),
            announced=jnp.full(like.shape, announced),
        )
        return Questions(tasks, self.starts)


def questions(key: Key, sizes: Sizes, category: str) -> Questions:
    """The test questions of a seed and kind; the one place where they come from.

    Forms are of the split "seen", which no training has; there are fewer than 100 of
    the kind C, so that a form comes more than once, each time about other names.

    Args:
      key: of the seed's evaluation; not consumed.
      sizes: says how many.
      category: "A", "B" or "C".
    """
    form_key, start_key = jax.random.split(_stream(key, category, ASK))
    kind = list(CATEGORIES).index(category)
    number, kinds = sizes.questions, len(LookupKind)
    drawn = lookup_tasks(form_key, number * kinds, size=LOOKUP.size, split="seen")
    tasks = jax.tree.map(lambda x: x[kind::kinds], drawn)
    return Questions(tasks, jax.random.key_data(jax.random.split(start_key, number)))


def episode_key(key: Key, category: str) -> Key:
    """Of the episodes of a seed's questions of a kind, whatever the budget and policy.

    Args:
      key: of the seed's evaluation; not consumed.
      category: "A", "B" or "C".
    """
    return _stream(key, category, PLAY)


def _stream(key: Key, category: str, purpose: int) -> Key:
    kind = list(CATEGORIES).index(category)
    return jax.random.fold_in(jax.random.fold_in(key, purpose), kind)


@dataclass(frozen=True)
class Asked:
    """The world of questions: its tasks are `Questions`, whose resets are their own.

    Attributes:
      env: what is played.
    """

    env: SharedWords

    def reset(self, key: Key, params: Questions) -> tuple[Any, TimeStep]:
        """Starts a question, always alike; the key is not used."""
        del key
        return self.env.reset(jax.random.wrap_key_data(params.starts), params.tasks)

    def step(
        self, key: Key, state: Any, action: Array, params: Questions
    ) -> tuple[Any, TimeStep]:
        """Plays `action`. Consumes `key`."""
        return self.env.step(key, state, action, params.tasks)


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
      `[Q, n]` each: `outcome` int8, `lookups` int8, `tokens` int16, those that the
      policy generated; and `actions` `[Q, n, num_steps]` int16, `NO_ACTION` after the
      end.
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
