"""A household in which an object is to be found, treated and put somewhere.

Six types of tasks: put an object somewhere; look at it under the lamp; put it there
clean, hot or cold; put two there. Going anywhere takes one step, whatever the room.
What is in a place is seen by who stands at it, and only while it is open. A hand holds
one object. Actions are names, not positions: "go to the second cabinet", "take a mug",
put, open, close, use; a place that a home lacks and a kind that is not at hand are
masked. Success pays 1 and ends the episode; nothing else pays.

A state is a few small integers, and sets of places and of kinds are bits of one, so
that thousands of homes step in a few fused loops.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp

from jerp.envs.base import Observation, TimeStep, View
from jerp.envs.bits import has_bit
from jerp.envs.house_oracle import house_oracle
from jerp.envs.house_state import (
    HouseParams,
    HouseState,
    asked_treatment,
    glance,
)
from jerp.envs.house_things import (
    CLEAN,
    CLOSE,
    COLD,
    FRIDGE,
    HOT,
    LAMP,
    MICROWAVE,
    NUM_VERBS,
    OPEN,
    PUT,
    SINK,
    USE,
    HouseSize,
    HouseTask,
)
from jerp.envs.house_tokens import (
    NUM_ACTION_TOKENS,
    NUM_OBSERVATION_TOKENS,
    action_tokens,
    field_sizes,
    observation_fields,
    observation_tokens,
    vocabulary,
)
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["House", "house_large", "house_small"]

BITS_OF_AN_OBJECT = 8
OBJECTS_A_WORD = 3
"""Of an anchor: five bits of place, three of treatments."""


@dataclass(frozen=True)
class House:
    """A world of homes of one size; see the module's first lines.

    Actions: go to place 0 to N-1, take an object of kind 0 to C-1, put down what is in
    the hand, open or close what one stands at, use the appliance that one stands at.

    Attributes:
      size: of the homes.
      horizon: step budget of an episode.
      observation: which form time steps hold.
    """

    size: HouseSize
    horizon: int
    observation: View = "fields"

    @property
    def num_actions(self) -> int:
        """A = N + C + 4."""
        return len(self.size.places) + self.size.num_kinds + 4

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """See `house_tokens.observation_fields`."""
        return field_sizes(self.size)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words of `observe` and `action_tokens`."""
        return vocabulary()

    @property
    def num_observation_tokens(self) -> int:
        """The same for all sizes."""
        return NUM_OBSERVATION_TOKENS

    @property
    def num_action_tokens(self) -> int:
        """The same for all sizes."""
        return NUM_ACTION_TOKENS

    def reset(self, key: Key, params: HouseParams) -> tuple[HouseState, TimeStep]:
        """Starts in the hall, all closed; nothing about it is random."""
        del key
        zero = jnp.zeros((), jnp.int32)
        state = HouseState(
            step=zero,
            at=zero + len(self.size.places),
            open=zero,
            place=params.place,
            treated=jnp.zeros_like(params.place),
            done=jnp.zeros((), bool),
        )
        return state, self._time_step(state, params, jnp.zeros((), bool))

    def step(
        self, key: Key, state: HouseState, action: Array, params: HouseParams
    ) -> tuple[HouseState, TimeStep]:
        """Plays one action; an inadmissible one only costs the step."""
        del key
        now = glance(self.size, state, params)
        goes, kind, verb = self._played(state, action, params)
        first = _first(now.here & (params.kind == kind))
        place = jnp.where(first, len(self.size.places) + 1, state.place)
        place = jnp.where(now.held & (verb == PUT), state.at, place)
        treated = _treated(state.treated, state.at, now.held & (verb == USE))
        flips = jnp.where((verb == OPEN) | (verb == CLOSE), 1 << state.at, 0)
        after = HouseState(
            step=state.step + ~self._ended(state),
            at=jnp.where(goes, action, state.at).astype(jnp.int32),
            open=state.open ^ flips,
            place=place,
            treated=treated,
            done=state.done,
        )
        succeeds = _succeeds(after, params, verb, now.hand)
        after = after.replace(done=state.done | succeeds)
        return after, self._time_step(after, params, succeeds)

    def admissible(self, state: HouseState, params: HouseParams) -> Array:
        """`[A]` bool; nothing once the episode ended."""
        bits = self._options(state, params)
        sizes = (len(self.size.places), self.size.num_kinds, NUM_VERBS)
        return jnp.concatenate(
            [has_bit(b, jnp.arange(n)) for b, n in zip(bits, sizes, strict=True)]
        )

    def anchor(self, state: HouseState, params: HouseParams) -> Array:
        """`[W]` int32: every place and treatment, what is open, where one stands.

        What is in the hand is among the places. Each word holds as many objects, of
        eight bits each, as 31 bits have room for; the last two hold the rest.
        """
        del params
        objects = state.place * 8 + state.treated
        number = objects.shape[0]
        padded = jnp.pad(objects, (0, -number % OBJECTS_A_WORD))
        shifts = BITS_OF_AN_OBJECT * jnp.arange(OBJECTS_A_WORD)
        words = jnp.sum(padded.reshape(-1, OBJECTS_A_WORD) << shifts[None], axis=1)
        rest = jnp.stack([state.open, state.at * 2 + state.done])
        return jnp.concatenate([words, rest]).astype(jnp.int32)

    def observe(self, state: HouseState, params: HouseParams) -> Observation:
        """See `house_tokens`."""
        now = glance(self.size, state, params)
        return Observation(
            fields=observation_fields(self.size, state, params, now),
            tokens=observation_tokens(self.size, state, params, now),
        )

    def action_tokens(self, params: HouseParams) -> Array:
        """`[A, L_a]` int32, such as "go cabinet two", "take mug", "open"."""
        del params
        return action_tokens(self.size)

    def oracle(self, state: HouseState, params: HouseParams) -> Array:
        """`[]` int32, see `house_oracle`."""
        return house_oracle(self.size, state, params)

    def _ended(self, state: HouseState) -> Array:
        return state.done | (state.step >= self.horizon)

    def _options(
        self, state: HouseState, params: HouseParams
    ) -> tuple[Array, Array, Array]:
        """Bits of the places to go to, the kinds to take, and the verbs."""
        now = glance(self.size, state, params)
        goes = params.present & ~(1 << state.at)
        takes = jnp.where(now.hand == 0, now.seen, 0)
        puts = (now.hand > 0) & now.within_reach
        closes = has_bit(self.size.openable & state.open, state.at)
        uses = puts & has_bit(self._usable(state.at), now.hand - 1)
        verbs = (puts << PUT) | (now.shut << OPEN) | (closes << CLOSE) | (uses << USE)
        on = ~self._ended(state)
        return goes * on, takes * on, verbs * on

    def _usable(self, at: Array) -> Array:
        """Bits of the kinds of objects that the appliance at `at` does something to."""
        kinds = jnp.where(at == FRIDGE, self.size.kinds_with(COLD), 0)
        kinds = jnp.where(at == MICROWAVE, self.size.kinds_with(HOT), kinds)
        kinds = jnp.where(at == SINK, self.size.kinds_with(CLEAN), kinds)
        return jnp.where(at == LAMP, (1 << self.size.num_kinds) - 1, kinds)

    def _played(
        self, state: HouseState, action: Array, params: HouseParams
    ) -> tuple[Array, Array, Array]:
        """Whether one goes; the kind taken and the verb, -1 for none of them.

        A shift out of range finds no bit, so that only one of the three can be.
        """
        go, take, verbs = self._options(state, params)
        kind = action - len(self.size.places)
        verb = kind - self.size.num_kinds
        return (
            has_bit(go, action),
            jnp.where(has_bit(take, kind), kind, -1),
            jnp.where(has_bit(verbs, verb), verb, -1),
        )

    def _time_step(
        self, state: HouseState, params: HouseParams, succeeds: Array
    ) -> TimeStep:
        truncated = ~state.done & (state.step >= self.horizon)
        outcome = jnp.where(state.done, Outcome.SUCCESS, Outcome.FAILURE)
        seen = self.observe(state, params)
        return TimeStep(
            observation=seen.shown(self.observation),
            legal=self.admissible(state, params),
            reward=succeeds.astype(jnp.float32),
            terminated=state.done,
            truncated=truncated,
            outcome=jnp.where(truncated, Outcome.TRUNCATED, outcome).astype(jnp.int32),
            score=self._score(state, params),
            anchor=self.anchor(state, params),
            usage=jnp.zeros(len(USAGE_KINDS)),
        )

    def _score(self, state: HouseState, params: HouseParams) -> Array:
        """The share of what the task asks for that holds; 1 iff it is done.

        An object of the goal kind should be in the hand or at the goal, be treated as
        asked, and be at the goal; to pick two, two should; to look, one in the hand.
        """
        task, asked = params.task, asked_treatment(params.task)
        ours = params.kind == params.goal_kind
        there = has_bit(params.goal_bits, state.place) & (task != HouseTask.LOOK)
        found = there | (state.place == len(self.size.places) + 1)
        ready = (state.treated & asked) > 0
        holds = jnp.sum(ours * (found * 1 + there + ready))
        of = jnp.where(task == HouseTask.PICK_TWO, 4, 2 + (asked > 0))
        return jnp.where(state.done, 1.0, jnp.minimum(holds, of - 1) / of)


