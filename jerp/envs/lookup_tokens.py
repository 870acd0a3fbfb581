"""What is seen of a question and of a look-up, as fields and as words.

As tokens the question comes once, before the first action, and each look-up brings what
it found; as fields the question comes along every time.
"""

from __future__ import annotations

import jax.numpy as jnp
from flax import struct

from jerp.envs.lookup_tasks import (
    NUM_GROUPS,
    Direction,
    LookupKind,
    LookupParams,
    LookupSize,
)
from jerp.typing import Array

__all__ = [
    "FOUND",
    "LEFT_FIELD",
    "NUM_ACTION_TOKENS",
    "NUM_OBSERVATION_TOKENS",
    "Shown",
    "action_tokens",
    "entity_name",
    "field_sizes",
    "observation_fields",
    "observation_tokens",
    "value_name",
    "vocabulary",
]

NUM_OBSERVATION_TOKENS = 5
NUM_ACTION_TOKENS = 3
LEFT_FIELD = 10
"""The field that counts steps."""

NOTHING, FOUND, FAILED, ABSENT = range(4)
"""What the last look-up brought; there may be no paragraph, or an error instead."""

FIRST_YEAR = 1800
BEGINNINGS = (
    *("al", "be", "co", "da", "el", "fi", "go", "ha"),
    *("il", "jo", "ka", "lu", "ma", "ne", "or", "pe"),
)
ENDINGS = ("bo", "da", "ler", "min", "nor", "ra", "sel", "ta")

_SPECIAL = (
    "",
    "nothing",
    "search failed",
    "no such paragraph",
    "hidden",
    *(kind.name.lower() for kind in LookupKind),
    *(direction.name.lower() for direction in Direction),
    "search",
    "answer",
    "end",
)
_NOTHING, _FAILED, _ABSENT, _HIDDEN, _KIND = range(1, 6)
_DIRECTION = _KIND + len(LookupKind)
_SEARCH = _DIRECTION + len(Direction)
_ANSWER, _END = _SEARCH + 1, _SEARCH + 2


class Shown(struct.PyTreeNode):
    """What a state shows; leaves `[]` int32, and `[2]` for `asked`.

    Attributes:
      asked: the names in the question, -1 for none.
      last: the entity that was searched for last; -1 before.
      status: what that brought: `NOTHING`, `FOUND`, `FAILED` or `ABSENT`.
      link, value: of the paragraph that was found.
      left: look-ups that are left.
    """

    asked: Array
    last: Array
    status: Array
    link: Array
    value: Array
    left: Array


def entity_name(entity: int) -> str:
    """A word; names of one group begin alike.

    Example:
      >>> entity_name(0), entity_name(16)
      ('Albo', 'Alda')
    """
    member, group = divmod(entity, NUM_GROUPS)
    more, last = divmod(member, len(ENDINGS))
    middle = ENDINGS[more - 1] if more else ""
    return (BEGINNINGS[group] + middle + ENDINGS[last]).capitalize()


def value_name(value: int) -> str:
    """A year.

    Example:
      >>> value_name(3)
      '1803'
    """
    return str(FIRST_YEAR + value)


def vocabulary(size: LookupSize) -> tuple[str, ...]:
    """All words; the first is padding."""
    return (
        *_SPECIAL,
        *(f"{left} left" for left in range(size.max_lookups + 1)),
        *(entity_name(entity) for entity in range(size.num_entities)),
        *(value_name(value) for value in range(size.num_values)),
    )


def _starts(size: LookupSize) -> tuple[int, int, int]:
    """The tokens of no look-ups left, of the first entity and the first value."""
    left = len(_SPECIAL)
    entity = left + size.max_lookups + 1
    return left, entity, entity + size.num_entities


def field_sizes(size: LookupSize) -> tuple[int, ...]:
    """Values of each field of `observation_fields`."""
    entities, values = size.num_entities + 1, size.num_values + 1
    question = (1 + len(LookupKind), len(Direction))
    names = (entities, entities, values, values)
    return (*question, *names, entities, 4, entities, values, 2 + size.max_lookups)


def observation_fields(params: LookupParams, shown: Shown) -> Array:
    """`[11]` int32: question, last look-up, look-ups left.

    Kind; direction; the two entities, then the two values of the question; the entity
    searched for last; what that brought; link and value of the paragraph; look-ups
    left. All but direction and what it brought count from 1, for 0 is "nothing".
    """
    direct, found = params.kind == LookupKind.DIRECT, shown.status == FOUND
    named = 1 + shown.asked
    parts = [
        jnp.stack([1 + params.kind, params.direction]),
        jnp.where(direct, 0, named),
        jnp.where(direct, named, 0),
        jnp.stack(
            [
                1 + shown.last,
                shown.status,
                jnp.where(found, 1 + shown.link, 0),
                jnp.where(found, 1 + shown.value, 0),
                jnp.where(params.announced, 1 + shown.left, 0),
            ]
        ),
    ]
    return jnp.concatenate(parts).astype(jnp.int32)


def observation_tokens(size: LookupSize, params: LookupParams, shown: Shown) -> Array:
    """`[5]` int32: the question, or three words of a look-up and two of padding.

    The question: kind, direction, two names, look-ups left. A look-up: link and value
    of the paragraph, or twice what went wrong; look-ups left.
    """
    zero_left, entity, value = _starts(size)
    left = jnp.where(params.announced, zero_left + shown.left, _HIDDEN)
    name = jnp.where(params.kind == LookupKind.DIRECT, value, entity)
    named = jnp.where(shown.asked < 0, _NOTHING, name + shown.asked)
    head = jnp.stack([_KIND + params.kind, _DIRECTION + params.direction])
    question = jnp.concatenate([head, named, left[None]])
    wrong = jnp.where(shown.status == FAILED, _FAILED, _ABSENT)
    found = jnp.stack([entity + shown.link, value + shown.value])
    brought = jnp.where(shown.status == FOUND, found, wrong)
    answer = jnp.concatenate([brought, left[None], jnp.zeros(2, jnp.int32)])
    first = shown.status == NOTHING
    return jnp.where(first, question, answer).astype(jnp.int32)


def action_tokens(size: LookupSize) -> Array:
    """`[E + V, 3]` int32: "search", entity, "end", or "answer", value, "end"."""
    _, entity, value = _starts(size)
    rows = [(_SEARCH, entity + i, _END) for i in range(size.num_entities)]
    rows += [(_ANSWER, value + i, _END) for i in range(size.num_values)]
    return jnp.asarray(rows, jnp.int32)
