"""Catalogues that are made up from a key, and what a search in one shows.

A search ranks the whole catalogue by how much of the query an item has, the earlier
item first where two have as much. There are few queries a task, so that all are
answered once, when the task is made.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax

from jerp.envs.shop_state import Goal, Items
from jerp.envs.shop_things import (
    ATTRIBUTES,
    CATEGORIES,
    MAX_WANTED,
    OPTIONS,
    Query,
    ShopSize,
)
from jerp.ops.checks import check_count
from jerp.typing import Array, Key

__all__ = ["asked_attributes", "search_results", "shop_catalogue"]

LEAST_PRICE, MOST_PRICE = 5, 120
OFFERED = 0.7
"""How likely an item is to come in several sizes, or colours."""
VALUE_OFFERED = 0.6
"""How likely such an item is to come in each of them."""


@partial(jax.jit, static_argnames="num_items")
def shop_catalogue(key: Key, num_items: int) -> Items:
    """Draws a catalogue: every category alike, two to four attributes an item.

    Args:
      key: consumed.
      num_items: I.

    Returns:
      `Items` with leaves `[I]`.

    Example:
      >>> shop_catalogue(jax.random.key(0), 60).offers.shape
      (60, 2)
    """
    check_count("num_items", num_items)
    keys = jax.random.split(key, 6)
    shape = (num_items,)
    order = jnp.argsort(jax.random.uniform(keys[1], (num_items, len(ATTRIBUTES))))
    number = jax.random.randint(keys[2], (num_items, 1), 2, 5)
    has = jnp.arange(len(ATTRIBUTES))[None] < number
    return Items(
        number=jnp.arange(num_items, dtype=jnp.int32),
        category=jax.random.randint(keys[0], shape, 0, len(CATEGORIES)),
        attributes=jnp.sum(jnp.where(has, 1 << order, 0), axis=1).astype(jnp.int32),
        offers=jnp.stack(
            [
                _offers(k, num_items, len(o))
                for k, o in zip(keys[3:5], OPTIONS, strict=True)
            ],
            axis=1,
        ),
        price=jax.random.randint(keys[5], shape, LEAST_PRICE, MOST_PRICE + 1),
    )


def _offers(key: Key, num_items: int, num_values: int) -> Array:
    """`[I]` int32, bits of the values in which each item comes; 0 or more than one."""
    any_key, value_key = jax.random.split(key)
    several = jax.random.bernoulli(any_key, OFFERED, (num_items,))
    has = jax.random.bernoulli(value_key, VALUE_OFFERED, (num_items, num_values))
    bits = jnp.sum(has.astype(jnp.int32) << jnp.arange(num_values)[None], axis=1)
    return jnp.where(several & (lax.population_count(bits) > 1), bits, 0)


def asked_attributes(goal: Goal) -> Array:
    """`[..., Q]` int32, bits of the attributes that each query names.

    The second query with one attribute names the second that is wanted, and so on; 0
    where there is none.

    Example:
      >>> goal = Goal(jnp.int32(0), jnp.int32(0b1010), jnp.zeros(2, int), jnp.int32(0))
      >>> asked_attributes(goal).tolist()
      [0, 2, 8, 0, 10, 10]
    """
    rest, single = goal.attributes, []
    for _ in range(MAX_WANTED):
        lowest = rest & -rest
        single.append(lowest)
        rest = rest ^ lowest
    nothing = jnp.zeros_like(rest)
    return jnp.stack([nothing, *single, goal.attributes, goal.attributes], axis=-1)


def search_results(catalogue: Items, goal: Goal, size: ShopSize) -> Items:
    """The items on the pages of every query, best first.

        score = [category asked and the same] + attributes asked and there

    Args:
      catalogue: leaves `[I]`.
      goal: leaves `[]`.
      size: of the pages.

    Returns:
      `Items` with leaves `[Q, P, K]`.

    Example:
      >>> catalogue = shop_catalogue(jax.random.key(0), 60)
      >>> goal = Goal(jnp.int32(3), jnp.int32(1), jnp.zeros(2, int), jnp.int32(50))
      >>> search_results(catalogue, goal, ShopSize(num_items=60)).price.shape
      (6, 3, 5)
    """
    asked = asked_attributes(goal)[:, None]
    by_category = (jnp.arange(len(Query)) != Query.ATTRIBUTES)[:, None]
    score = by_category & (catalogue.category == goal.category)[None]
    score = score + lax.population_count(asked & catalogue.attributes[None])
    number = catalogue.number.shape[0]
    rank_key = score * number - catalogue.number[None]
    first = lax.top_k(rank_key, size.num_results)[1]
    pages = first.reshape(len(Query), size.num_pages, size.items_a_page)
    return jax.tree.map(lambda leaf: leaf[pages], catalogue)
