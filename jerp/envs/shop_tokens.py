"""What is seen of a shop, as fields and as words.

Both are functions of the page: what was on others is for the policy to remember. Fields
say how an item compares with the instruction; words say what it is, and comparing is
left to the policy. A page of results shows no options: these are seen on an item's own.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from jerp.envs.bits import has_bit
from jerp.envs.shop_catalogue import asked_attributes
from jerp.envs.shop_reward import relation
from jerp.envs.shop_state import Goal, Items, ShopParams, ShopState
from jerp.envs.shop_things import (
    ATTRIBUTES,
    CATEGORIES,
    COLOURS,
    MAX_WANTED,
    NUM_PRICE_STEPS,
    NUM_QUERIES,
    OPTIONS,
    PRICE_STEP,
    SIZES,
    Page,
    Query,
    ShopSize,
)
from jerp.typing import Array

__all__ = [
    "NUM_ACTION_TOKENS",
    "action_tokens",
    "field_sizes",
    "item_here",
    "num_observation_tokens",
    "observation_fields",
    "observation_tokens",
    "vocabulary",
]

NUM_ACTION_TOKENS = 3
MAX_ATTRIBUTES = 4
"""Of an item; all are in its title."""

_GROUPS = (
    ("",),
    ("page: search", "page: results", "page: item", "page: bought"),
    ("one", "two", "three", "four", "five"),
    CATEGORIES,
    ATTRIBUTES,
    SIZES,
    COLOURS,
    tuple(f"${PRICE_STEP * (i + 1)}" for i in range(NUM_PRICE_STEPS)),
    ("chosen", "anything", "all"),
    ("search", "back", "previous", "next", "open", "choose", "buy"),
)
(
    _PADDING,
    _PAGE,
    _ORDINAL,
    _CATEGORY,
    _ATTRIBUTE,
    _SIZE,
    _COLOUR,
    _PRICE,
    _CHOSEN,
    _SEARCH,
) = (sum(map(len, _GROUPS[:i])) for i in range(len(_GROUPS)))
_ANYTHING, _ALL = _CHOSEN + 1, _CHOSEN + 2
_BACK, _PREVIOUS, _NEXT, _OPEN, _CHOOSE, _BUY = range(_SEARCH + 1, _SEARCH + 7)

_GOAL_WORDS = 1 + MAX_WANTED + 3
_TITLE_WORDS = 1 + MAX_ATTRIBUTES + 1


def vocabulary() -> tuple[str, ...]:
    """All words; the first is padding.

    Example:
      >>> vocabulary()[1]
      'page: search'
    """
    return tuple(word for group in _GROUPS for word in group)


def num_observation_tokens(size: ShopSize) -> int:
    """Words of the instruction, of the page's name and number, and of the larger page.

    Example:
      >>> num_observation_tokens(ShopSize())
      39
    """
    item = _TITLE_WORDS + len(SIZES) + len(COLOURS) + 2 * len(OPTIONS)
    return _GOAL_WORDS + max(1 + item, 2 + _TITLE_WORDS * size.items_a_page)


def field_sizes(size: ShopSize) -> tuple[int, ...]:
    """Values of each field of `observation_fields`.

    Example:
      >>> len(field_sizes(ShopSize()))
      29
    """
    options = tuple(1 + len(values) for values in OPTIONS)
    goal = (1 + len(CATEGORIES), 1 + MAX_WANTED, *options)
    where = (1 + len(Page), 1 + NUM_QUERIES, 1 + size.num_pages)
    title = (5, 2 + MAX_WANTED, 3)
    return (*goal, *where, *title * (size.items_a_page + 1), 4, 4, *options)


def observation_fields(size: ShopSize, state: ShopState, params: ShopParams) -> Array:
    """`[14 + 3 K]` int32: instruction, page, and how what is shown compares with it.

    The wanted category, how many attributes, size and colour; the page, the query and
    the number of the page of results; of each result, and then of an item on its own
    page, how near its category is (see `relation`), how many of the wanted attributes
    it has, and whether its price is within (1) or over (2) the limit; of the item's
    size and colour, whether there are none to choose (1), but not the wanted one (2),
    or it, or any will do (3); and what was chosen. All but these and the options count
    from 1, for 0 is "nothing".
    """
    goal, shown, item = (
        params.goal,
        _page_items(state, params),
        item_here(state, params),
    )
    searched, opened = state.page > Page.SEARCH, state.page >= Page.ITEM
    lists = state.page == Page.RESULTS
    head = [
        1 + goal.category,
        lax.population_count(goal.attributes),
        *goal.options,
        1 + state.page,
        jnp.where(searched, 1 + state.query, 0),
        jnp.where(searched, 1 + state.turned, 0),
    ]
    titles = jnp.where(lists, _compared(goal, shown), 0).reshape(-1)
    title = jnp.where(opened, _compared(goal, item), 0)
    has = has_bit(item.offers, jnp.maximum(goal.options - 1, 0))
    has = jnp.where(has | (goal.options == 0), 3, 2)
    offers = jnp.where(opened, jnp.where(item.offers > 0, has, 1), 0)
    parts = (jnp.stack(head), titles, title, offers, state.chosen)
    return jnp.concatenate(parts).astype(jnp.int32)


def observation_tokens(size: ShopSize, state: ShopState, params: ShopParams) -> Array:
    """`[L_o]` int32: the instruction, the page, and the items on it, in words.

    An item is its category, its attributes and its price, rounded up to a step of ten
    dollars; on its own page the sizes and colours follow, and what was chosen.
    """
    goal = params.goal
    head = [
        _CATEGORY + goal.category,
        *_bit_words(goal.attributes, MAX_WANTED, _ATTRIBUTE),
        *_option_words(goal.options),
        _PRICE + goal.limit // PRICE_STEP - 1,
        _PAGE + state.page,
    ]
    titles = _titles(_page_items(state, params)).reshape(-1)
    results = jnp.concatenate([jnp.stack([_ORDINAL + state.turned]), titles])
    item = item_here(state, params)
    own = [
        *_titles(item),
        *_bit_words(item.offers[0], len(SIZES), _SIZE),
        *_bit_words(item.offers[1], len(COLOURS), _COLOUR),
    ]
    for word in _option_words(state.chosen):
        own += [jnp.where(word > 0, _CHOSEN, _PADDING), word]
    length = num_observation_tokens(size) - len(head)
    results, own = (
        jnp.pad(x, (0, length - x.shape[0])) for x in (results, jnp.stack(own))
    )
    body = jnp.where(state.page >= Page.ITEM, own, 0)
    body = jnp.where(state.page == Page.RESULTS, results, body)
    return _padded_at_the_end(jnp.concatenate([jnp.stack(head), body]))


def action_tokens(size: ShopSize, params: ShopParams) -> Array:
    """`[A, 3]` int32, such as "search kettle organic", "open two", "choose red"."""
    goal = params.goal
    by_query = asked_attributes(goal)
    category = jnp.full(NUM_QUERIES, _CATEGORY, jnp.int32) + goal.category
    category = category.at[Query.ATTRIBUTES].set(_ANYTHING)
    (named,) = _bit_words(by_query, 1, _ATTRIBUTE)
    every = jnp.arange(NUM_QUERIES) >= Query.ATTRIBUTES
    named = jnp.where(every, _ALL, named)
    searches = jnp.stack([jnp.full_like(category, _SEARCH), category, named], axis=1)
    rows = [(_BACK, 0, 0), (_PREVIOUS, 0, 0), (_NEXT, 0, 0)]
    rows += [(_OPEN, _ORDINAL + i, 0) for i in range(size.items_a_page)]
    rows += [(_CHOOSE, _SIZE + i, 0) for i in range(len(SIZES))]
    rows += [(_CHOOSE, _COLOUR + i, 0) for i in range(len(COLOURS))]
    rows += [(_BUY, 0, 0)]
    return jnp.concatenate([searches, jnp.asarray(rows, jnp.int32)]).astype(jnp.int32)


def item_here(state: ShopState, params: ShopParams) -> Items:
    """The item that was opened; the first of the page where none is. Leaves `[]`."""
    shown = _page_items(state, params)
    return jax.tree.map(lambda leaf: _taken(leaf, state.slot), shown)


def _page_items(state: ShopState, params: ShopParams) -> Items:
    """Leaves `[K]`."""
    number = state.query * params.shelf.price.shape[1] + state.turned
    return jax.tree.map(
        lambda leaf: _taken(leaf.reshape(-1, *leaf.shape[2:]), number), params.shelf
    )


def _taken(leaf: Array, index: Array) -> Array:
    """A row of a leaf; a state is always within bounds."""
    return leaf.at[index].get(mode="promise_in_bounds")


def _compared(goal: Goal, item: Items) -> Array:
    """`[..., 3]` int32: nearness, attributes, price of items."""
    matched = lax.population_count(goal.attributes & item.attributes)
    price = jnp.where(item.price <= goal.limit, 1, 2)
    return jnp.stack(
        [1 + relation(goal.category, item.category), 1 + matched, price], -1
    )


def _titles(item: Items) -> Array:
    """`[..., 6]` int32 words of items."""
    words = [
        _CATEGORY + item.category,
        *_bit_words(item.attributes, MAX_ATTRIBUTES, _ATTRIBUTE),
        _PRICE + (item.price - 1) // PRICE_STEP,
    ]
    return jnp.stack(words, axis=-1)


def _bit_words(bits: Array, number: int, first: int) -> list[Array]:
    """Words of the lowest members of a set, then padding."""
    words = []
    for _ in range(number):
        lowest = bits & -bits
        word = first + lax.population_count(lowest - 1)
        words.append(jnp.where(bits > 0, word, _PADDING))
        bits = bits ^ lowest
    return words


def _option_words(values: Array) -> list[Array]:
    """Words of `[2]` option values; padding for none."""
    firsts = (_SIZE, _COLOUR)
    return [
        jnp.where(v > 0, f + v - 1, _PADDING)
        for v, f in zip(values, firsts, strict=True)
    ]


def _padded_at_the_end(tokens: Array) -> Array:
    """`[L]` with the gaps closed; the order stays."""
    order = jnp.argsort(tokens == _PADDING, stable=True)
    return tokens[order].astype(jnp.int32)
