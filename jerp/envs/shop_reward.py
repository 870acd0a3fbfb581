"""What a purchase is worth: WebShop's graded reward, on bits.

All functions broadcast over leading axes of goals and items. Nothing is looked up: what
is worth something in an item is in its fields.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from jerp.envs.bits import has_bit
from jerp.envs.shop_state import Goal, Items
from jerp.envs.shop_things import CATEGORIES, KINDS_A_DEPARTMENT
from jerp.typing import Array

__all__ = ["attainable_reward", "purchase_reward", "relation", "type_factor"]

NUM_DEPARTMENTS = len(CATEGORIES) // KINDS_A_DEPARTMENT


def relation(wanted: Array, category: Array) -> Array:
    """How near two categories are: 3 the same, 2 of one department, 1 of the next, 0.

    Args:
      wanted: `[...]` int32.
      category: `[...]` int32.

    Returns:
      `[...]` int32.

    Example:
      >>> relation(jnp.int32(0), jnp.array([0, 3, 4, 20, 8])).tolist()
      [3, 2, 1, 1, 0]
    """
    apart = wanted // KINDS_A_DEPARTMENT - category // KINDS_A_DEPARTMENT
    apart = apart % NUM_DEPARTMENTS
    near = jnp.where((apart == 1) | (apart == NUM_DEPARTMENTS - 1), 1, 0)
    near = jnp.where(apart == 0, 2, near)
    return jnp.where(wanted == category, 3, near).astype(jnp.int32)


def type_factor(wanted: Array, category: Array) -> Array:
    """The factor r_type of `purchase_reward`, `[...]` float32.

        r_type = 1 the same category, 0.5 the same department, 0.1 the next, 0 otherwise

    Deviations: the source takes these four values from how many nouns of the wanted
    item's title the bought one shares: 0 for none, 0.1 below a tenth, 0.5 up to a fifth
    if neither the query nor two levels of the category agree, else 1. Categories here
    have no titles, but a place in a ring.

    Example:
      >>> type_factor(jnp.int32(0), jnp.array([0, 3, 4, 8])).tolist()
      [1.0, 0.5, 0.10000000149011612, 0.0]
    """
    near = relation(wanted, category)
    return jnp.where(
        near == 3, 1.0, jnp.where(near == 2, 0.5, jnp.where(near == 1, 0.1, 0.0))
    )


def purchase_reward(goal: Goal, item: Items, chosen: Array) -> Array:
    """The reward for buying an item with the options that were chosen.

        r = r_type (|U_att ∩ Y_att| + |U_opt ∩ Y_opt| + [y_price <= u_price])
            / (|U_att| + |U_opt| + 1)

    U is what the instruction wants, Y what was bought. It is 1 iff all of it agrees.

    Args:
      goal: leaves `[...]`.
      item: leaves `[...]`.
      chosen: `[..., 2]` int32, 1 + the value of each option, 0 for none.

    Returns:
      `[...]` float32 in [0, 1].

    Deviations: attributes and options agree when they are the same, where the source
    compares words by a similarity over 85 %, and searches the item's text for the rest.

    Reference: Yao et al., "WebShop: Towards Scalable Real-World Web Interaction with
    Grounded Language Agents", arXiv:2207.01206, section 3, the reward r; its released
    code, `get_reward`, computes the same.

    Example:
      >>> goal = Goal(jnp.int32(0), jnp.int32(0b11), jnp.array([2, 0]), jnp.int32(40))
      >>> item = Items(*jnp.array([7, 0, 0b101]), jnp.array([3, 0]), jnp.int32(35))
      >>> purchase_reward(goal, item, jnp.array([2, 0])).item()  # 3 of 4
      0.75
    """
    options, chosen = jnp.broadcast_arrays(goal.options, chosen)
    matched = jnp.sum((chosen == options) & (options > 0), axis=-1)
    return _graded(goal, item, matched)


def attainable_reward(goal: Goal, item: Items) -> Array:
    """`purchase_reward` with the best of the options that the item offers.

    Args:
      goal: leaves `[...]`.
      item: leaves `[...]`.

    Returns:
      `[...]` float32 in [0, 1].

    Example:
      >>> goal = Goal(jnp.int32(0), jnp.int32(0b11), jnp.array([3, 0]), jnp.int32(40))
      >>> item = Items(*jnp.array([7, 0, 0b101]), jnp.array([3, 0]), jnp.int32(35))
      >>> attainable_reward(goal, item).item()  # the size is not to be had
      0.5
    """
    options, offers = jnp.broadcast_arrays(goal.options, item.offers)
    offered = has_bit(offers, jnp.maximum(options - 1, 0)) & (options > 0)
    return _graded(goal, item, jnp.sum(offered, axis=-1))


def _graded(goal: Goal, item: Items, matched_options: Array) -> Array:
    matched = lax.population_count(goal.attributes & item.attributes) + matched_options
    wanted = lax.population_count(goal.attributes) + jnp.sum(goal.options > 0, axis=-1)
    share = (matched + (item.price <= goal.limit)) / (wanted + 1)
    return type_factor(goal.category, item.category) * share.astype(jnp.float32)
