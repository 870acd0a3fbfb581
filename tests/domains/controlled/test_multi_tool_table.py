"""SQLite's SELECT and the unit converter."""

from fractions import Fraction

import pytest

from jerp.domains.controlled.multi_tool_table import UNITS, convert, select
from jerp.errors import ConfigError, UnknownNameError

COLUMNS = ("item", "pieces", "piece_g")
ROWS = (("pegs", 12, 30), ("hooks", 20, 45), ("bolts", 31, 8))


def test_select_gives_the_rows_of_the_items_in_the_tables_order():
    assert select(COLUMNS, ROWS, ["bolts", "pegs"]) == [ROWS[0], ROWS[2]]
    assert select(COLUMNS, ROWS, ["nails"]) == []


def test_an_item_is_a_bound_value_and_never_sql():
    assert select(COLUMNS, ROWS, ["pegs') OR ('1'='1"]) == []


@pytest.mark.parametrize(
    ("value", "source", "target", "expected"),
    [
        (250, "g", "kg", Fraction(1, 4)),
        (2, "m", "cm", 200),
        (45, "min", "h", Fraction(3, 4)),
        (Fraction(3, 2), "l", "ml", 1500),
    ],
)
def test_convert(value, source, target, expected):
    assert convert(Fraction(value), source, target) == expected


def test_converting_there_and_back_changes_nothing():
    for source, (dimension, _) in UNITS.items():
        for target, (other, _) in UNITS.items():
            if dimension == other:
                there = convert(Fraction(7, 3), source, target)
                assert convert(there, target, source) == Fraction(7, 3)


def test_units_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="a unit of mass like g, got m"):
        convert(Fraction(1), "g", "m")
    with pytest.raises(UnknownNameError, match="stone"):
        convert(Fraction(1), "stone", "kg")
