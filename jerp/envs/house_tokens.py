"""What is seen of a household, as fields and as words.

Both are functions of the state: what was seen before is for the policy to remember.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from jerp.envs.bits import has_bit
from jerp.envs.house_state import Glance, HouseParams, HouseState
from jerp.envs.house_things import (
    NUM_VERBS,
    OBJECTS,
    PLACES,
    ROOMS,
    TREATMENTS,
    HouseSize,
    HouseTask,
)
from jerp.typing import Array

__all__ = [
    "NUM_ACTION_TOKENS",
    "NUM_OBSERVATION_TOKENS",
    "action_tokens",
    "field_sizes",
    "observation_fields",
    "observation_tokens",
    "vocabulary",
]

NUM_OBSERVATION_TOKENS = 12
NUM_ACTION_TOKENS = 3
NUM_SEEN = 3
"""Kinds that an observation names in words; of more in one place, the first."""

TASKS = ("put", "look", "put clean", "put hot", "put cold", "put two")
ORDINALS = ("one", "two", "three", "four")
BARRIERS = ("none", "closed", "open")
"""What one stands at: not to be closed or nothing, closed, open."""
VERBS = ("put down", "open up", "close up", "use")

_GROUPS = (
    ("",),
    tuple(f"task: {name}" for name in TASKS),
    tuple(kind.name for kind in OBJECTS),
    tuple(kind.name for kind in PLACES),
    ("hall",),
    ORDINALS,
    ROOMS,
    BARRIERS,
    ("nothing",),
    tuple(name or "hot and cold" for name in TREATMENTS),
    ("go", "take", *VERBS),
)
(
    _PADDING,
    _TASK,
    _OBJECT,
    _PLACE,
    _HALL,
    _ORDINAL,
    _ROOM,
    _BARRIER,
    _NOTHING,
    _TREATMENT,
    _GO,
) = (sum(map(len, _GROUPS[:i])) for i in range(len(_GROUPS)))
_TAKE, _VERB = _GO + 1, _GO + 2


def vocabulary() -> tuple[str, ...]:
    """All words; the first is padding."""
    return tuple(word for group in _GROUPS for word in group)


def field_sizes(size: HouseSize) -> tuple[int, ...]:
    """Values of each field of `observation_fields`."""
    tasks, places = len(HouseTask), len(PLACES)
    sizes = (tasks, len(OBJECTS), places, len(size.places), len(ROOMS))
    treated = (size.num_kinds, len(TREATMENTS))
    return (*(1 + n for n in (*sizes, *treated)), 3, *(3,) * size.num_kinds)


def observation_fields(
    size: HouseSize, state: HouseState, params: HouseParams, now: Glance
) -> Array:
    """`[8 + C]` int32: task, home, hand and what is here.

    The task; the goal's kind of object and of place; where one stands and its room; the
    kind and the treatments of what is in the hand; whether what one stands at is closed
    (1) or open (2); of each kind, how many are seen, 2 for more. All but the last count
    from 1, for 0 is "nothing".
    """
    status = (
        1 + params.task,
        1 + params.goal_kind,
        1 + params.goal_place,
        jnp.where(state.at == len(size.places), 0, 1 + state.at),
        _room(size, state, params),
        now.hand,
        jnp.where(now.hand > 0, 1 + now.hand_treated, 0),
        _barrier(size, state, now),
    )
    kinds = jnp.arange(size.num_kinds)[:, None] == params.kind[None]
    number = jnp.sum(kinds & now.here[None], axis=1)
    return jnp.concatenate([jnp.stack(status), jnp.minimum(number, 2)])


def observation_tokens(
    size: HouseSize, state: HouseState, params: HouseParams, now: Glance
) -> Array:
    """`[12]` int32: the same in words, at fixed positions.

    The task and the goal's kinds; place, ordinal, room (in the hall: hall, nothing,
    nothing); none, closed or open; what is in the hand and its treatments (nothing,
    nothing); up to three kinds that are seen.
    """
    inside = state.at != len(size.places)
    # The place after the last is the hall, whose ordinal is read and not used.
    kind = jnp.asarray((*size.places, 0), jnp.int32)[state.at]
    ordinal = jnp.asarray((*size.ordinals, 1), jnp.int32)[state.at] - 1
    filled, room = now.hand > 0, _room(size, state, params)
    words = [
        _TASK + params.task,
        _OBJECT + params.goal_kind,
        _PLACE + params.goal_place,
        jnp.where(inside, _PLACE + kind, _HALL),
        jnp.where(inside, _ORDINAL + ordinal, _NOTHING),
        jnp.where(inside, _ROOM + room - 1, _NOTHING),
        _BARRIER + _barrier(size, state, now),
        jnp.where(filled, _OBJECT + now.hand - 1, _NOTHING),
        jnp.where(filled, _TREATMENT + now.hand_treated, _NOTHING),
    ]
    seen = now.seen
    for _ in range(NUM_SEEN):
        lowest = seen & -seen
        kind = lax.population_count(lowest - 1)
        words.append(jnp.where(seen > 0, _OBJECT + kind, _PADDING))
        seen = seen ^ lowest
    return jnp.stack(words).astype(jnp.int32)


def action_tokens(size: HouseSize) -> Array:
    """`[A, 3]` int32: "go", kind, ordinal; "take", kind; or a verb."""
    places = zip(size.places, size.ordinals, strict=True)
    rows = [(_GO, _PLACE + kind, _ORDINAL + i - 1) for kind, i in places]
    rows += [(_TAKE, _OBJECT + kind, 0) for kind in range(size.num_kinds)]
    rows += [(_VERB + verb, 0, 0) for verb in range(NUM_VERBS)]
    return jnp.asarray(rows, jnp.int32)


def _room(size: HouseSize, state: HouseState, params: HouseParams) -> Array:
    """1 + the room where one stands, 0 in the hall."""
    here = jnp.arange(len(size.places)) == state.at
    return jnp.sum(jnp.where(here, 1 + params.room, 0))


def _barrier(size: HouseSize, state: HouseState, now: Glance) -> Array:
    open_here = has_bit(size.openable & state.open, state.at)
    return jnp.where(now.shut, 1, jnp.where(open_here, 2, 0))
