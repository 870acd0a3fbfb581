"""What a shop sells, and how its pages are cut: static names and sizes.

Everything here is known before tracing. A category is a kind of goods in a department;
departments stand in a ring, four kinds in each. Options are what is chosen of an item
before it is bought: a size, a colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from jerp.errors import InputError
from jerp.ops.checks import check_count

__all__ = [
    "ATTRIBUTES",
    "BACK",
    "CATEGORIES",
    "COLOURS",
    "KINDS_A_DEPARTMENT",
    "MAX_WANTED",
    "NEXT",
    "NUM_PRICE_STEPS",
    "NUM_QUERIES",
    "OPEN",
    "OPTIONS",
    "PREVIOUS",
    "PRICE_STEP",
    "SIZES",
    "Page",
    "Query",
    "ShopSize",
]

DEPARTMENTS = (
    ("kettle", "pan", "mug", "knife"),
    ("lamp", "chair", "rug", "curtain"),
    ("keyboard", "headphones", "charger", "webcam"),
    ("tent", "backpack", "torch", "cooler"),
    ("jacket", "shirt", "boots", "scarf"),
    ("soap", "shampoo", "lotion", "perfume"),
)
KINDS_A_DEPARTMENT = 4
CATEGORIES = tuple(name for department in DEPARTMENTS for name in department)
ATTRIBUTES = (
    *("durable", "lightweight", "waterproof", "organic", "handmade", "foldable"),
    *("quiet", "compact", "washable", "recycled", "unscented", "insulated"),
    *("wireless", "padded", "rechargeable", "adjustable"),
)
SIZES = ("small", "medium", "large", "wide", "giant")
COLOURS = ("black", "white", "red", "blue", "green", "grey")
OPTIONS = (SIZES, COLOURS)

MAX_WANTED = 3
"""Attributes that an instruction names at most; at least one."""
PRICE_STEP = 10
NUM_PRICE_STEPS = 15
"""Price limits are multiples of ten dollars, up to 150."""


class Page(IntEnum):
    """What the policy looks at; `BOUGHT` ends the episode."""

    SEARCH = 0
    RESULTS = 1
    ITEM = 2
    BOUGHT = 3


class Query(IntEnum):
    """What is searched for, of what the instruction names; the first six actions."""

    CATEGORY = 0
    CATEGORY_FIRST = 1
    CATEGORY_SECOND = 2
    CATEGORY_THIRD = 3
    ATTRIBUTES = 4
    CATEGORY_ATTRIBUTES = 5


NUM_QUERIES = len(Query)
BACK, PREVIOUS, NEXT, OPEN = range(NUM_QUERIES, NUM_QUERIES + 4)
"""Actions after the queries; opening the first item shown is the first of several."""


@dataclass(frozen=True)
class ShopSize:
    """How much there is, and how much of it is shown.

    Attributes:
      num_items: of the catalogue, at least one for each that can be shown.
      items_a_page: from 1 to 5 results.
      num_pages: from 1 to 5 pages of results that can be turned to.

    Raises:
      InputError: a number is out of range.
    """

    num_items: int = 1200
    items_a_page: int = 5
    num_pages: int = 3

    def __post_init__(self) -> None:
        for name in ("items_a_page", "num_pages"):
            check_count(name, getattr(self, name))
            if getattr(self, name) > 5:
                raise InputError(f"{name}: expected 1 to 5, got {getattr(self, name)}")
        check_count("num_items", self.num_items, least=self.num_results)

    @property
    def num_results(self) -> int:
        """Items that one query shows on all its pages."""
        return self.items_a_page * self.num_pages

    @property
    def first_option(self) -> int:
        """The action that chooses the first size; those of colours follow."""
        return OPEN + self.items_a_page

    @property
    def buy(self) -> int:
        """The last action."""
        return self.first_option + len(SIZES) + len(COLOURS)
