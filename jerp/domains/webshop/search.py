"""The shop's search: BM25 over titles, descriptions, first features and options."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from jerp.domains.webshop.products import Product
from jerp.domains.webshop.words import CLOSED

__all__ = ["MOST", "Search", "terms"]

MOST = 50
"""Products that a search finds."""


class Search:
    """An index of products, built once; equal scores are ordered as the products are.

    Deviations: the official search is Lucene's, with the same form of BM25 and its
    k1 = 0.9 and b = 0.4, and with Porter's stems and another list of words left out.

    Args:
      products: by key.
    """

    def __init__(self, products: Mapping[str, Product]):
        import bm25s  # slow to import, and naming a task needs no search

        self._asins = tuple(products)
        self._index = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
        self._index.index(
            [terms(_text(p)) for p in products.values()], show_progress=False
        )

    def top(self, words: str, count: int = MOST) -> tuple[str, ...]:
        """Keys of the best products for some words, best first.

        Args:
          words: as typed; those that no product has count nothing.
          count: at most so many.
        """
        wanted = terms(words)
        if not wanted:
            return ()
        # To four decimals, so that the order does not hang on the last bit of a float.
        scores = np.round(self._index.get_scores(wanted), 4)
        some = np.flatnonzero(scores > 0)
        if len(some) > count:
            least = np.partition(scores[some], -count)[-count]
            some = some[scores[some] >= least]
        best = some[np.argsort(-scores[some], kind="stable")][:count]
        return tuple(self._asins[i] for i in best.tolist())


def terms(text: str) -> list[str]:
    """The words of a text that carry content, in lower case and the singular.

    Example:
      >>> terms("Two boxes of Berries, and 3 glasses")
      ['boxe', 'berry', '3', 'glasse']
    """
    words = re.findall(r"\w+", text.lower())
    return [_singular(word) for word in words if word not in CLOSED]


def _singular(word: str) -> str:
    """Without the ending of a plural: what is left need be no word."""
    if len(word) < 3:
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("s") and not word.endswith(("us", "ss", "aes", "ees", "oes")):
        return word[:-1]
    return word


def _text(product: Product) -> str:
    options = (f"{name}: {', '.join(own)}" for name, own in product.options.items())
    return " ".join(
        (product.title, product.description, *product.features[:1], *options)
    )
