"""Tasks of `tools`: three requests one after another, and what must come of each.

The reference does what a request needs and no more: what had to be turned off or
cancelled for it stays so, and so does a session that it opened. The state that it
leaves after each turn is part of the task.

Splits share no sequence of requests. One pair of last two requests in four is kept for
"unseen"; of the others, one sequence in five is kept for "seen", the rest is "train".
"""

from __future__ import annotations

from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct
from jax import lax

from jerp.envs.base import Split
from jerp.envs.tools_tables import (
    NUM_VALUES,
    NUM_VARIABLES,
    next_call,
    tables,
)
from jerp.envs.tools_things import APIS
from jerp.ops.checks import check_choice, check_count
from jerp.typing import Array, Key

__all__ = ["NUM_TURNS", "ToolsParams", "tools_tasks"]

NUM_TURNS = 3
MOST_CALLS = 7
"""No request takes the reference more; a draw that would is drawn again."""


class ToolsParams(struct.PyTreeNode):
    """One task; leaves as said, with `[N]` before for `N` tasks.

    Attributes:
      api: `[]` int32, position in `APIS`.
      start: `[S]` int32, the values of the API's variables at first.
      request: `[turns]` int32, positions in `REQUESTS`.
      goal: `[turns, S]` int32, the reference's state after each turn.
    """

    api: Array
    start: Array
    request: Array
    goal: Array


def tools_tasks(key: Key, num_tasks: int, *, split: Split = "train") -> ToolsParams:
    """Draws tasks; task `i` is of API `i mod 4`: files, trading, travel, vehicle.

    No request asks for what is so already.

    Args:
      key: consumed.
      num_tasks: N.
      split: see the module's first lines.

    Returns:
      `ToolsParams` with leaves `[N, ...]`.

    Example:
      >>> tools_tasks(jax.random.key(0), 4).goal.shape
      (4, 3, 8)
    """
    check_choice("split", split, get_args(Split))
    check_count("num_tasks", num_tasks)
    api = jnp.arange(num_tasks) % len(APIS)
    number = get_args(Split).index(split)
    return _drawn_tasks(jax.random.split(key, num_tasks), api, jnp.int32(number))


@jax.jit
def _drawn_tasks(keys: Key, api: Array, split: Array) -> ToolsParams:
    return jax.vmap(_drawn_task, (0, 0, None))(keys, api, split)


def _drawn_task(key: Key, api: Array, split: Array) -> ToolsParams:
    """Draws until a task is of the split and can be done."""

    def draw(carry):
        number, _, _ = carry
        drawn, fine = _candidate(jax.random.fold_in(key, number), api)
        return number + 1, drawn, fine & (_split(drawn.request) == split)

    nothing = ToolsParams(
        api=api,
        start=jnp.zeros(NUM_VARIABLES, jnp.int32),
        request=jnp.zeros(NUM_TURNS, jnp.int32),
        goal=jnp.zeros((NUM_TURNS, NUM_VARIABLES), jnp.int32),
    )
    start = (jnp.int32(0), nothing, jnp.bool_(False))
    return lax.while_loop(lambda carry: ~carry[2], draw, start)[1]


def _split(request: Array) -> Array:
    """Position in `Split`."""
    one, two, three = request
    unseen, seen = (two + three) % 4 == 3, (one + 2 * two + 3 * three) % 5 == 0
    return jnp.where(unseen, 2, jnp.where(seen, 1, 0))


def _candidate(key: Key, api: Array) -> tuple[ToolsParams, Array]:
    """A task that need not be of any split, and whether the reference does it."""
    start_key, request_key = jax.random.split(key)
    options = jnp.asarray(_starts())[api]
    logits = jnp.where(options, 0.0, -jnp.inf)
    start = jax.random.categorical(start_key, logits).astype(jnp.int32)

    def turn(values: Array, t: Array):
        allowed = _asked(values) & (tables().request_api == api)
        logits = jnp.where(allowed, 0.0, -jnp.inf)
        chosen = jax.random.categorical(jax.random.fold_in(request_key, t), logits)
        after = _reference(api, values, chosen)
        reached = after[tables().request_variable[chosen]]
        fine = allowed[chosen] & (reached == tables().request_value[chosen])
        return after, (chosen.astype(jnp.int32), after, fine)

    _, (request, goal, fine) = lax.scan(turn, start, jnp.arange(NUM_TURNS))
    task = ToolsParams(api=api, start=start, request=request, goal=goal)
    return task, jnp.all(fine)


def _starts() -> np.ndarray:
    """`[APIs, S, values]` bool, what each variable may be at first."""
    allowed = np.zeros((len(APIS), NUM_VARIABLES, NUM_VALUES), bool)
    for d, api in enumerate(APIS):
        for v, variable in enumerate(api.variables):
            allowed[d, v, list(variable.starts)] = True
        allowed[d, len(api.variables) :, 0] = True
    return allowed


def _asked(values: Array) -> Array:
    """`[R]` bool: a request makes sense and asks for something."""
    table = tables()
    sensible = (table.when_values >> values[table.when_variable]) & 1
    return (sensible > 0) & (values[table.request_variable] != table.request_value)


def _reference(api: Array, values: Array, request: Array) -> Array:
    """The state after doing a request; unfinished after `MOST_CALLS`."""
    table = tables()
    variable = table.request_variable[request]
    goal = table.request_value[request]

    def step(values: Array, _: None):
        call = next_call(api, values, variable, goal)
        after = table.keep[call] * values + table.add[call]
        return jnp.where(values[variable] == goal, values, after), None

    return lax.scan(step, values, length=MOST_CALLS)[0]
