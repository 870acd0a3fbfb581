"""`tools` in sentences, on the host: the request, what a call brought, the calls.

States and tasks are rows: one episode's, with leaves that NumPy takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jerp.envs.tools import ToolsState
from jerp.envs.tools_tables import CALLS, DONE, OK, REQUESTS, STATUSES, WAITING
from jerp.envs.tools_tasks import NUM_TURNS, ToolsParams
from jerp.envs.tools_things import APIS

__all__ = ["ToolsText", "describe", "describe_action", "describe_task"]


class ToolsText(NamedTuple):
    """A `jerp.envs.base.WorldText` of tools."""

    def task(self, state: ToolsState, params: ToolsParams) -> str:
        """See `describe_task`."""
        del state
        return describe_task(params)

    def observation(self, state: ToolsState, params: ToolsParams) -> str:
        """See `describe`."""
        return describe(state, params)

    def action(self, action: int, params: ToolsParams) -> str:
        """See `describe_action`; the same in all tasks."""
        del params
        return describe_action(action)


def describe_task(params: ToolsParams) -> str:
    """The API and its tools. Requests come in turn, so `describe` tells them."""
    api = int(params.api)
    tools = dict.fromkeys(call.tool for d, call in CALLS if d == api)
    return (
        f"You work with the {APIS[api].name} tools: {', '.join(tools)}.\n"
        f"{NUM_TURNS} requests come one after another; say done after each. "
        "Change nothing that a request does not need."
    )


def describe(state: ToolsState, params: ToolsParams) -> str:
    """The request of this turn, and what the last call brought."""
    turn = min(int(state.turn), NUM_TURNS - 1)
    asked = f"Request {turn + 1}: {_wish(int(np.asarray(params.request)[turn]))}"
    status = int(state.status)
    if status == WAITING:
        return asked
    if status != OK:
        return f"{asked}\nThe call failed: {STATUSES[status]}."
    about = APIS[int(params.api)].variables[int(state.about) - 1]
    now = about.values[int(np.asarray(state.values)[int(state.about) - 1])]
    return f"{asked}\nThe call worked; {about.name}: {now}."


def _wish(number: int) -> str:
    api, asked = REQUESTS[number]
    variable = next(v for v in APIS[api].variables if v.name == asked.variable)
    wish = variable.wish.format(name=variable.name, value=variable.values[asked.value])
    return wish[0].upper() + wish[1:]


def describe_action(action: int) -> str:
    """An action as one writes a call.

    Example:
      >>> describe_action(0), describe_action(3)
      ('done', 'move(report, archive)')
    """
    if action == DONE:
        return "done"
    call = CALLS[action - 1][1]
    return f"{call.tool}({', '.join(call.arguments)})"
