"""The pages of the shop, as lists of what they show and what can be clicked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jerp.domains.webshop.products import Product

__all__ = [
    "BACK",
    "BUY",
    "NEXT",
    "PER_PAGE",
    "PREVIOUS",
    "SUB_PAGES",
    "Page",
    "item_page",
    "results_page",
    "start_page",
    "sub_page",
]

PER_PAGE = 10
"""Products on a page of results."""

BACK, PREVIOUS, NEXT, BUY = "Back to Search", "< Prev", "Next >", "Buy Now"
SUB_PAGES = ("Description", "Features", "Reviews")
_SEPARATOR = " [SEP] "


@dataclass(frozen=True)
class Page:
    """What is seen.

    Attributes:
      texts: in their order, labels included.
      labels: of what can be clicked.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]

    def __str__(self) -> str:
        return _SEPARATOR.join(text for text in self.texts if text)


def start_page(instruction: str) -> Page:
    """Where one can only search."""
    return Page(("WebShop", *_told(instruction), "Search"), ())


def results_page(instruction: str, found: Sequence[Product], number: int) -> Page:
    """Ten of the products that were found; the pages after the last are empty.

    Args:
      instruction: what is wanted.
      found: all products.
      number: of the page, from 1 on.
    """
    shown = found[(number - 1) * PER_PAGE : number * PER_PAGE]
    turn = (PREVIOUS, NEXT) if number > 1 else (NEXT,)
    listed = [text for p in shown for text in (p.asin, p.title, p.tag)]
    return Page(
        (
            *(*_told(instruction), BACK),
            f"Page {number}, {len(found)} results in all",
            *(*turn, *listed),
        ),
        (BACK, *turn, *(product.asin for product in shown)),
    )


def item_page(instruction: str, product: Product, chosen: Mapping[str, str]) -> Page:
    """A product with its options; those that were chosen are named.

    Args:
      instruction: what is wanted.
      product: that is looked at.
      chosen: values by option.
    """
    options = []
    for name, values in product.options.items():
        mark = f" (chosen: {chosen[name]})" if name in chosen else ""
        options += [f"{name}{mark}", *values]
    values = (value for own in product.options.values() for value in own)
    buttons = (*SUB_PAGES, BUY)
    return Page(
        (
            *(*_told(instruction), BACK, PREVIOUS, *options),
            *(product.title, f"Price: {product.tag}", *buttons),
        ),
        (BACK, PREVIOUS, *buttons, *values),
    )


def sub_page(instruction: str, product: Product, name: str) -> Page:
    """More of a product; the official files have no reviews.

    Args:
      instruction: what is wanted.
      product: that is looked at.
      name: one of `SUB_PAGES`.
    """
    texts = {
        "Description": (product.description,),
        "Features": product.features,
        "Reviews": (),
    }[name]
    return Page(
        (*_told(instruction), BACK, PREVIOUS, *(texts or (f"No {name.lower()}",))),
        (BACK, PREVIOUS),
    )


def _told(instruction: str) -> tuple[str, str]:
    return "Instruction:", instruction
