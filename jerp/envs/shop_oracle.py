"""What someone who knows every shelf does next in a shop."""

from __future__ import annotations

import jax.numpy as jnp

from jerp.envs.shop_catalogue import asked_attributes
from jerp.envs.shop_reward import attainable_reward
from jerp.envs.shop_state import ShopParams, ShopState
from jerp.envs.shop_things import (
    BACK,
    MAX_WANTED,
    NEXT,
    OPEN,
    OPTIONS,
    PREVIOUS,
    Page,
    Query,
    ShopSize,
)
from jerp.typing import Array

__all__ = ["searchable", "shop_oracle"]


def searchable(params: ShopParams) -> Array:
    """`[Q]` bool, the queries that the instruction has words for."""
    query = jnp.arange(len(Query))
    single = (query > Query.CATEGORY) & (query <= MAX_WANTED)
    return ~single | (asked_attributes(params.goal) > 0)


def shop_oracle(size: ShopSize, state: ShopState, params: ShopParams) -> Array:
    """An action of a shortest way to the best purchase that can be made.

    Args:
      size: of the pages.
      state: of one episode that has not ended.
      params: its task.

    Returns:
      `[]` int32, an admissible action.
    """
    worth = attainable_reward(params.goal, params.shelf)
    worth = jnp.where(searchable(params)[:, None, None], worth, -1.0)
    best = worth >= jnp.max(worth)
    on_page = jnp.any(best, axis=2)
    page, far = jnp.arange(size.num_pages), size.num_pages
    # Pages to turn after the best search; and here, to the nearest with a best item.
    turns = jnp.where(on_page, page[None], far)
    query, first = jnp.argmin(jnp.min(turns, axis=1)), jnp.min(turns)
    away = jnp.where(on_page[state.query], jnp.abs(page - state.turned), 2 * far + 2)
    nearest = jnp.argmin(away)
    # Turning to it takes `away` steps, and one more from an item's page; going back and
    # searching two and `first`, from either.
    stays = jnp.min(away) <= 2 + first
    leaves_item = jnp.where(jnp.min(away) + 1 <= 2 + first, PREVIOUS, BACK)
    turn = jnp.where(nearest > state.turned, NEXT, PREVIOUS)
    here = best[state.query, state.turned]
    turn = jnp.where(nearest == state.turned, OPEN + jnp.argmax(here), turn)
    on_results = jnp.where(stays, turn, BACK)
    on_item = jnp.where(here[state.slot], _completes(size, state, params), leaves_item)
    action = jnp.where(state.page == Page.RESULTS, on_results, query)
    return jnp.where(state.page >= Page.ITEM, on_item, action).astype(jnp.int32)


def _completes(size: ShopSize, state: ShopState, params: ShopParams) -> Array:
    """Chooses what the instruction asks for and the item offers, then buys."""
    at = state.query, state.turned, state.slot
    offers, options = params.shelf.offers[at], params.goal.options
    action, first = jnp.asarray(size.buy), size.first_option
    for i, values in enumerate(OPTIONS):
        wanted = options[i] - 1
        had = (offers[i] >> jnp.maximum(wanted, 0)) & 1
        missing = (wanted >= 0) & (had > 0) & (state.chosen[i] != options[i])
        action = jnp.where(missing, first + wanted, action)
        first += len(values)
    return action
