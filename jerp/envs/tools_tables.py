"""The APIs as arrays, and which call brings a variable nearer to a value.

Calls of all APIs are numbered together, from 1; 0 ends a turn. So are requests and
variables, from 0. Sets of values are bits of an int32. What is shorter is padded: with
needs that always hold, with effects that change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jerp.envs.bits import has_bit
from jerp.envs.tools_things import APIS, Api, Call, Need
from jerp.typing import Array

__all__ = [
    "CALLS",
    "DONE",
    "NUM_VALUES",
    "NUM_VARIABLES",
    "OK",
    "REQUESTS",
    "STATUSES",
    "VARIABLES",
    "WAITING",
    "Tables",
    "next_call",
    "tables",
]

NUM_VARIABLES = max(len(api.variables) for api in APIS)
"""S, of any API; those that one lacks stay 0."""
NUM_VALUES = 16
DEPTH = 6
"""No call needs a call that needs a call ... for longer."""
ALWAYS = 2**NUM_VALUES - 1

DONE = 0
CALLS = tuple((d, call) for d, api in enumerate(APIS) for call in api.calls)
"""API and call; number 1 is first."""
REQUESTS = tuple((d, r) for d, api in enumerate(APIS) for r in api.requests)
VARIABLES = tuple((d, v) for d, api in enumerate(APIS) for v in api.variables)

_NEEDS = [need for _, call in CALLS for need in call.needs]
STATUSES = ("waiting", "ok", *dict.fromkeys(need.error for need in _NEEDS))
WAITING, OK = 0, 1
"""Nothing was called in this turn; the last call went well. Others are errors."""


class Tables(NamedTuple):
    """Calls are a first axis of `A` with the end of a turn, requests of `R`; int32.

    Attributes:
      api: `[A]`, of each call; -1 for the end of a turn.
      need_variable, need_values, need_error: `[A, J]`, the last an index in `STATUSES`.
      need_call: `[A, J, values]`, what to call first where the need does not hold.
      keep, add: `[A, S]`, the effects.
      shown: `[A]`, the variable that a call shows.
      toward: `[APIs, S, values, values]`, the call that brings a variable from a value
        nearer to another; `DONE` for none.
      first_variable: `[APIs]`, the number of an API's first variable among all.
      request_api, request_variable, request_value: `[R]`.
      when_variable, when_values: `[R]`, when it is asked.
    """

    api: Array
    need_variable: Array
    need_values: Array
    need_error: Array
    need_call: Array
    keep: Array
    add: Array
    shown: Array
    toward: Array
    first_variable: Array
    request_api: Array
    request_variable: Array
    request_value: Array
    when_variable: Array
    when_values: Array


def tables() -> Tables:
    """Constants; worked out once."""
    return Tables(*(jnp.asarray(x, jnp.int32) for x in _tables()))


@cache
def _tables() -> tuple[np.ndarray, ...]:
    rows, most = 1 + len(CALLS), max(len(call.needs) for _, call in CALLS)
    api = np.full(rows, -1)
    variable, error = np.zeros((2, rows, most), int)
    values = np.full((rows, most), ALWAYS)
    first = np.zeros((rows, most, NUM_VALUES), int)
    keep, add = (
        np.ones((rows, NUM_VARIABLES), int),
        np.zeros((rows, NUM_VARIABLES), int),
    )
    shown = np.zeros(rows, int)
    for a, (d, call) in enumerate(CALLS, 1):
        api[a], place = d, _places(APIS[d])
        for j, need in enumerate(call.needs):
            variable[a, j], values[a, j] = place[need.variable], _bits(need.values)
            error[a, j] = STATUSES.index(need.error)
            first[a, j] = _first_calls(d, need.variable, need.values)
        for effect in call.effects:
            keep[a, place[effect.variable]] = effect.keep
            add[a, place[effect.variable]] = effect.add
        shown[a] = place[call.shown]
    toward = np.zeros((len(APIS), NUM_VARIABLES, NUM_VALUES, NUM_VALUES), int)
    for d, one in enumerate(APIS):
        for v, kind in enumerate(one.variables):
            for goal in range(len(kind.values)):
                toward[d, v, :, goal] = _first_calls(d, kind.name, {goal})
    needs = (variable, values, error, first)
    ends = np.cumsum([len(one.variables) for one in APIS])
    first_variable = np.concatenate([[0], ends[:-1]])
    return (api, *needs, keep, add, shown, toward, first_variable, *_request_tables())


def _request_tables() -> tuple[np.ndarray, ...]:
    rows = []
    for d, request in REQUESTS:
        place = _places(APIS[d])
        when = request.when[0] if request.when else None
        condition = (place[when.variable], _bits(when.values)) if when else (0, ALWAYS)
        rows.append((d, place[request.variable], request.value, *condition))
    return tuple(np.asarray(rows).T)


def _places(api: Api) -> dict[str, int]:
    return {variable.name: i for i, variable in enumerate(api.variables)}


def _bits(values: Collection[int]) -> int:
    return sum(1 << value for value in values if value < NUM_VALUES)


def _first_calls(api: int, variable: str, goals: Collection[int]) -> np.ndarray:
    """`[values]`: from each, the first call of a shortest way to a goal; else DONE."""
    number = len(APIS[api].variables[_places(APIS[api])[variable]].values)
    steps = [
        (a, _moved(call, variable, number))
        for a, (d, call) in enumerate(CALLS, 1)
        if d == api and call.effects and call.effects[0].variable == variable
    ]
    calls, reached = np.full(NUM_VALUES, DONE), set(goals)
    while True:
        found = {}
        for a, moved in steps:
            for value in set(range(number)) - reached:
                if moved(value) in reached:
                    found.setdefault(value, a)
        if not found:
            return calls
        for value, a in found.items():
            calls[value] = a
        reached |= set(found)


def _moved(call: Call, variable: str, number: int) -> Callable[[int], int | None]:
    """The value after a call, or None where the variable itself forbids it."""
    effect = call.effects[0]
    own: list[Need] = [need for need in call.needs if need.variable == variable]

    def moved(value: int) -> int | None:
        if any(value not in need.values for need in own):
            return None
        after = effect.keep * value + effect.add
        return after if 0 <= after < number else None

    return moved


def next_call(api: Array, values: Array, variable: Array, goal: Array) -> Array:
    """`[]` int32: the call to make now so that `variable` will have the value `goal`.

    Args:
      api: `[]` int32.
      values: `[S]` int32, the state.
      variable: `[]` int32, of the API.
      goal: `[]` int32.

    Returns:
      A call whose needs hold, or `DONE` if nothing leads there.

    Example:
      >>> values = jnp.zeros(NUM_VARIABLES, jnp.int32)
      >>> a = next_call(jnp.int32(1), values, jnp.int32(0), jnp.int32(1))
      >>> CALLS[int(a) - 1][1].tool  # to buy, one must be logged in
      'log in'
    """
    table = tables()
    call = table.toward[api, variable, values[variable], goal]
    for _ in range(DEPTH):
        now = values[table.need_variable[call]]
        holds = has_bit(table.need_values[call], now)
        failing = jnp.argmin(holds)
        instead = table.need_call[call, failing, now[failing]]
        call = jnp.where(jnp.all(holds), call, instead)
    return call
