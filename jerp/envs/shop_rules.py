"""What rules of a shop can say: when the first result fits, or nothing is chosen yet.

Something "fits" if it is of the kind that is asked for, has all attributes that are
asked for, and costs no more than it may: what its title says. Which of size and colour
are asked for is left out of what a step is: by that, requests are of four types. So
searching, turning pages and opening are alike in all types, and what a type has of its
own is what to do once something that fits is open: which option to choose, and after
how many choices to buy. Rules are kept by type. A category makes no such difference,
for what is done with a kettle is done with a lamp.

What a step is follows from its page alone. A page does not tell what was opened before:
who knows nothing but rules opens the same result again, even if it lacks a size.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from jax import lax

from jerp.envs.shop_state import ShopParams, ShopState
from jerp.envs.shop_things import (
    BACK,
    COLOURS,
    NEXT,
    NUM_QUERIES,
    OPEN,
    PREVIOUS,
    SIZES,
    Page,
    Query,
    ShopSize,
)
from jerp.envs.shop_tokens import observation_fields
from jerp.typing import Array

__all__ = ["SHOP_TYPES", "ShopRules", "shop_type"]

SHOP_TYPES = ("any size and colour", "a size", "a colour", "a size and a colour")
"""By what is to be chosen, see `shop_type`; the keys of rule pools."""

_SITUATIONS = (
    "",
    "you are at the search page",
    "the first result fits",
    *(
        f"the {place} result is the first that fits"
        for place in ("second", "third", "fourth", "fifth")
    ),
    "no result fits after a search for all that is asked",
    "no result fits after another search",
    "no result on the last page fits",
    "you look at something of another kind",
    "you look at something that lacks an attribute",
    "you look at something that costs too much",
    "you look at what fits but it lacks a choice that is asked",
    "you look at what fits and a choice is wrong",
    "you look at what fits and nothing asked is chosen",
    "you look at what fits and one thing asked is chosen",
    "you look at what fits and two things asked are chosen",
)
_SEARCH, _FITS = 1, 2
(
    _NONE,
    _NONE_OTHER,
    _NONE_LAST,
    _KIND,
    _ATTRIBUTE,
    _PRICE,
    _LACKS,
    _WRONG,
    _CHOSEN,
) = range(_FITS + 5, _FITS + 14)

_MOVES = (
    "",
    "search for the kind alone",
    "search for the kind with one attribute of several",
    "search for the attributes in any kind",
    "search for all that is asked",
    "go back to the search page",
    "go to the previous page",
    "go to the next page",
    "open the first that fits",
    "open another result",
    "choose the size that is asked",
    "choose another size",
    "choose the colour that is asked",
    "choose another colour",
    "buy it",
)
_BY_KIND, _BY_ONE, _BY_ATTRIBUTES, _BY_ALL, _TURN = range(1, 6)
_OPEN_FITTING, _OPEN_OTHER, _CHOOSE, _BUY = 8, 9, 10, 14
assert (PREVIOUS - BACK, NEXT - BACK) == (1, 2)  # the order of the three moves

_HEAD, _TITLE = 7, 3
"""Fields before the titles, and of each, see `shop_tokens.observation_fields`."""
_SAME, _WITHIN = 4, 1
"""What the fields of a title say of a kind that is asked for, and of such a price."""
_OFFERED = 3


@dataclass(frozen=True)
class ShopRules:
    """A `jerp.envs.base.RuleLanguage` of shops of one size."""

    size: ShopSize

    @property
    def situations(self) -> tuple[str, ...]:
        """What a step can look like."""
        return _SITUATIONS

    @property
    def moves(self) -> tuple[str, ...]:
        """What an action can do."""
        return _MOVES

    def situation(self, state: ShopState, params: ShopParams) -> Array:
        """`[]` int32, see `situations`; a function of the fields that are seen."""
        fields = observation_fields(self.size, state, params)
        rest = _HEAD + _TITLE * self.size.items_a_page
        titles = fields[_HEAD:rest].reshape(-1, _TITLE)
        page = fields[4] - 1
        listed = self._of_results(fields[:_HEAD], titles)
        here = jnp.where(page == Page.SEARCH, _SEARCH, listed)
        opened = _of_an_item(fields[:_HEAD], fields[rest:])
        return jnp.where(page >= Page.ITEM, opened, here).astype(jnp.int32)

    def move(self, action: Array, situation: Array, params: ShopParams) -> Array:
        """`[]` int32, see `moves`; where a result fits, the situation says which."""
        several = lax.population_count(params.goal.attributes) > 1
        move = jnp.where(several, _BY_ONE, _BY_ALL)
        move = jnp.where(action == Query.CATEGORY, _BY_KIND, move)
        move = jnp.where(action == Query.ATTRIBUTES, _BY_ATTRIBUTES, move)
        move = jnp.where(action == Query.CATEGORY_ATTRIBUTES, _BY_ALL, move)
        move = jnp.where(action >= NUM_QUERIES, _TURN + action - BACK, move)
        fits = action - OPEN == situation - _FITS
        opens = jnp.where(fits, _OPEN_FITTING, _OPEN_OTHER)
        move = jnp.where(action >= OPEN, opens, move)
        start = self.size.first_option
        for i, values in enumerate((SIZES, COLOURS)):
            asked = action - start == params.goal.options[i] - 1
            choose = jnp.where(asked, _CHOOSE + 2 * i, _CHOOSE + 2 * i + 1)
            move = jnp.where(action >= start, choose, move)
            start += len(values)
        return jnp.where(action == self.size.buy, _BUY, move).astype(jnp.int32)

    def _of_results(self, head: Array, titles: Array) -> Array:
        """Which result fits first, or whether to look for one elsewhere."""
        number, query, turned = head[1], head[5] - 1, head[6] - 1
        fits = jnp.all(titles == _fitting(number)[None], axis=1)
        single = (number == 1) & (query == Query.CATEGORY_FIRST)
        searched = single | (query == Query.CATEGORY_ATTRIBUTES)
        none = jnp.where(searched, _NONE, _NONE_OTHER)
        none = jnp.where(turned == self.size.num_pages - 1, _NONE_LAST, none)
        return jnp.where(jnp.any(fits), _FITS + jnp.argmax(fits), none)


def shop_type(params: ShopParams) -> Array:
    """Which of `SHOP_TYPES` requests are of.

    Args:
      params: leaves `[...]`.

    Returns:
      `[...]` int32: 0 if any size and colour will do, 1 if a size is asked for, 2 if a
      colour, 3 if both.

    Example:
      >>> from jerp.envs.shop_state import Goal
      >>> goal = Goal(jnp.int32(0), jnp.int32(6), jnp.array([0, 3]), jnp.int32(40))
      >>> SHOP_TYPES[shop_type(ShopParams(goal, shelf=None))]
      'a colour'
    """
    asked = params.goal.options > 0
    return (asked[..., 0] + 2 * asked[..., 1]).astype(jnp.int32)


def _fitting(number: Array) -> Array:
    """The fields `[3]` of a title that fits, if so many attributes are asked for."""
    same, within = jnp.full_like(number, _SAME), jnp.full_like(number, _WITHIN)
    return jnp.stack([same, 1 + number, within])


def _of_an_item(head: Array, item: Array) -> Array:
    """How what is open falls short, or how many choices are made."""
    asked, title = head[2:4], item[:_TITLE]
    offers, chosen = item[_TITLE : _TITLE + 2], item[_TITLE + 2 :]
    right = (asked > 0) & (chosen == asked)
    wrong = (asked > 0) & (chosen > 0) & ~right
    here = jnp.where(jnp.any(wrong), _WRONG, _CHOSEN + jnp.sum(right))
    lacks = (asked > 0) & (offers != _OFFERED)
    here = jnp.where(jnp.any(lacks), _LACKS, here)
    fits = title == _fitting(head[1])
    here = jnp.where(fits[2], here, _PRICE)
    here = jnp.where(fits[1], here, _ATTRIBUTE)
    return jnp.where(fits[0], here, _KIND)
