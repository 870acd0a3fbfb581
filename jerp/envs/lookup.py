"""Questions to be answered from what can be looked up, in at most T look-ups.

Every entity that has a paragraph has a link to another and a value. Three kinds of
questions: which of two stated values is the smaller or larger (nothing to look up);
which of the values of two entities is (two look-ups in any order); and what is the
value of the entity that an entity links to (the second look-up depends on the first).
Two paragraphs help, eight distract. A search may fail, each time on its own.

T counts look-ups. The answer is not one, so that an episode has at most T + 1 steps: a
count that includes the answering step is greater by one. Who searches once more than T
times is cut off without an answer; with `forced`, only answers are left by then.

All that can be looked up, and whom the question names, is drawn at reset: episodes that
are to start alike, such as those of a group, take the same key there.

Reference: Zhai, Yan, Shao, Wang, arXiv 2604.14877 (Pass@(k, T), and the kinds).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp
from flax import struct
from jax import lax

from jerp.envs.base import Observation, TimeStep, View
from jerp.envs.lookup_tasks import (
    NUM_GROUPS,
    Direction,
    LookupKind,
    LookupParams,
    LookupSize,
)
from jerp.envs.lookup_tokens import (
    ABSENT,
    FAILED,
    FOUND,
    NOTHING,
    NUM_ACTION_TOKENS,
    NUM_OBSERVATION_TOKENS,
    Shown,
    action_tokens,
    field_sizes,
    observation_fields,
    observation_tokens,
    vocabulary,
)
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["Lookup", "LookupState"]

UNANSWERED, WRONG, RIGHT = range(3)


class LookupState(struct.PyTreeNode):
    """One episode in progress. Paragraphs 0 and 1 are those that help.

    Attributes:
      lookups: `[]` int32 counter, T + 1 for one too many.
      asked: `[2]` int32, the names in the question: values of a direct one, else
        entities; -1 for none.
      entity: `[P]` int32, whom each paragraph is about.
      link: `[P]` int32, the paragraph of the entity that it links to.
      value: `[P]` int32, no two alike.
      found: `[P]` bool, paragraphs that were.
      last: `[]` int32, the entity that was searched for last; -1 before.
      status: `[]` int32, what that brought, see `lookup_tokens`.
      answered: `[]` int32, 0 not yet, 1 wrong, 2 right.
      barred: `[]` bool, searches are inadmissible; never without `forced`.
    """

    lookups: Array
    asked: Array
    entity: Array
    link: Array
    value: Array
    found: Array
    last: Array
    status: Array
    answered: Array
    barred: Array


@dataclass(frozen=True)
class Lookup:
    """The world; see the module's first lines.

    Actions: search for entity 0 to E-1, answer with value 0 to V-1.

    Attributes:
      size: of the world.
      forced: whether searches are inadmissible once no look-ups are left. By default
        one more search ends the episode, truncated: where T is not announced, nothing
        then tells it.
      observation: which form time steps hold.
    """

    size: LookupSize = field(default_factory=LookupSize)
    forced: bool = False
    observation: View = "fields"

    @property
    def num_actions(self) -> int:
        """A = E + V."""
        return self.size.num_entities + self.size.num_values

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """See `lookup_tokens.observation_fields`."""
        return field_sizes(self.size)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words of `observe` and `action_tokens`."""
        return vocabulary(self.size)

    @property
    def num_observation_tokens(self) -> int:
        """Five of the question, three of a look-up."""
        return NUM_OBSERVATION_TOKENS

    @property
    def num_action_tokens(self) -> int:
        """The same for all actions."""
        return NUM_ACTION_TOKENS

    def reset(self, key: Key, params: LookupParams) -> tuple[LookupState, TimeStep]:
        """Draws the names in the question, and all that can be looked up."""
        asked_key, entity_key, link_key, value_key = jax.random.split(key, 4)
        direct, bridge = (
            params.kind == k for k in (LookupKind.DIRECT, LookupKind.BRIDGE)
        )
        size, zero = self.size, jnp.zeros((), jnp.int32)
        total = jnp.where(direct, size.num_values, size.num_entities)
        named = _drawn_pair(asked_key, params.groups, total)
        chosen = _drawn_others(entity_key, jnp.where(direct, -1, named), size)
        number = size.num_paragraphs
        away = jax.random.randint(link_key, (number,), 1, number)
        link = (jnp.arange(number) + away) % number
        state = LookupState(
            lookups=zero,
            asked=jnp.where(bridge & (jnp.arange(2) == 1), -1, named),
            entity=chosen,
            link=jnp.where(bridge & (jnp.arange(number) == 0), 1, link),
            value=_distinct(value_key, size.num_values, number),
            found=jnp.zeros(number, bool),
            last=zero - 1,
            status=zero + NOTHING,
            answered=zero + UNANSWERED,
            barred=(params.limit <= 0) & self.forced,
        )
        return state, self._time_step(state, params, jnp.zeros((), bool))

    def step(
        self, key: Key, state: LookupState, action: Array, params: LookupParams
    ) -> tuple[LookupState, TimeStep]:
        """Looks up or answers; consumes the key for whether the search fails."""
        plays = ~self._ended(state, params)
        searches = plays & (action < self.size.num_entities)
        looks = searches & (state.lookups < params.limit)
        answers = plays & ~searches
        here = state.entity == action
        fails = jax.random.uniform(key) < params.failure
        brought = jnp.where(fails, FAILED, jnp.where(jnp.any(here), FOUND, ABSENT))
        right = action - self.size.num_entities == _answer(state, params)
        verdict = jnp.where(right, RIGHT, WRONG)
        lookups = state.lookups + searches
        after = state.replace(
            lookups=lookups,
            found=state.found | (here & looks & ~fails),
            last=jnp.where(looks, action, state.last).astype(jnp.int32),
            status=jnp.where(looks, brought, state.status),
            answered=jnp.where(answers, verdict, state.answered),
            barred=(lookups >= params.limit) & self.forced,
        )
        return after, self._time_step(after, params, answers & right)

    def admissible(self, state: LookupState, params: LookupParams) -> Array:
        """`[A]` bool; nothing once the episode ended."""
        search = jnp.arange(self.num_actions) < self.size.num_entities
        return ~self._ended(state, params) & ~(search & state.barred)

    def anchor(self, state: LookupState, params: LookupParams) -> Array:
        """`[P + 4]` int32: the paragraphs, the question, and what has been found.

        How many look-ups are left is not part of it, but with `forced` whether any are.
        """
        del params
        size, number = self.size, self.size.num_paragraphs
        paragraph = (state.entity * number + state.link) * size.num_values + state.value
        found = jnp.sum(state.found.astype(jnp.int32) << jnp.arange(number))
        last = (1 + state.last) * 4 + state.status
        rest = jnp.stack([found, (last * 3 + state.answered) * 2 + state.barred])
        return jnp.concatenate([paragraph, state.asked, rest]).astype(jnp.int32)

    def observe(self, state: LookupState, params: LookupParams) -> Observation:
        """See `lookup_tokens`."""
        here = state.entity == state.last
        shown = Shown(
            asked=state.asked,
            last=state.last,
            status=state.status,
            link=jnp.sum(jnp.where(here, state.entity[state.link], 0)),
            value=jnp.sum(jnp.where(here, state.value, 0)),
            left=jnp.maximum(params.limit - state.lookups, 0),
        )
        return Observation(
            fields=observation_fields(params, shown),
            tokens=observation_tokens(self.size, params, shown),
        )

    def action_tokens(self, params: LookupParams) -> Array:
        """`[A, 3]` int32, such as "search", "Albo", "end"."""
        del params
        return action_tokens(self.size)

    def oracle(self, state: LookupState, params: LookupParams) -> Array:
        """`[]` int32: looks up what is missing, then answers.

        It uses nothing that it has not found. Where no look-ups are left it guesses as
        well as can be: of a comparison the one value that it knows, else the end of
        the scale; of a bridge a value that it has not seen.
        """
        seen, kind = state.found[:2], params.kind
        # A bridge's second entity is known from the paragraph of the first.
        missing = jnp.where(seen[0], state.entity[1], state.entity[0])
        done = jnp.all(seen) | (kind == LookupKind.DIRECT)
        answer = jnp.where(done, _answer(state, params), self._guess(state, params))
        searches = ~done & (state.lookups < params.limit)
        chosen = jnp.where(searches, missing, self.size.num_entities + answer)
        return chosen.astype(jnp.int32)

    def _guess(self, state: LookupState, params: LookupParams) -> Array:
        seen, last = state.found[:2], self.size.num_values - 1
        smaller = params.direction == Direction.SMALLER
        known = jnp.where(seen[0], state.value[0], state.value[1])
        extreme = jnp.where(smaller, 0, last)
        compared = jnp.where(jnp.any(seen), known, extreme)
        other = jnp.where(seen[0], (state.value[0] + 1) % (last + 1), 0)
        return jnp.where(params.kind == LookupKind.BRIDGE, other, compared)

    def _ended(self, state: LookupState, params: LookupParams) -> Array:
        return (state.answered > UNANSWERED) | (state.lookups > params.limit)

    def _time_step(
        self, state: LookupState, params: LookupParams, rewarded: Array
    ) -> TimeStep:
        truncated, seen = state.lookups > params.limit, self.observe(state, params)
        right = state.answered == RIGHT
        outcome = jnp.where(right, Outcome.SUCCESS, Outcome.FAILURE)
        return TimeStep(
            observation=seen.shown(self.observation),
            legal=self.admissible(state, params),
            reward=rewarded.astype(jnp.float32),
            terminated=state.answered > UNANSWERED,
            truncated=truncated,
            outcome=jnp.where(truncated, Outcome.TRUNCATED, outcome).astype(jnp.int32),
            score=right.astype(jnp.float32),
            anchor=self.anchor(state, params),
            usage=jnp.zeros(len(USAGE_KINDS)),
        )


