"""The words of `tools`: of requests, of what calls bring, and of the calls."""

from __future__ import annotations

from functools import cache

import jax.numpy as jnp
import numpy as np

from jerp.envs.tools_tables import CALLS, NUM_VALUES, REQUESTS, STATUSES, VARIABLES
from jerp.envs.tools_tasks import NUM_TURNS
from jerp.envs.tools_things import APIS
from jerp.typing import Array

__all__ = [
    "NUM_ACTION_TOKENS",
    "NUM_OBSERVATION_TOKENS",
    "action_tokens",
    "observation_tokens",
    "vocabulary",
]

NUM_OBSERVATION_TOKENS = 7
NUM_ACTION_TOKENS = 3

END_OF_TURN = "done"


@cache
def vocabulary() -> tuple[str, ...]:
    """All words; the first is padding. A word has one token, whatever it names."""
    words = [*(api.name for api in APIS), *(f"turn {t + 1}" for t in range(NUM_TURNS))]
    words += [*STATUSES, END_OF_TURN]
    for _, variable in VARIABLES:
        words += [variable.name, *variable.values]
    for _, call in CALLS:
        words += [call.tool, *call.arguments]
    return ("", *dict.fromkeys(words))


@cache
def _number() -> dict[str, int]:
    return {word: i for i, word in enumerate(vocabulary())}


@cache
def _words() -> tuple[np.ndarray, ...]:
    """By request its variable and value; by variable its own word and its values'."""
    number = _number()
    values = np.zeros((1 + len(VARIABLES), 1 + NUM_VALUES), np.int32)
    names = np.zeros(1 + len(VARIABLES), np.int32)
    place = {}
    for v, (d, variable) in enumerate(VARIABLES, 1):
        place[d, variable.name] = v
        names[v] = number[variable.name]
        values[v, 1 : 1 + len(variable.values)] = [number[x] for x in variable.values]
    rows = [(place[d, r.variable], r.value) for d, r in REQUESTS]
    asked = [(names[v], values[v, 1 + value]) for v, value in rows]
    return np.asarray([(0, 0), *asked], np.int32), names, values


def observation_tokens(fields: Array) -> Array:
    """`[7]` int32 of the fields: API, turn, request, what the last call brought.

    Two words of a request, variable and value; the status; two more, of what is shown.
    """
    asked, names, values = (jnp.asarray(x) for x in _words())
    api, turn, request, status, about, shown = fields
    first = jnp.stack([api, len(APIS) + turn])
    brought = [_number()[STATUSES[0]] + status, names[about], values[about, shown]]
    return jnp.concatenate([first, asked[request], jnp.stack(brought)])


def action_tokens() -> Array:
    """`[A, 3]` int32: "done", or a tool and its arguments."""
    rows = np.zeros((1 + len(CALLS), NUM_ACTION_TOKENS), np.int32)
    rows[0, 0] = _number()[END_OF_TURN]
    for a, (_, call) in enumerate(CALLS, 1):
        words = [_number()[word] for word in (call.tool, *call.arguments)]
        rows[a, : len(words)] = words
    return jnp.asarray(rows)
