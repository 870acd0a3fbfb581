"""The seven structural actions of the Harness MDP (arXiv 2607.05458).

A domain gives each action its meaning and masks the illegal ones; the controller
chooses among the legal ones. The order is part of the trajectory schema: append only.
"""

from __future__ import annotations

from enum import IntEnum

from jerp.errors import UnknownNameError

__all__ = ["ACTIONS", "NUM_ACTIONS", "Action", "action_id"]


class Action(IntEnum):
    """Index of a structural action."""

    OBSERVE = 0
    RETRIEVE = 1
    CALL_TOOL = 2
    DRAFT = 3
    CHECK = 4
    REVISE = 5
    SUBMIT = 6


ACTIONS = ("observe", "retrieve", "call-tool", "draft", "check", "revise", "submit")
NUM_ACTIONS = len(ACTIONS)


def action_id(name: str) -> int:
    """Index of the action called `name`.

    Raises:
      UnknownNameError: no action has that name; the nearest one is offered.
    """
    if name not in ACTIONS:
        raise UnknownNameError("action", name, ACTIONS)
    return ACTIONS.index(name)
