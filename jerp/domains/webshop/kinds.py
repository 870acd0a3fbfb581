"""What makes a kind of thing in the generated catalogue, and which options it has."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AXES", "Department", "Kind"]


@dataclass(frozen=True)
class Kind:
    """A kind of thing.

    Attributes:
      query: its name.
      low, high: between which its prices lie, in dollars.
      use: what it is for.
      attributes: that only this kind has, separated by commas.
      axes: names of its options, separated by spaces; see `AXES`.
    """

    query: str
    low: float
    high: float
    use: str
    attributes: str
    axes: str


@dataclass(frozen=True)
class Department:
    """Kinds of things that are sold together.

    Attributes:
      name: in lower case.
      shelf: the path to its kinds.
      attributes: that any of its things may have, separated by commas.
      kinds: of things.
    """

    name: str
    shelf: str
    attributes: str
    kinds: tuple[Kind, ...]


AXES = {
    "color": "black, white, navy, olive, red, yellow, grey, teal, purple, orange",
    "size": "small, medium, large, one for children, one for giants",
    "capacity": "half a litre, one litre, three litres, five litres, ten litres",
    "pack": "single, pair, set of four, set of six, set of ten",
    "length": "30 cm, 60 cm, 1 m, 2 m, 5 m, 8 m",
    "material": "cotton, linen, wool, bamboo, polyester, felt",
    "shoe size": "36, 37, 38, 39, 40, 41, 42, 43, 44",
    "plug": "type c, type f, type g, type i",
    "firmness": "soft, middling, hard",
    "pattern": "plain, striped, dotted, checked, with birds, with leaves",
}
