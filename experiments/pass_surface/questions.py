"""Test questions, the same ones for all samples, all budgets and all policies.

A test question is the form of one and the key of a reset, which draws whom it names and
all that can be looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from experiments.pass_surface.config import CATEGORIES, Sizes
from experiments.pass_surface.places import place_named
from jerp.envs.base import TimeStep
from jerp.envs.lookup_tasks import LookupKind, LookupParams
from jerp.envs.shared_words import SharedWords
from jerp.typing import Array, Key

__all__ = ["ELSEWHERE", "Asked", "Questions", "episode_key", "questions"]

ASK, PLAY, ELSEWHERE = range(3)
"""Streams of random keys; the last is of the other worlds, see `forgetting`."""

NEEDED = 2
"""Paragraphs that help: the first ones."""


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
    drawn = place_named("lookup").tasks(form_key, number * kinds, "seen")
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

    Its anchor is 1 once all has been found that the question needs: nothing for a
    direct one, else both paragraphs that help.

    Attributes:
      env: what is played.
    """

    env: SharedWords

    def reset(self, key: Key, params: Questions) -> tuple[Any, TimeStep]:
        """Starts a question, always alike; the key is not used."""
        del key
        start = jax.random.wrap_key_data(params.starts)
        return _noted(params, *self.env.reset(start, params.tasks))

    def step(
        self, key: Key, state: Any, action: Array, params: Questions
    ) -> tuple[Any, TimeStep]:
        """Plays `action`. Consumes `key`."""
        return _noted(params, *self.env.step(key, state, action, params.tasks))


def _noted(params: Questions, state: Any, now: TimeStep) -> tuple[Any, TimeStep]:
    direct = params.tasks.kind == LookupKind.DIRECT
    known = direct | jnp.all(state.found[:NEEDED])
    return state, now.replace(anchor=known.astype(jnp.int32))
