"""What the tables of the multi-tool domain are about, and how they are asked."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["THEMES", "Theme"]


class Theme(NamedTuple):
    """What a table is about.

    Attributes:
      items: names of rows.
      crate, part, extra: what a container, its parts and their packing are called.
      units: of the table and of the question.
      step: sizes are multiples of it, so that they are short decimals in both units.
      whole, crates, pair: questions by form, of amounts `{a}`, `{b}` and items `{x}`,
        `{y}`.
    """

    items: tuple[str, ...]
    crate: str
    part: str
    extra: str
    units: tuple[str, str]
    step: int
    whole: str
    crates: str
    pair: str


THEMES = (
    Theme(
        (
            "brass hinges",
            "oak pegs",
            "tin bolts",
            "iron hooks",
            "steel rings",
            "lead weights",
            "copper rods",
            "zinc plates",
        ),
        "crate",
        "piece",
        "wrapper",
        ("g", "kg"),
        10,
        "What do {a} pieces of {x} weigh in kg, each with its wrapper?",
        "What do the pieces in {a} crates of {x} weigh in kg?",
        "What do {a} pieces of {x} and {b} pieces of {y} weigh together in kg?",
    ),
    Theme(
        (
            "red ribbon",
            "silk cord",
            "hemp rope",
            "flat lace",
            "blue braid",
            "wool yarn",
            "gold thread",
            "linen tape",
        ),
        "box",
        "roll",
        "loose end",
        ("cm", "m"),
        5,
        "How many m are {a} rolls of {x}, each with its loose end?",
        "How many m are the rolls in {a} boxes of {x}?",
        "How many m are {a} rolls of {x} and {b} rolls of {y} together?",
    ),
    Theme(
        (
            "pear juice",
            "plum syrup",
            "rose water",
            "mint tonic",
            "malt vinegar",
            "nut oil",
            "apple must",
            "elder cordial",
        ),
        "case",
        "bottle",
        "free sample",
        ("ml", "l"),
        10,
        "How many l are {a} bottles of {x}, each with its free sample?",
        "How many l are the bottles in {a} cases of {x}?",
        "How many l are {a} bottles of {x} and {b} bottles of {y} together?",
    ),
    Theme(
        (
            "glass painting",
            "wood carving",
            "book binding",
            "basket weaving",
            "stone cutting",
            "paper folding",
            "candle making",
            "seal engraving",
        ),
        "course",
        "lesson",
        "break",
        ("min", "h"),
        3,
        "How many h do {a} lessons of {x} take, each with its break?",
        "How many h do the lessons of {a} courses of {x} take?",
        "How many h do {a} lessons of {x} and {b} lessons of {y} take together?",
    ),
)
