"""Questions of `lookup`: their forms, what they are asked about, and the splits.

A task is the form of a question: its kind, whether the smaller or the larger is asked
for, and the group of each of the two names in it. Who is asked about, and all that can
be looked up, is drawn anew at every reset: a policy cannot learn answers by heart.

Splits share no form. One pair of groups in four is kept for "unseen"; of the others,
one form in five is kept for "seen", and the rest is "train".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from jerp.envs.base import Split
from jerp.errors import ConfigError
from jerp.ops.checks import check_choice, check_count
from jerp.typing import Array, Key

__all__ = [
    "NUM_GROUPS",
    "Direction",
    "LookupKind",
    "LookupParams",
    "LookupSize",
    "lookup_tasks",
]

NUM_GROUPS = 16
"""Entity or value `i` belongs to group `i mod NUM_GROUPS`."""


class LookupKind(IntEnum):
    """What it takes to answer."""

    DIRECT = 0
    COMPARISON = 1
    BRIDGE = 2


class Direction(IntEnum):
    """Which of two values is asked for; of one value, `ONLY`."""

    ONLY = 0
    SMALLER = 1
    LARGER = 2


@dataclass(frozen=True)
class LookupSize:
    """How much there is of what; every field is static.

    Attributes:
      num_entities: E, a multiple of `NUM_GROUPS`, at least two a group.
      num_values: V, likewise.
      num_paragraphs: P of them can be found: two that help, the others distract.
      max_lookups: no task allows more.
    """

    num_entities: int = 96
    num_values: int = 96
    num_paragraphs: int = 10
    max_lookups: int = 5

    def __post_init__(self):
        for name in ("num_entities", "num_values"):
            _check_between(name, getattr(self, name), 2 * NUM_GROUPS, 1024)
            if getattr(self, name) % NUM_GROUPS:
                raise ConfigError(f"{name}: expected a multiple of {NUM_GROUPS}")
        least = min(self.num_entities, self.num_values, 30)
        _check_between("num_paragraphs", self.num_paragraphs, 2, least)
        _check_between("max_lookups", self.max_lookups, 0, 100)


def _check_between(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise ConfigError(f"{name}: expected {low} to {high}, got {value}")


class LookupParams(struct.PyTreeNode):
    """One task; leaves `[]`, and `[2]` for `groups`, with `[N]` before for `N` tasks.

    Attributes:
      kind: int32, a `LookupKind`.
      direction: int32, a `Direction`.
      groups: int32 in [0, NUM_GROUPS), of the first and second name: of values for
        DIRECT, else of entities; a bridge's second is looked up, not stated.
      limit: int32, T, look-ups that are allowed.
      failure: float32, the probability that a search fails.
      announced: bool, whether the look-ups that are left are shown.
    """

    kind: Array
    direction: Array
    groups: Array
    limit: Array
    failure: Array
    announced: Array


def lookup_tasks(
    key: Key,
    num_tasks: int,
    *,
    size: LookupSize | None = None,
    split: Split = "train",
    limit: int | None = None,
    failure: float = 0.25,
    announced: bool = True,
) -> LookupParams:
    """Draws forms of questions; task `i` is of kind `i mod 3`.

    A form comes twice only when all of its kind have come as often. A task with a limit
    of less than two look-ups can be answered by luck alone, unless it needs none.

    Args:
      key: consumed.
      num_tasks: N.
      size: of the world, `LookupSize()` if None.
      split: see the module's first lines.
      limit: T, at most `size.max_lookups`, which it is if None.
      failure: probability in [0, 1) that a search fails, each on its own.
      announced: whether the look-ups that are left are shown.

    Returns:
      `LookupParams` with leaves `[N, ...]`.

    Example:
      >>> lookup_tasks(jax.random.key(0), 6).kind
      Array([0, 1, 2, 0, 1, 2], dtype=int32)
    """
    size = size or LookupSize()
    limit = size.max_lookups if limit is None else limit
    check_choice("split", split, get_args(Split))
    check_count("num_tasks", num_tasks)
    _check_between("limit", limit, 0, size.max_lookups)
    if not 0 <= failure < 1:
        raise ConfigError(f"failure: expected 0 <= failure < 1, got {failure}")
    index = jnp.arange(num_tasks)
    rows = jnp.zeros((num_tasks, 4), jnp.int32)
    keys = jax.random.split(key, len(LookupKind))
    for kind, kind_key in zip(LookupKind, keys, strict=True):
        forms = jnp.asarray(_forms(kind, split))
        order = jax.random.permutation(kind_key, forms.shape[0])
        drawn = forms[order[(index // len(LookupKind)) % forms.shape[0]]]
        rows = jnp.where((index % len(LookupKind) == kind)[:, None], drawn, rows)
    return LookupParams(
        kind=rows[:, 0],
        direction=rows[:, 1],
        groups=rows[:, 2:],
        limit=jnp.full(num_tasks, limit, jnp.int32),
        failure=jnp.full(num_tasks, failure, jnp.float32),
        announced=jnp.full(num_tasks, announced),
    )


def _forms(kind: LookupKind, split: Split) -> np.ndarray:
    """`[forms, 4]` int32: kind, direction and two groups.

    Every group comes at either place in every split, so that all words are learned.
    """
    two = (Direction.SMALLER, Direction.LARGER)
    rows = []
    for direction in (Direction.ONLY,) if kind == LookupKind.BRIDGE else two:
        for one in range(NUM_GROUPS):
            for other in range(NUM_GROUPS):
                kept = (one + other) % 4 == 3
                number = one + 2 * other + 3 * direction + kind
                own = "unseen" if kept else "seen" if number % 5 == 0 else "train"
                if own == split:
                    rows.append((kind, direction, one, other))
    return np.asarray(rows, np.int32)
