"""A shop in which what an instruction asks for is to be found and bought.

One searches, turns pages of results, opens an item, chooses its size and colour, and
buys it, which ends the episode. The reward, WebShop's, comes at the purchase: 1 for all
that was asked for, a share of it for a part (see `shop_reward`). A query is chosen, not
written: what is wanted by category, with each attribute, or with all of them. What is
found depends on the query alone, so that nothing is drawn while shopping.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax.numpy as jnp

from jerp.envs.base import Observation, TimeStep, View
from jerp.envs.bits import has_bit
from jerp.envs.shop_oracle import searchable, shop_oracle
from jerp.envs.shop_reward import purchase_reward
from jerp.envs.shop_state import ShopParams, ShopState
from jerp.envs.shop_things import (
    BACK,
    COLOURS,
    NEXT,
    NUM_QUERIES,
    OPEN,
    OPTIONS,
    PREVIOUS,
    SIZES,
    Page,
    ShopSize,
)
from jerp.envs.shop_tokens import (
    NUM_ACTION_TOKENS,
    action_tokens,
    field_sizes,
    item_here,
    num_observation_tokens,
    observation_fields,
    observation_tokens,
    vocabulary,
)
from jerp.typing import USAGE_KINDS, Array, Key, Outcome

__all__ = ["Shop"]


@dataclass(frozen=True)
class Shop:
    """A world of catalogues of one size; see the module's first lines.

    Actions: search by one of six queries, back to the search page, to the previous or
    the next page, open an item of the page, choose a size, choose a colour, buy.
    Previous to an item is the page of results that it was on; leaving an item forgets
    what was chosen.

    Attributes:
      size: of catalogues and pages.
      horizon: step budget of an episode.
      observation: which form time steps hold.
    """

    size: ShopSize = field(default_factory=ShopSize)
    horizon: int = 15
    observation: View = "fields"

    @property
    def num_actions(self) -> int:
        """A = 21 + items a page."""
        return self.size.buy + 1

    @property
    def field_sizes(self) -> tuple[int, ...]:
        """See `shop_tokens.observation_fields`."""
        return field_sizes(self.size)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The words of `observe` and `action_tokens`."""
        return vocabulary()

    @property
    def num_observation_tokens(self) -> int:
        """39 with five items a page."""
        return num_observation_tokens(self.size)

    @property
    def num_action_tokens(self) -> int:
        """The same for all sizes."""
        return NUM_ACTION_TOKENS

    def reset(self, key: Key, params: ShopParams) -> tuple[ShopState, TimeStep]:
        """Starts on the search page; nothing about it is random."""
        del key
        zero = jnp.zeros((), jnp.int32)
        chosen = jnp.zeros(len(OPTIONS), jnp.int32)
        state = ShopState(zero, zero, zero, zero, zero, chosen)
        return state, self._time_step(state, params, jnp.zeros((), bool))

    def step(
        self, key: Key, state: ShopState, action: Array, params: ShopParams
    ) -> tuple[ShopState, TimeStep]:
        """Plays one action; an inadmissible one only costs the step."""
        del key
        legal = self.admissible(state, params)
        plays = (jnp.arange(self.num_actions) == action) & legal
        searches, back = jnp.any(plays[:NUM_QUERIES]), plays[BACK]
        opens = jnp.any(plays[OPEN : self.size.first_option])
        leaves = plays[PREVIOUS] & (state.page == Page.ITEM)
        page = jnp.where(searches | leaves, Page.RESULTS, state.page)
        page = jnp.where(opens, Page.ITEM, jnp.where(back, Page.SEARCH, page))
        turned = state.turned + plays[NEXT] - (plays[PREVIOUS] & ~leaves)
        slot = jnp.where(opens, action - OPEN, state.slot)
        chosen = self._chosen(state, plays)
        after = ShopState(
            step=state.step + ~self._ended(state),
            page=jnp.where(plays[self.size.buy], Page.BOUGHT, page),
            query=jnp.where(searches, action, jnp.where(back, 0, state.query)),
            turned=jnp.where(searches | back, 0, turned),
            slot=jnp.where(back | leaves, 0, slot),
            chosen=jnp.where(back | leaves, 0, chosen),
        )
        return after, self._time_step(after, params, plays[self.size.buy])

    def admissible(self, state: ShopState, params: ShopParams) -> Array:
        """`[A]` bool; nothing once the episode ended."""
        lists, item = state.page == Page.RESULTS, state.page == Page.ITEM
        offers = item_here(state, params).offers
        turns = [
            lists | item,
            item | (lists & (state.turned > 0)),
            lists & (state.turned < self.size.num_pages - 1),
        ]
        parts = (
            searchable(params) & (state.page == Page.SEARCH),
            jnp.stack(turns),
            jnp.broadcast_to(lists, self.size.items_a_page),
            has_bit(offers[0], jnp.arange(len(SIZES))) & item,
            has_bit(offers[1], jnp.arange(len(COLOURS))) & item,
            jnp.stack([item]),
        )
        return jnp.concatenate(parts) & ~self._ended(state)

    def anchor(self, state: ShopState, params: ShopParams) -> Array:
        """`[]` int32: page, query, page of results, item and what was chosen.

        The digits are in mixed radix, so that no two states share a number.
        """
        del params
        digits = (
            (state.page, len(Page)),
            (state.query, NUM_QUERIES),
            (state.turned, self.size.num_pages),
            (state.slot, self.size.items_a_page),
            (state.chosen[0], 1 + len(SIZES)),
            (state.chosen[1], 1 + len(COLOURS)),
        )
        anchor = jnp.zeros((), jnp.int32)
        for digit, radix in digits:
            anchor = anchor * radix + digit
        return anchor

    def observe(self, state: ShopState, params: ShopParams) -> Observation:
        """See `shop_tokens`."""
        return Observation(
            fields=observation_fields(self.size, state, params),
            tokens=observation_tokens(self.size, state, params),
        )

    def action_tokens(self, params: ShopParams) -> Array:
        """`[A, L_a]` int32, see `shop_tokens`."""
        return action_tokens(self.size, params)

    def oracle(self, state: ShopState, params: ShopParams) -> Array:
        """`[]` int32, see `shop_oracle`."""
        return shop_oracle(self.size, state, params)

    def _chosen(self, state: ShopState, plays: Array) -> Array:
        """`[2]` int32, the options with the one that is chosen now."""
        start, chosen = self.size.first_option, []
        for now, values in zip(state.chosen, OPTIONS, strict=True):
            picks = plays[start : start + len(values)]
            value = jnp.sum(picks * jnp.arange(1, 1 + len(values)))
            chosen.append(jnp.where(value > 0, value, now))
            start += len(values)
        return jnp.stack(chosen)

    def _ended(self, state: ShopState) -> Array:
        return (state.page == Page.BOUGHT) | (state.step >= self.horizon)

    def _time_step(self, state: ShopState, params: ShopParams, buys: Array) -> TimeStep:
        bought = state.page == Page.BOUGHT
        worth = purchase_reward(params.goal, item_here(state, params), state.chosen)
        truncated = ~bought & (state.step >= self.horizon)
        outcome = jnp.where(truncated, Outcome.TRUNCATED, Outcome.FAILURE)
        outcome = jnp.where(bought & (worth >= 1), Outcome.SUCCESS, outcome)
        fields = self.observation == "fields"
        look = observation_fields if fields else observation_tokens
        return TimeStep(
            observation=look(self.size, state, params),
            legal=self.admissible(state, params),
            reward=jnp.where(buys, worth, 0.0),
            terminated=bought,
            truncated=truncated,
            outcome=outcome.astype(jnp.int32),
            score=jnp.where(bought, worth, 0.0),
            anchor=self.anchor(state, params),
            usage=jnp.zeros(len(USAGE_KINDS)),
        )
