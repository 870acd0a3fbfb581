"""What a shop of WebShop holds: products, goals, prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

__all__ = ["SPLITS", "UNLIMITED", "Catalogue", "Goal", "Product", "price_limit"]

SPLITS = ("train", "eval", "test")

UNLIMITED = 1_000_000.0
"""The limit of a goal whose price no instruction limits."""

NO_PRICE = 100.0
"""What a product without a price is sold for."""

_STEP, _STEPS = 10.0, 99
_STEPS_ABOVE = 4


@dataclass(frozen=True, slots=True)
class Product:
    """What is sold.

    Attributes:
      asin: its key, at most ten characters.
      category: of a few, such as "garden".
      query: words by which things of its type are found; in lower case.
      product_category: the path to it, its parts joined by "›".
      title, description: in words.
      features: one line each.
      attributes: what it is said to be; goals name some of them.
      options: values of each, in lower case; some may share a value.
      pricing: nothing, a price, or the lowest and the highest.
    """

    asin: str
    category: str
    query: str
    product_category: str
    title: str
    description: str
    features: tuple[str, ...]
    attributes: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    pricing: tuple[float, ...] = ()

    @property
    def tag(self) -> str:
        """Its price, as a page shows it."""
        return " to ".join(f"${price}" for price in self.pricing or (NO_PRICE,))

    def price(self) -> float:
        """What it is sold for: a draw, always the same, where a range is given."""
        if len(self.pricing) < 2:
            return self.pricing[0] if self.pricing else NO_PRICE
        return Random(f"webshop/price/{self.asin}").uniform(*self.pricing)


@dataclass(frozen=True, slots=True)
class Goal:
    """What is wanted, and of which product it was written.

    Attributes:
      asin: of that product.
      category, query, product_category, title: of that product.
      instruction: in words; what whoever shops is told.
      attributes: at least one.
      options: values, or pairs of an option's name and its value.
      limit: of the price, in dollars.
    """

    asin: str
    category: str
    query: str
    product_category: str
    title: str
    instruction: str
    attributes: tuple[str, ...]
    options: tuple[str | tuple[str, str], ...]
    limit: float

    @classmethod
    def of(
        cls,
        product: Product,
        *,
        instruction: str,
        attributes: tuple[str, ...],
        options: tuple[str | tuple[str, str], ...],
        limit: float,
    ) -> Goal:
        """One that was written of a product; its limit is said in the instruction."""
        said = (
            "" if limit == UNLIMITED else f", and price lower than {limit:.2f} dollars"
        )
        return cls(
            asin=product.asin,
            category=product.category,
            query=product.query,
            product_category=product.product_category,
            title=product.title,
            instruction=instruction + said,
            attributes=attributes,
            options=options,
            limit=limit,
        )


@dataclass(frozen=True)
class Catalogue:
    """All of a shop.

    Attributes:
      version: of the files, or of what made it.
      products: by key, in their order.
      goals: in their order; a split takes a part of them.
      splits: which part, by name.
    """

    version: str
    products: Mapping[str, Product]
    goals: tuple[Goal, ...]
    splits: Mapping[str, range]


def price_limit(price: float, random: Random) -> float:
    """A limit for a goal whose product has a price, by the official rule.

    Of the four multiples of 10 dollars below 1,000 that come after the price, the
    larger of two that are drawn; `UNLIMITED` where there are not two.

    Args:
      price: of the product.
      random: draws.

    Example:
      >>> price_limit(34.0, Random(0)) in (50.0, 60.0, 70.0)
      True
      >>> price_limit(985.0, Random(0)) == UNLIMITED
      True
    """
    multiples = [_STEP * i for i in range(1, _STEPS + 1)]
    above = [limit for limit in multiples if limit > price][:_STEPS_ABOVE]
    return max(random.sample(above, 2)) if len(above) > 1 else UNLIMITED
