"""An assistant with tools: requests in turn, calls that can fail, a state to reach.

A task is in one of four small APIs and has three turns of one request each. A call has
its arguments from a fixed table and brings a value or an error: an argument that does
not exist, or a condition that nobody mentioned, such as a session, or an engine that
must be off. When the assistant ends its turn the next request comes; after the last the
state is compared with the reference's. Whatever else was changed counts as failure.

Reference: the shape of multi-turn function calling with a check of the final state is
that of the Berkeley Function Calling Leaderboard; APIs, tasks and words are our own.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from flax import struct

from jerp.envs.base import Observation, TimeStep, View
from jerp.envs.bits import has_bit
from jerp.envs.tools_tables import (
    CALLS,
    DONE,
    NUM_VALUES,
    NUM_VARIABLES,
    OK,
    REQUESTS,
    STATUSES,
    VARIABLES,
    WAITING,
    next_call,
    tables,
)
from jerp.envs.tools_tasks import NUM_TURNS, ToolsParams
from jerp.envs.tools_things import APIS
from jerp.envs.tools_tokens import (
    NUM_ACTION_TOKENS,
    NUM_OBSERVATION_TOKENS,
    action_tokens,
    observation_tokens,
    vocabulary,
)
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["Tools", "ToolsState"]


class ToolsState(struct.PyTreeNode):
    """One episode in progress; leaves `[]` int32 but for `values`.

    Attributes:
      step: counter.
      values: `[S]` int32, of the API's variables.
      turn: in [0, turns], of which the last is the end.
      right: turns at whose end the state was the reference's.
      status: position in `STATUSES`, of the last call of this turn.
      about: 1 + the variable that it shows; 0 for none.
    """

    step: Array
    values: Array
    turn: Array
    right: Array
    status: Array
    about: Array


@dataclass(frozen=True)
class Tools:
    """The world; see the module's first lines.

    Actions: end the turn, then the calls of all APIs, of which those of other APIs than
    the task's are inadmissible. A call that fails is admissible.

    Attributes:
      horizon: step budget of an episode.
      observation: which form time steps hold.
    """

    horizon: int = 24
    observation: View = "fields"

    @property
    def num_actions(self) -> int:
        """A, 1 + the calls of all APIs."""
        return 1 + len(CALLS)

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """API, turn, request; status, variable and value of the last call."""
        task = (1 + len(APIS), 1 + NUM_TURNS, 1 + len(REQUESTS))
        return (*task, len(STATUSES), 1 + len(VARIABLES), 1 + NUM_VALUES)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words of `observe` and `action_tokens`."""
        return vocabulary()

    @property
    def num_observation_tokens(self) -> int:
        """The same for all tasks."""
        return NUM_OBSERVATION_TOKENS

    @property
    def num_action_tokens(self) -> int:
        """The same for all actions."""
        return NUM_ACTION_TOKENS

    def reset(self, key: Key, params: ToolsParams) -> tuple[ToolsState, TimeStep]:
        """Starts with the first request; nothing about it is random."""
        del key
        zero = jnp.zeros((), jnp.int32)
        state = ToolsState(
            step=zero,
            values=params.start,
            turn=zero,
            right=zero,
            status=zero + WAITING,
            about=zero,
        )
        return state, self._time_step(state, params, jnp.zeros((), bool))

    def step(
        self, key: Key, state: ToolsState, action: Array, params: ToolsParams
    ) -> tuple[ToolsState, TimeStep]:
        """Makes a call or ends the turn; an inadmissible action only costs the step."""
        del key
        table, on = tables(), ~self._ended(state)
        calls, ends = on & (table.api[action] == params.api), on & (action == DONE)
        now = state.values[table.need_variable[action]]
        holds = has_bit(table.need_values[action], now)
        works = jnp.all(holds)
        changed = table.keep[action] * state.values + table.add[action]
        status = jnp.where(works, OK, table.need_error[action, jnp.argmin(holds)])
        about = jnp.where(works, 1 + table.shown[action], 0)
        right = jnp.all(state.values == self._goal(state, params))
        after = ToolsState(
            step=state.step + on,
            values=jnp.where(calls & works, changed, state.values),
            turn=state.turn + ends,
            right=state.right + (ends & right),
            status=jnp.where(calls, status, jnp.where(ends, WAITING, state.status)),
            about=jnp.where(calls, about, jnp.where(ends, 0, state.about)),
        )
        finishes = ends & (after.turn == NUM_TURNS) & right
        return after, self._time_step(after, params, finishes)

    def admissible(self, state: ToolsState, params: ToolsParams) -> Array:
        """`[A]` bool; nothing once the episode ended."""
        own = (tables().api == params.api) | (jnp.arange(self.num_actions) == DONE)
        return own & ~self._ended(state)

    def anchor(self, state: ToolsState, params: ToolsParams) -> Array:
        """`[3]` int32: four values to a word, then turn, turns right and last call."""
        del params
        words = state.values.reshape(-1, 4) << (4 * jnp.arange(4))[None]
        rest = state.turn * (1 + NUM_TURNS) + state.right
        rest = rest * len(STATUSES) + state.status
        rest = rest * (1 + NUM_VARIABLES) + state.about
        return jnp.append(jnp.sum(words, axis=1), rest).astype(jnp.int32)

    def observe(self, state: ToolsState, params: ToolsParams) -> Observation:
        """The request, and what the last call brought; not the state."""
        turn = jnp.minimum(state.turn, NUM_TURNS - 1)
        shows = state.about > 0
        value = 1 + state.values[state.about - 1]
        about = tables().first_variable[params.api] + state.about
        fields = (
            1 + params.api,
            1 + turn,
            1 + params.request[turn],
            state.status,
            jnp.where(shows, about, 0),
            jnp.where(shows, value, 0),
        )
        fields = jnp.stack(fields).astype(jnp.int32)
        return Observation(fields=fields, tokens=observation_tokens(fields))

    def action_tokens(self, params: ToolsParams) -> Array:
        """`[A, 3]` int32: a tool and up to two arguments."""
        del params
        return action_tokens()

    def oracle(self, state: ToolsState, params: ToolsParams) -> Array:
        """`[]` int32: repairs the first variable that is not as the reference left it.

        It sees the state. Where a variable cannot be set right again, such as a tank
        that is too full, it ends the turn.
        """
        goal = self._goal(state, params)
        wrong = state.values != goal
        first = jnp.argmax(wrong)
        call = next_call(params.api, state.values, first, goal[first])
        return jnp.where(jnp.any(wrong), call, DONE).astype(jnp.int32)

    def _goal(self, state: ToolsState, params: ToolsParams) -> Array:
        return params.goal[jnp.minimum(state.turn, NUM_TURNS - 1)]

    def _ended(self, state: ToolsState) -> Array:
        return (state.turn >= NUM_TURNS) | (state.step >= self.horizon)

    def _time_step(
        self, state: ToolsState, params: ToolsParams, rewarded: Array
    ) -> TimeStep:
        done = state.turn >= NUM_TURNS
        truncated = ~done & (state.step >= self.horizon)
        success = done & jnp.all(state.values == params.goal[-1])
        outcome = jnp.where(success, Outcome.SUCCESS, Outcome.FAILURE)
        seen = self.observe(state, params)
        return TimeStep(
            observation=seen.shown(self.observation),
            legal=self.admissible(state, params),
            reward=rewarded.astype(jnp.float32),
            terminated=done,
            truncated=truncated,
            outcome=jnp.where(truncated, Outcome.TRUNCATED, outcome).astype(jnp.int32),
            score=jnp.where(success, 1.0, state.right / NUM_TURNS),
            anchor=self.anchor(state, params),
            usage=jnp.zeros(len(USAGE_KINDS)),
        )
