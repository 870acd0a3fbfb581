"""Tasks in homes, drawn so that each can be done and that splits share none.

A goal is a type of task, a kind of object and a kind of place. One goal in five is kept
from training; one family of layouts in four is, too. "train" has the other goals in the
other families, "seen" the kept goals in the families of training, "unseen" any goal in
the kept families.
"""

from __future__ import annotations

from functools import partial
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np

from jerp.envs.base import Split
from jerp.envs.house_state import HouseParams
from jerp.envs.house_things import (
    CLEAN,
    COLD,
    HOT,
    LAMP,
    OBJECTS,
    PLACES,
    HouseSize,
    HouseTask,
)
from jerp.ops.checks import check_choice, check_count
from jerp.typing import Array, Key

__all__ = ["house_tasks"]

USUAL_WEIGHT = 4.0
"""How much likelier an object is in a place that is usual for it than in another."""

TREATMENT = {HouseTask.CLEAN: CLEAN, HouseTask.HEAT: HOT, HouseTask.COOL: COLD}


def house_tasks(
    key: Key, num_tasks: int, *, size: HouseSize, split: Split = "train"
) -> HouseParams:
    """Draws tasks: the type first, all six alike, then goal, layout and objects.

    No object of the goal kind lies at the goal at first, and only as many as are wanted
    are in the home.

    Args:
      key: consumed.
      num_tasks: N.
      size: of the homes, such as `house_small().size`.
      split: see the module's first lines.

    Returns:
      `HouseParams` with leaves `[N, ...]`.

    Example:
      >>> from jerp.envs.house import house_small
      >>> tasks = house_tasks(jax.random.key(0), 4, size=house_small().size)
      >>> tasks.kind.shape
      (4, 6)
    """
    check_choice("split", split, get_args(Split))
    check_count("num_tasks", num_tasks)
    goals, (homes, rooms) = _goals(size, split), _layouts(size, split)
    return _drawn(key, goals, homes, rooms, num_tasks=num_tasks, size=size)


@partial(jax.jit, static_argnames=("num_tasks", "size"))
def _drawn(
    key: Key,
    goals: Array,
    homes: Array,
    rooms: Array,
    *,
    num_tasks: int,
    size: HouseSize,
) -> HouseParams:
    goal_key, home_key, object_key = jax.random.split(key, 3)
    goal = goals[_drawn_goals(goal_key, goals, num_tasks)]
    home = _drawn_homes(home_key, size, homes, goal[:, 2])
    kind, place = _drawn_objects(object_key, size, goal, homes[home])
    fits = (jnp.asarray(size.places)[None] == goal[:, 2:]) & homes[home]
    return HouseParams(
        task=goal[:, 0],
        goal_kind=goal[:, 1],
        goal_place=goal[:, 2],
        goal_bits=_bits(fits),
        present=_bits(homes[home]),
        room=rooms[home],
        kind=kind,
        place=place,
    )


def _goals(size: HouseSize, split: Split) -> np.ndarray:
    """`[goals, 3]` int32: task, kind of object, kind of place."""
    rows = []
    for task in HouseTask:
        for kind, thing in enumerate(OBJECTS[: size.num_kinds]):
            asked = TREATMENT.get(task, 0)
            if asked & ~thing.treatments:
                continue
            for place in (LAMP,) if task == HouseTask.LOOK else sorted({*size.places}):
                kept = (kind + 2 * place + task) % 5 == 0
                if split == "unseen" or kept == (split == "seen"):
                    rows.append((task, kind, place))
    return np.asarray(rows, np.int32)


def _layouts(size: HouseSize, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """`[families, N]` of a split: which places there are, bool, and their rooms."""
    homes, rooms = [], []
    for index, family in enumerate(size.families):
        kept = index % 4 == 3
        if kept == (split == "unseen"):
            homes.append([bool(family >> i & 1) for i in range(len(size.places))])
            allowed = [PLACES[kind].rooms for kind in size.places]
            rooms.append([r[(index + i) % len(r)] for i, r in enumerate(allowed)])
    return np.asarray(homes), np.asarray(rooms, np.int32)


def _drawn_goals(key: Key, goals: Array, num_tasks: int) -> Array:
    """`[N]` rows of `goals`: every type of task is as likely as another."""
    number = jnp.bincount(goals[:, 0], length=len(HouseTask))
    logits = -jnp.log(number[goals[:, 0]].astype(jnp.float32))
    return jax.random.categorical(key, logits, shape=(num_tasks,))


def _drawn_homes(key: Key, size: HouseSize, homes: Array, goal_place: Array) -> Array:
    """`[N]` rows of `homes`, each with a place of the goal's kind."""
    of_kind = jnp.asarray(size.places)[None] == jnp.arange(len(PLACES))[:, None]
    has_kind = jnp.any(homes[None] & of_kind[:, None], axis=2)
    return jax.random.categorical(key, jnp.where(has_kind, 0.0, -jnp.inf)[goal_place])


def _drawn_objects(
    key: Key, size: HouseSize, goal: Array, home: Array
) -> tuple[Array, Array]:
    """`[N, K]` kinds and places of objects; the first, or first two, are wanted."""
    kind_key, place_key = jax.random.split(key)
    slot = jnp.arange(size.num_objects)[None]
    wanted = slot < 1 + (goal[:, :1] == HouseTask.PICK_TWO)
    shift = jax.random.randint(kind_key, (goal.shape[0], slot.size), 1, size.num_kinds)
    goal_kind = goal[:, 1:2]
    kind = jnp.where(wanted, goal_kind, (goal_kind + shift) % size.num_kinds)
    names = [PLACES[i].name for i in size.places]
    usual = jnp.asarray([[n in thing.usual for n in names] for thing in OBJECTS])
    weight = jnp.where(usual, USUAL_WEIGHT, 1.0)[kind]
    at_goal = (jnp.asarray(size.places)[None] == goal[:, 2:])[:, None]
    looks = (goal[:, 0] == HouseTask.LOOK)[:, None, None]
    allowed = home[:, None] & ~(at_goal & wanted[..., None] & ~looks)
    logits = jnp.where(allowed, jnp.log(weight), -jnp.inf)
    place = jax.random.categorical(place_key, logits)
    return kind.astype(jnp.int32), place.astype(jnp.int32)


def _bits(members: Array) -> Array:
    """`[N]` int32 sets of `[N, places]` bool."""
    return jnp.sum(
        members.astype(jnp.int32) << jnp.arange(members.shape[1])[None], axis=1
    )
