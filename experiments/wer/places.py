"""Domains of tools in which skills are written, and the executor's decoder.

A skill is at most `NUM_LINES` lines, each of which says which call to make when a call
fails with an error. What the errors of a domain are, and which call repairs what, is
read from the tables of the world.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jerp.envs.base import Split
from jerp.envs.rule_language import Situated
from jerp.envs.tools import Tools, ToolsState
from jerp.envs.tools_rules import TOOLS_TYPES, ToolsRules
from jerp.envs.tools_tables import DONE, NUM_VALUES, OK, Tables, tables
from jerp.envs.tools_tasks import NUM_TURNS, ToolsParams, tools_tasks
from jerp.errors import ConfigError, UnknownNameError
from jerp.models.step_policy import StepPolicy, step_policy
from jerp.typing import Array, Key

__all__ = ["NUM_LINES", "DirectTools", "Place"]

NUM_LINES = 8
"""R, the most lines of a skill."""

FIRST_ERROR = OK + 2
"""The first situation that is an error: situation `s` is status `s - 1`."""


@dataclass(frozen=True)
class DirectTools(Tools):
    """The world of the demonstrator, who sees a condition once a call failed of it."""

    def oracle(self, state: ToolsState, params: ToolsParams) -> Array:
        """`[]` int32: after an error what helps, else what is asked for, then the end.

        What is asked for is called whatever it needs.
        """
        table = tables()
        request = params.request[jnp.minimum(state.turn, NUM_TURNS - 1)]
        variable, goal = table.request_variable[request], table.request_value[request]
        now = state.values[variable]
        call = table.toward[params.api, variable, now, goal]
        direct = jnp.where(now == goal, DONE, call).astype(jnp.int32)
        return jnp.where(state.status > OK, super().oracle(state, params), direct)


@dataclass(frozen=True)
class Place:
    """Where an executor works, and what can be said there.

    A line is the number `s * M + m` of a situation and a move of the language, as a
    working set has it.

    Attributes:
      domains: names of APIs; each has skills of its own.

    Raises:
      ConfigError: no domain, or one that comes twice.
      UnknownNameError: a domain that is no API.
    """

    domains: tuple[str, ...] = ("travel", "vehicle")

    def __post_init__(self):
        for name in self.domains:
            if name not in TOOLS_TYPES:
                raise UnknownNameError("domains", name, TOOLS_TYPES)
        if not self.domains or len(set(self.domains)) < len(self.domains):
            raise ConfigError(
                f"domains: expected different ones, at least one, got {self.domains}"
            )

    @cached_property
    def env(self) -> Situated:
        """The world; it says of every step which situation it is."""
        return Situated(Tools(), ToolsRules())

    @cached_property
    def shown(self) -> Situated:
        """The same with the demonstrator's knowledge."""
        return Situated(DirectTools(), ToolsRules())

    @property
    def horizon(self) -> int:
        """Step budget of an episode."""
        return Tools().horizon

    @property
    def rule_sizes(self) -> tuple[int, int]:
        """S situations and M moves of the language."""
        language = self.env.language
        return len(language.situations), len(language.moves)

    @cached_property
    def rules(self) -> np.ndarray:
        """`[S * M, 2]` int32, situation and move of every line."""
        return np.indices(self.rule_sizes).reshape(2, -1).T.astype(np.int32)

    @property
    def unknown(self) -> tuple[int, ...]:
        """Situations in which the demonstrator can only guess: all errors."""
        return tuple(range(FIRST_ERROR, self.rule_sizes[0]))

    def policy(self) -> StepPolicy:
        """The executor's decoder, which reads lines before an episode."""
        return step_policy(
            self.env.field_sizes,
            self.env.num_actions,
            num_steps=self.horizon,
            rule_sizes=self.rule_sizes,
            num_rules=NUM_LINES,
        )

    def tasks(self, key: Key, number: int, split: Split) -> ToolsParams:
        """Tasks, leaves `[number, ...]`, of each domain in turn. Consumes `key`."""
        rounds = -(-number // len(self.domains))
        drawn = tools_tasks(key, len(TOOLS_TYPES) * rounds, split=split)
        apis = np.asarray([TOOLS_TYPES.index(name) for name in self.domains])
        rows = len(TOOLS_TYPES) * np.arange(rounds)[:, None] + apis[None]
        return jax.tree.map(lambda x: x[rows.ravel()[:number]], drawn)

    def domain_of(self, tasks: Any) -> np.ndarray:
        """`[N]` int32, the position of each task's domain in `domains`."""
        position = np.full(len(TOOLS_TYPES), -1, np.int32)
        position[[TOOLS_TYPES.index(name) for name in self.domains]] = np.arange(
            len(self.domains)
        )
        return position[np.asarray(tasks.api)]

    def situations(self, domain: str) -> tuple[int, ...]:
        """The errors that calls of a domain can bring, in the order of the language."""
        errors = _host_tables().need_error[_calls_of(domain)]
        return tuple(int(e) + 1 for e in np.unique(errors) if e + 1 >= FIRST_ERROR)

    def moves(self, domain: str) -> tuple[int, ...]:
        """The end of a turn, and the calls of a domain."""
        return (DONE + 1, *(int(call) + 1 for call in _calls_of(domain)))

    def right_lines(self, domain: str) -> tuple[int, ...]:
        """A line for each error that most often has one repair, whatever is asked for.

        Failing calls vote for what the tables say to call first: each for every value
        with which it fails. It does not where it would set that value itself and there
        is nothing to do, nor where several calls would do and a user has to say which.
        More than half of the votes are needed.
        """
        lines = []
        for situation in self.situations(domain):
            votes = Counter(_repairs(domain, situation - 1))
            for call, number in votes.most_common(1):
                if 2 * number > votes.total():
                    lines.append(self.line(situation, call + 1))
        return tuple(lines)

    def wrong_lines(self, domain: str) -> tuple[int, ...]:
        """Plausible and harmful: for each error what is right for the next one."""
        situation, move = self.rules[list(self.right_lines(domain))].T
        return tuple(self.line(situation, np.roll(move, -1)).tolist())

    def line(self, situation: Any, move: Any) -> Any:
        """The number of a line; of arrays, of each."""
        return situation * self.rule_sizes[1] + move


@cache
def _host_tables() -> Tables:
    return jax.device_get(tables())


def _calls_of(domain: str) -> np.ndarray:
    return np.flatnonzero(_host_tables().api == TOOLS_TYPES.index(domain))


def _repairs(domain: str, error: int) -> Iterator[int]:
    """For each call and value of a domain that fail with an error, the call to make."""
    table, calls = _host_tables(), _calls_of(domain)
    for call in calls:
        for need in np.flatnonzero(table.need_error[call] == error):
            variable = table.need_variable[call, need]
            fine = table.need_values[call, need]
            sets = table.keep[call, variable] == 0
            own = calls[table.shown[calls] == variable]
            for value in range(NUM_VALUES):
                repair = int(table.need_call[call, need, value])
                nothing = sets and table.add[call, variable] == value
                after = table.keep[own, variable] * value + table.add[own, variable]
                ways = int(np.sum(fine >> after & 1))
                if repair != DONE and not nothing and ways <= 1:
                    yield repair