def _drawn_pair(key: Key, groups: Array, total: Array) -> Array:
    """`[2]` different numbers below `total`, each of its group."""
    member = total // NUM_GROUPS
    first_key, other_key = jax.random.split(key)
    first = jax.random.randint(first_key, (), 0, member)
    same = (groups[0] == groups[1]).astype(jnp.int32)
    other = jax.random.randint(other_key, (), 0, member - same)
    other = jnp.where(same > 0, (first + 1 + other) % member, other)
    return groups + NUM_GROUPS * jnp.stack([first, other])


def _drawn_others(key: Key, wanted: Array, size: LookupSize) -> Array:
    """`[P]` different entities, the `wanted` `[2]` first; -1 wants none."""
    entity = jnp.arange(size.num_entities)
    rank = jax.random.uniform(key, entity.shape)
    for place in range(2):
        rank = jnp.where(entity == wanted[place], place - 2.0, rank)
    return lax.top_k(-rank, size.num_paragraphs)[1]


def _distinct(key: Key, total: int, number: int) -> Array:
    """`[number]` different numbers below `total`."""
    return lax.top_k(jax.random.uniform(key, (total,)), number)[1]


def _answer(state: LookupState, params: LookupParams) -> Array:
    """`[]` int32, the right value."""
    direct, value = params.kind == LookupKind.DIRECT, state.value[:2]
    pair = jnp.where(direct, state.asked, value)
    smaller = params.direction == Direction.SMALLER
    compared = jnp.where(smaller, jnp.min(pair), jnp.max(pair))
    return jnp.where(params.kind == LookupKind.BRIDGE, value[1], compared)
