"""Items, instructions and states of a shop.

Sets of attributes and of option values are bits of one integer. An option that is not
asked for, or not chosen yet, is 0; its values count from 1.
"""

from __future__ import annotations

from flax import struct

from jerp.typing import Array

__all__ = ["Goal", "Items", "ShopParams", "ShopState"]


class Items(struct.PyTreeNode):
    """Goods: a catalogue with leaves `[I]`, or what queries show of it `[Q, P, K]`.

    Attributes:
      number: int32, position in the catalogue.
      category: int32 in `CATEGORIES`.
      attributes: int32, bits in `ATTRIBUTES`; two to four.
      offers: `[..., 2]` int32, bits in `SIZES` and in `COLOURS`; 0 where an item comes
        in one size, or colour.
      price: int32, dollars.
    """

    number: Array
    category: Array
    attributes: Array
    offers: Array
    price: Array


class Goal(struct.PyTreeNode):
    """An instruction; leaves `[...]`.

    Attributes:
      category: int32 in `CATEGORIES`.
      attributes: int32, bits in `ATTRIBUTES`; one to three.
      options: `[..., 2]` int32, 1 + the size and 1 + the colour, 0 for any.
      limit: int32, the price in dollars not to be exceeded.
    """

    category: Array
    attributes: Array
    options: Array
    limit: Array


class ShopParams(struct.PyTreeNode):
    """One task; with a leading axis `[N]`, `N` tasks.

    Attributes:
      goal: the instruction.
      shelf: leaves `[Q, P, K]`, the items that each query shows on each page. The rest
        of the catalogue cannot be come by, and is left out.
    """

    goal: Goal
    shelf: Items


class ShopState(struct.PyTreeNode):
    """One episode in progress.

    Attributes:
      step: `[]` int32 counter.
      page: `[]` int32, a `Page`.
      query: `[]` int32, a `Query`; 0 on the search page.
      turned: `[]` int32, pages of results turned; 0 on the search page.
      slot: `[]` int32, position of the item on its page; 0 unless one was opened.
      chosen: `[2]` int32, 1 + the size and 1 + the colour chosen of it; 0 for none.
    """

    step: Array
    page: Array
    query: Array
    turned: Array
    slot: Array
    chosen: Array
