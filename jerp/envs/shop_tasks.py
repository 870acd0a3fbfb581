"""Instructions that a catalogue can fulfil, in splits that share none.

What is asked for is a category and one to three attributes; one such combination in
five is kept from training. "train" has the others, "seen" the kept ones, in the same
catalogue; "unseen" has any, in a catalogue of its own.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np

from jerp.envs.base import Split
from jerp.envs.bits import has_bit
from jerp.envs.shop_catalogue import search_results, shop_catalogue
from jerp.envs.shop_state import Goal, Items, ShopParams
from jerp.envs.shop_things import (
    ATTRIBUTES,
    MAX_WANTED,
    OPTIONS,
    PRICE_STEP,
    Query,
    ShopSize,
)
from jerp.errors import InputError
from jerp.ops.checks import check_choice, check_count
from jerp.typing import Array, Key

__all__ = ["shop_tasks", "split_catalogue"]

ASKED = 0.75
"""How likely an instruction is to name the size, and the colour, that is to be had."""
AT_ONCE = 64
"""Tasks that are made together, to bound memory, and by one program for any number."""


def split_catalogue(size: ShopSize, split: Split) -> Items:
    """The catalogue of a split: "train" and "seen" have one, "unseen" another.

    Args:
      size: of which the number of items matters.
      split: see the module's first lines.

    Returns:
      `Items` with leaves `[I]`, the same at every call.

    Example:
      >>> split_catalogue(ShopSize(num_items=60), "train").price.shape
      (60,)
    """
    check_choice("split", split, get_args(Split))
    family = 1 if split == "unseen" else 0
    return shop_catalogue(jax.random.key(family), size.num_items)


def shop_tasks(
    key: Key, num_tasks: int, *, size: ShopSize | None = None, split: Split = "train"
) -> ShopParams:
    """Draws instructions, each with an item that fulfils it among its last search's.

    The number of attributes is drawn first, then which, and the category; then one of
    the items shown that have them all. The size and the colour are ones that this item
    offers, and the price limit is 1 to 3 steps of ten dollars above it. A task depends
    on the key and its place, not on how many are drawn with it.

    Args:
      key: consumed.
      num_tasks: N.
      size: of catalogue and pages; None for `ShopSize()`.
      split: see the module's first lines.

    Returns:
      `ShopParams` with leaves `[N, ...]`.

    Raises:
      InputError: the catalogue is so small that the split has no combination.

    Example:
      >>> size = ShopSize(num_items=60, items_a_page=2, num_pages=2)
      >>> shop_tasks(jax.random.key(0), 4, size=size).shelf.price.shape
      (4, 6, 2, 2)
    """
    size = size or ShopSize()
    check_count("num_tasks", num_tasks)
    catalogue = split_catalogue(size, split)
    wanted = _combinations(catalogue, split)
    if not wanted.size:
        raise InputError(
            f"size: expected a catalogue with a combination for split {split!r}, got "
            f"{size.num_items} items without one. Ask for more items"
        )
    goal_key, key = jax.random.split(key)
    rows = _drawn_rows(goal_key, wanted, num_tasks)
    rows = jnp.pad(rows, ((0, -num_tasks % AT_ONCE), (0, 0)), mode="edge")
    parts = [
        _some_tasks(key, start, rows[start : start + AT_ONCE], catalogue, size)
        for start in range(0, num_tasks, AT_ONCE)
    ]
    return jax.tree.map(lambda *x: jnp.concatenate(x)[:num_tasks], *parts)


def _combinations(catalogue: Items, split: Split) -> np.ndarray:
    """`[combinations, 2]` int32: category and bits of attributes of some item."""
    found = set()
    pairs = zip(
        np.asarray(catalogue.category), np.asarray(catalogue.attributes), strict=True
    )
    for category, bits in pairs:
        has = [i for i in range(len(ATTRIBUTES)) if bits >> i & 1]
        for number in range(1, MAX_WANTED + 1):
            for chosen in combinations(has, number):
                kept = (category + sum(chosen)) % 5 == 0
                if split == "unseen" or kept == (split == "seen"):
                    found.add((int(category), sum(1 << i for i in chosen)))
    return np.asarray(sorted(found), np.int32).reshape(-1, 2)


def _drawn_rows(key: Key, wanted: np.ndarray, num_tasks: int) -> Array:
    """`[N, 2]` of the combinations: every number of attributes is as likely."""
    numbers = np.bitwise_count(wanted[:, 1])
    share = np.cumsum(1.0 / np.bincount(numbers)[numbers])
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(num_tasks))
    at = np.asarray(jax.vmap(jax.random.uniform)(keys)) * share[-1]
    return jnp.asarray(wanted[np.searchsorted(share[:-1], at, side="right")])


@partial(jax.jit, static_argnames="size")
def _some_tasks(
    key: Key, start: Array, rows: Array, catalogue: Items, size: ShopSize
) -> ShopParams:
    """Tasks from number `start` on; each has a key of its own, whatever the others."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, start + jnp.arange(len(rows)))
    return jax.vmap(lambda k, row: _task(k, row, catalogue, size))(keys, rows)


def _task(key: Key, wanted: Array, catalogue: Items, size: ShopSize) -> ShopParams:
    """The task of one combination `[2]`."""
    item_key, value_key, asked_key, price_key = jax.random.split(key, 4)
    nothing = jnp.zeros(len(OPTIONS), jnp.int32)
    goal = Goal(wanted[0], wanted[1], nothing, jnp.zeros((), jnp.int32))
    shelf = search_results(catalogue, goal, size)
    shown = jax.tree.map(lambda leaf: leaf[Query.CATEGORY_ATTRIBUTES], shelf)
    shown = jax.tree.map(
        lambda leaf: leaf.reshape(size.num_results, *leaf.shape[2:]), shown
    )
    fits = (shown.category == wanted[0]) & (shown.attributes & wanted[1] == wanted[1])
    index = jax.random.categorical(item_key, jnp.where(fits, 0.0, -jnp.inf))
    item = jax.tree.map(lambda leaf: leaf[index], shown)
    values = jnp.arange(max(map(len, OPTIONS)))
    offered = has_bit(item.offers[:, None], values[None])
    value = jax.random.categorical(value_key, jnp.where(offered, 0.0, -1e30))
    asks = jax.random.bernoulli(asked_key, ASKED, nothing.shape) & (item.offers > 0)
    above = jax.random.randint(price_key, (), 1, 4)
    goal = goal.replace(
        options=jnp.where(asks, 1 + value, 0).astype(jnp.int32),
        limit=(item.price // PRICE_STEP + above) * PRICE_STEP,
    )
    return ShopParams(goal=goal, shelf=shelf)