def _first(chosen: Array) -> Array:
    """`[K]` bool with the first True of `[K]` alone."""
    index = jnp.arange(chosen.shape[0])
    return index == jnp.min(jnp.where(chosen, index, chosen.shape[0]))


def _treated(treated: Array, at: Array, by: Array) -> Array:
    """Treatments after those `by` `[K]` were treated at an appliance."""
    warmth, adds = HOT | COLD, jnp.where(at == SINK, CLEAN, 0)
    adds = jnp.where(at == FRIDGE, COLD, jnp.where(at == MICROWAVE, HOT, adds))
    drops = jnp.where((adds & warmth) > 0, warmth, 0)
    return jnp.where(by, (treated & ~drops) | adds, treated)


def _succeeds(
    after: HouseState, params: HouseParams, verb: Array, hand: Array
) -> Array:
    """Only putting something down, or using the lamp, can fulfil a task."""
    task, asked = params.task, asked_treatment(params.task)
    ready = (params.kind == params.goal_kind) & ((after.treated & asked) == asked)
    number = jnp.sum(ready & (after.place == after.at))
    wanted = jnp.where(task == HouseTask.PICK_TWO, 2, 1)
    placed = has_bit(params.goal_bits, after.at) & (number >= wanted) & (verb == PUT)
    lit = (after.at == LAMP) & (hand - 1 == params.goal_kind) & (verb == USE)
    return jnp.where(task == HouseTask.LOOK, lit, placed)


def house_small(*, observation: View = "fields") -> House:
    """Homes of 10 of 12 places and 6 objects of 8 kinds; 24 actions, 30 steps."""
    places = (0, 1, 2, 3, 4, 4, 5, 5, 6, 7, 8, 9)
    return House(HouseSize(places, 8, 6), horizon=30, observation=observation)


def house_large(*, observation: View = "fields") -> House:
    """Homes of 20 of 22 places and 12 objects of 16 kinds; 42 actions, 50 steps."""
    others = (4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 10, 11)
    size = HouseSize((0, 1, 2, 3, *others), 16, 12)
    return House(size, horizon=50, observation=observation)
