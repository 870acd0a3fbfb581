"""A shop in words, on the host.

Reads one row of the arrays that the world steps; nothing here is traced. Nothing is
said that the page does not show.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from jerp.envs.shop_state import ShopParams, ShopState
from jerp.envs.shop_things import (
    ATTRIBUTES,
    BACK,
    CATEGORIES,
    COLOURS,
    NEXT,
    NUM_QUERIES,
    OPEN,
    OPTIONS,
    PREVIOUS,
    SIZES,
    Page,
    Query,
)

__all__ = ["ShopText", "describe", "describe_action", "describe_task"]

ORDINALS = ("first", "second", "third", "fourth", "fifth")
OPTION_NAMES = ("size", "colour")


class ShopText(NamedTuple):
    """A `jerp.envs.base.WorldText` of shops."""

    def task(self, state: ShopState, params: ShopParams) -> str:
        """See `describe_task`."""
        del state
        return describe_task(params)

    def observation(self, state: ShopState, params: ShopParams) -> str:
        """See `describe`."""
        return describe(state, params)

    def action(self, action: int, params: ShopParams) -> str:
        """See `describe_action`."""
        return describe_action(action, params)


def describe_task(params: ShopParams) -> str:
    """The instruction of one task.

    Args:
      params: leaves of one task, without a leading axis.

    Returns:
      One or two sentences.

    Example:
      >>> from jerp.envs.shop_state import Goal
      >>> goal = Goal(np.int32(0), np.int32(6), np.asarray([0, 3]), np.int32(40))
      >>> describe_task(ShopParams(goal, shelf=None))
      'Buy a lightweight, waterproof kettle in colour red, for $40 at most.'
    """
    goal = params.goal
    words = ", ".join(_names(goal.attributes, ATTRIBUTES))
    wanted = [
        f"{name} {values[option - 1]}"
        for name, values, option in zip(
            OPTION_NAMES, OPTIONS, np.asarray(goal.options), strict=True
        )
        if option
    ]
    chosen = f" in {' and '.join(wanted)}" if wanted else ""
    what = f"{words} {CATEGORIES[int(goal.category)]}{chosen}"
    return f"Buy {_article(what)} {what}, for ${int(goal.limit)} at most."


def describe(state: ShopState, params: ShopParams) -> str:
    """The page that one looks at.

    Args:
      state: leaves of one episode.
      params: leaves of its task.

    Returns:
      One line, or one an item.
    """
    page, at = int(state.page), (int(state.query), int(state.turned))
    if page == Page.SEARCH:
        return "You are at the search page of the shop."
    if page == Page.RESULTS:
        number, shown = params.shelf.price.shape[1:]
        lines = [f"Results, page {at[1] + 1} of {number}:"]
        for slot in range(shown):
            lines.append(f"{slot + 1}. {_title(params, (*at, slot))}")
        return "\n".join(lines)
    here = (*at, int(state.slot))
    if page == Page.BOUGHT:
        return f"You bought: {_title(params, here)}{_choice(state)}."
    lines = [f"{_title(params, here)}."]
    offers = np.asarray(params.shelf.offers)[here]
    for name, values, bits in zip(OPTION_NAMES, OPTIONS, offers, strict=True):
        if bits:
            lines.append(f"To choose by {name}: {', '.join(_names(bits, values))}.")
    if np.any(np.asarray(state.chosen)):
        lines.append(f"Chosen{_choice(state)}.")
    return "\n".join(lines)


def describe_action(action: int, params: ShopParams) -> str:
    """What an action does, in a few words.

    Args:
      action: in [0, A).
      params: leaves of one task, without a leading axis.

    Returns:
      An imperative, without a full stop.

    Example:
      >>> from jerp.envs.shop_state import Goal
      >>> goal = Goal(np.int32(0), np.int32(6), np.asarray([0, 3]), np.int32(40))
      >>> [describe_action(action, ShopParams(goal, shelf=None)) for action in (1, 7)]
      ['search for lightweight kettle', 'go to the previous page']
    """
    action = int(action)
    if action < NUM_QUERIES:
        return f"search for {_query(action, params)}"
    turns = {
        BACK: "go back to the search page",
        PREVIOUS: "go to the previous page",
        NEXT: "go to the next page",
    }
    if action in turns:
        return turns[action]
    shown = params.shelf.price.shape[2]
    if action < OPEN + shown:
        return f"open the {ORDINALS[action - OPEN]} result"
    value = action - OPEN - shown
    if value < len(SIZES):
        return f"choose size {SIZES[value]}"
    value -= len(SIZES)
    return f"choose colour {COLOURS[value]}" if value < len(COLOURS) else "buy it"


def _query(query: int, params: ShopParams) -> str:
    category = CATEGORIES[int(params.goal.category)]
    names = _names(params.goal.attributes, ATTRIBUTES)
    if query == Query.ATTRIBUTES:
        return f"anything {' '.join(names)}"
    if query == Query.CATEGORY_ATTRIBUTES:
        return f"{category}, {' '.join(names)}"
    if query == Query.CATEGORY:
        return category
    # A query that the instruction has no words for cannot be made.
    return " ".join([*names[query - 1 : query], category])


def _title(params: ShopParams, at: tuple[int, int, int]) -> str:
    shelf = params.shelf
    words = " ".join(_names(np.asarray(shelf.attributes)[at], ATTRIBUTES))
    category = CATEGORIES[int(np.asarray(shelf.category)[at])]
    return f"{words} {category}, ${int(np.asarray(shelf.price)[at])}"


def _choice(state: ShopState) -> str:
    chosen = zip(OPTION_NAMES, OPTIONS, np.asarray(state.chosen), strict=True)
    return "".join(f", {name} {values[v - 1]}" for name, values, v in chosen if v)


def _names(bits: Any, names: Sequence[str]) -> list[str]:
    return [name for i, name in enumerate(names) if int(bits) >> i & 1]


def _article(words: str) -> str:
    return "an" if words[0] in "aeiou" else "a"
