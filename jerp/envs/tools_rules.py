"""What rules of tools can say: which call to make when a call fails with an error.

A situation is what the last call brought: nothing yet, success, or one of the errors. A
move is a call with its arguments, or the end of a turn. So the rules of an API are its
hidden conditions: "When a call fails with no card, call add card." What an error asks
for depends on the request where a file or a share is to be named; rules speak of no
request, and say nothing of use there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import jax.numpy as jnp

from jerp.envs.tools import ToolsState
from jerp.envs.tools_tables import CALLS, OK, STATUSES, WAITING
from jerp.envs.tools_tasks import ToolsParams
from jerp.envs.tools_things import APIS
from jerp.typing import Array

__all__ = ["TOOLS_TYPES", "ToolsRules"]

TOOLS_TYPES = tuple(api.name for api in APIS)
"""The keys of rule pools, and the domains of skills."""


@cache
def _situations() -> tuple[str, ...]:
    said = {WAITING: "a request is new", OK: "a call works"}
    words = (said.get(i, f"a call fails with {x}") for i, x in enumerate(STATUSES))
    return ("", *words)


@cache
def _moves() -> tuple[str, ...]:
    calls = (" ".join((call.tool, *call.arguments)) for _, call in CALLS)
    return ("", "end the turn", *(f"call {words}" for words in calls))


@dataclass(frozen=True)
class ToolsRules:
    """A `jerp.envs.base.RuleLanguage` of `jerp.envs.tools.Tools`."""

    @property
    def situations(self) -> tuple[str, ...]:
        """What the last call brought; situation `s` is status `s - 1`."""
        return _situations()

    @property
    def moves(self) -> tuple[str, ...]:
        """What an action does; move `m` is action `m - 1`."""
        return _moves()

    def situation(self, state: ToolsState, params: ToolsParams) -> Array:
        """`[]` int32, see `situations`; a function of what is seen."""
        del params
        return (1 + state.status).astype(jnp.int32)

    def move(self, action: Array, situation: Array, params: ToolsParams) -> Array:
        """`[]` int32, see `moves`; the same in all situations and tasks."""
        del situation, params
        return jnp.asarray(1 + action, jnp.int32)
