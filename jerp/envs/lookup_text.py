"""`lookup` in sentences, on the host: question, what a look-up brought, actions.

Entities are people, links their teachers, values the years in which they were born.
States and tasks are rows: one episode's, with NumPy leaves or leaves that NumPy takes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jerp.envs.lookup import LookupState
from jerp.envs.lookup_tasks import Direction, LookupKind, LookupParams, LookupSize
from jerp.envs.lookup_tokens import FAILED, FOUND, NOTHING, entity_name, value_name

__all__ = ["LookupText", "describe", "describe_action", "describe_task"]


class LookupText(NamedTuple):
    """A `jerp.envs.base.WorldText` of questions.

    Attributes:
      size: of the world.
    """

    size: LookupSize

    def task(self, state: LookupState, params: LookupParams) -> str:
        """See `describe_task`."""
        return describe_task(state, params)

    def observation(self, state: LookupState, params: LookupParams) -> str:
        """See `describe`."""
        return describe(state, params)

    def action(self, action: int, params: LookupParams) -> str:
        """See `describe_action`; the same in all tasks."""
        del params
        return describe_action(action, self.size)


def describe_task(state: LookupState, params: LookupParams) -> str:
    """The question, and how it may be answered.

    Args:
      state: at any time of the episode, for names are drawn at reset.
      params: the task.
    """
    first, other = (int(name) for name in np.asarray(state.asked))
    kind, limit = int(params.kind), int(params.limit)
    smaller = int(params.direction) == Direction.SMALLER
    if kind == LookupKind.DIRECT:
        years = f"{value_name(first)} and {value_name(other)}"
        question = f"Which of {years} is {'earlier' if smaller else 'later'}?"
    elif kind == LookupKind.COMPARISON:
        people = f"{entity_name(first)} or {entity_name(other)}"
        age = "older" if smaller else "younger"
        question = f"Who is {age}, {people}? Answer with the year of that one's birth."
    else:
        question = f"In which year was the teacher of {entity_name(first)} born?"
    rules = "Search for people by name, then answer with a year; a search can fail."
    most = f" Search at most {limit} times." if bool(params.announced) else ""
    return f"{question}\n{rules}{most}"


def describe(state: LookupState, params: LookupParams) -> str:
    """What the last look-up brought, and how many are left."""
    status, last = int(state.status), int(state.last)
    left = max(int(params.limit) - int(state.lookups), 0)
    budget = f" {left} searches are left." if bool(params.announced) else ""
    if status == NOTHING:
        return f"Nothing has been looked up.{budget}"
    name = entity_name(last)
    if status == FAILED:
        return f"The search for {name} failed.{budget}"
    if status != FOUND:
        return f"There is nothing about {name}.{budget}"
    entities = np.asarray(state.entity)
    paragraph = int(np.flatnonzero(entities == last)[0])
    teacher = entity_name(int(entities[int(np.asarray(state.link)[paragraph])]))
    year = value_name(int(np.asarray(state.value)[paragraph]))
    return f"{name}, a pupil of {teacher}, was born in {year}.{budget}"


def describe_action(action: int, size: LookupSize) -> str:
    """An action in words.

    Example:
      >>> describe_action(0, LookupSize()), describe_action(96, LookupSize())
      ('search for Albo', 'answer 1800')
    """
    if action < size.num_entities:
        return f"search for {entity_name(action)}"
    return f"answer {value_name(action - size.num_entities)}"
