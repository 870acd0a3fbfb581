"""Presets of the household and their tasks, drawn once for all tests of it."""

from functools import cache

import jax
import numpy as np
import pytest

from jerp.envs.house import house_large, house_small
from jerp.envs.house_tasks import house_tasks

SMALL, LARGE = house_small(), house_large()
SPLITS = ("train", "seen", "unseen")
WORLDS = pytest.mark.parametrize(
    "env",
    [SMALL, pytest.param(LARGE, marks=pytest.mark.slow)],
    ids=["small", "large"],
)


@cache
def tasks(env, split):
    """600 tasks on the host."""
    key = jax.random.key(SPLITS.index(split))
    drawn_tasks = house_tasks(key, 600, size=env.size, split=split)
    return jax.tree.map(np.asarray, drawn_tasks)


def some_tasks(number):
    """As many of a small household, of which it is not the point that they were drawn.

    Each number that is drawn is a program of its own.
    """
    return jax.tree.map(lambda x: x[:number], tasks(SMALL, "train"))


def all_tasks(env, number):
    """The first of every split."""
    parts = (tasks(env, split) for split in SPLITS)
    return jax.tree.map(lambda *x: np.concatenate([y[:number] for y in x]), *parts)
