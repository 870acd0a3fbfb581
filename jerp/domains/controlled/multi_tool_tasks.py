"""Tasks of the multi-tool domain: a small table and a question over one or two rows.

The three difficulties are three forms of arithmetic, over sizes that the table has in
one unit and the question asks for in another:

    0  whole  a * (size + extra)           of one item, packing included
    1  crate  (a * parts * size)           of one item, by the crate
    2  pair   (a * size + b * other size)  of two items

Column `coins` is asked for by no question. All numbers of a question's rows differ in
either unit, so that no other choice of them gives the same arithmetic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any, NamedTuple

from jerp.domains.controlled.multi_tool_calculator import calculate, decimal
from jerp.domains.controlled.multi_tool_table import convert
from jerp.domains.controlled.multi_tool_themes import THEMES, Theme
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["arithmetic", "begin", "generate", "line", "operands"]

NUM_ROWS = 6
TRIES = 200
"""Tables drawn for one task until one is fair; most are."""


class Form(NamedTuple):
    """A form of arithmetic, of numbers with the words for what they count.

    Attributes:
      begin: how the harness begins the expression.
      rest: how it goes on.
    """

    begin: str
    rest: str


FORMS = {
    "whole": Form("{0} {part}s * (", "{1} {unit} + {2} {unit})"),
    "crate": Form("({0} {crates} *", " {1} {part}s * {2} {unit})"),
    "pair": Form("({0} {part}s *", " {1} {unit} + {2} {part}s * {3} {unit})"),
}


def generate(seed: int, num_tasks: int) -> tuple[Task, ...]:
    """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
    if num_tasks < 1:
        raise ConfigError(f"num_tasks: expected >= 1, got {num_tasks}")
    return tuple(_task(seed, turn) for turn in range(num_tasks))


def line(payload: Mapping[str, Any], row: Sequence[Any], *, converted: bool) -> str:
    """One row in words, its sizes in the unit of the table or of the question."""
    item, parts, size, extra, coins = row
    crate, part, packing = payload["words"]
    unit = payload["units"][converted]
    return (
        f"{item}: {parts} {part}s in a {crate}, {_size(payload, size, converted)} "
        f"{unit} a {part}, {_size(payload, extra, converted)} {unit} a {packing}, "
        f"{coins} coins a {part}"
    )


def operands(
    payload: Mapping[str, Any], rows: Sequence[Sequence[Any]], *, converted: bool
) -> tuple[str, ...]:
    """The amounts and cells that the question names, in the order of its arithmetic."""
    amounts = [str(amount) for amount in payload["amounts"]]
    sizes = [_size(payload, row[2], converted) for row in rows]
    match payload["form"]:
        case "whole":
            return amounts[0], sizes[0], _size(payload, rows[0][3], converted)
        case "crate":
            return amounts[0], str(rows[0][1]), sizes[0]
        case _:
            return amounts[0], sizes[0], amounts[1], sizes[1]


def begin(payload: Mapping[str, Any]) -> str:
    """How the harness begins the expression of a task."""
    form = FORMS[payload["form"]]
    return form.begin.format(payload["amounts"][0], **_names(payload))


def write(payload: Mapping[str, Any], numbers: Sequence[str]) -> str:
    """The whole expression of a task's form over `numbers`."""
    form = FORMS[payload["form"]]
    return (form.begin + form.rest).format(*numbers, **_names(payload))


def arithmetic(payload: Mapping[str, Any], text: str) -> str:
    """The arithmetic that `text` leads with, without the words for what is counted.

    Args:
      payload: of a task; gives the words.
      text: an expression and perhaps more.

    Returns:
      Numbers and signs up to the first other word or sign.
    """
    names = _names(payload)
    counted = (names["part"] + "s", names["part"], names["crates"], names["unit"])
    words = "|".join((*counted, payload["units"][0]))
    bare = re.sub(rf"\b(?:{words})\b", "", text)
    leading = re.match(r"[-+*/()0-9. ]*", bare)
    spaced = " ".join(leading.group().split()) if leading else ""
    return spaced.replace("( ", "(").replace(" )", ")").rstrip(" .")


def _task(seed: int, turn: int) -> Task:
    rng = Random(f"multi-tool/{seed}/{turn}")
    form = tuple(FORMS)[turn % len(FORMS)]
    theme = rng.choice(THEMES)
    for _ in range(TRIES):
        payload = _payload(rng, theme, form)
        if _fair(payload):
            break
    else:
        raise RuntimeError(f"no fair table in {TRIES} for task {turn} of seed {seed}")
    payload["hidden"] = _hidden(payload)
    return Task(
        key=f"multi-tool/{seed}/{turn:04d}",
        domain="multi-tool",
        difficulty=turn % len(FORMS),
        prompt=_question(theme, form, payload["amounts"], payload["items"]),
        payload=payload,
    )


def _payload(rng: Random, theme: Theme, form: str) -> dict[str, Any]:
    rows = [
        [
            item,
            rng.randrange(12, 49),
            theme.step * rng.randrange(8, 90),
            theme.step * rng.randrange(1, 8),
            rng.randrange(51, 99),
        ]
        for item in rng.sample(theme.items, NUM_ROWS)
    ]
    count = 2 if form == "pair" else 1
    # Rows asked about and those of the two examples, each in the table's order.
    order = rng.sample(range(NUM_ROWS), 3 * count)
    asked, *shown = (sorted(order[i : i + count]) for i in range(0, len(order), count))
    payload = {
        "columns": [
            "item",
            f"{theme.part}s",
            f"{theme.part}_{theme.units[0]}",
            f"{theme.extra.replace(' ', '_')}_{theme.units[0]}",
            "coins",
        ],
        "rows": rows,
        "units": list(theme.units),
        "words": [theme.crate, theme.part, theme.extra],
        "form": form,
        "amounts": rng.sample(range(2, 10), count),
        "items": [rows[i][0] for i in asked],
    }
    payload["examples"] = [
        _example(rng, theme, payload, [rows[i] for i in places]) for places in shown
    ]
    return payload


def _example(
    rng: Random, theme: Theme, payload: dict[str, Any], rows: list[list[Any]]
) -> dict[str, Any]:
    """A question of the same form over other rows, worked in the asked unit."""
    amounts = rng.sample(range(2, 10), len(rows))
    numbers = operands(dict(payload, amounts=amounts), rows, converted=True)
    return {
        "lines": [line(payload, row, converted=True) for row in rows],
        "question": _question(theme, payload["form"], amounts, [r[0] for r in rows]),
        "expression": write(payload, numbers),
    }


def _question(
    theme: Theme, form: str, amounts: Sequence[int], items: Sequence[str]
) -> str:
    text = {"whole": theme.whole, "crate": theme.crates, "pair": theme.pair}[form]
    return text.format(a=amounts[0], b=amounts[-1], x=items[0], y=items[-1])


def _fair(payload: Mapping[str, Any]) -> bool:
    """All numbers of the rows asked about differ, in either unit."""
    rows = [row for row in payload["rows"] if row[0] in payload["items"]]
    for converted in (False, True):
        cells = [
            Fraction(text)
            for _, parts, size, extra, coins in rows
            for text in (
                str(parts),
                _size(payload, size, converted),
                _size(payload, extra, converted),
                str(coins),
            )
        ]
        numbers = [*payload["amounts"], *cells]
        if len(set(numbers)) < len(numbers) or 1 in numbers:
            return False
    return True


def _hidden(payload: Mapping[str, Any]) -> dict[str, str]:
    rows = [row for row in payload["rows"] if row[0] in payload["items"]]
    whole = write(payload, operands(payload, rows, converted=True))
    expression = arithmetic(payload, whole)
    value = calculate(expression).value
    assert value is not None, expression
    return {"expression": expression, "answer": decimal(value)}


def _names(payload: Mapping[str, Any]) -> dict[str, str]:
    crate, part, _ = payload["words"]
    crates = f"{crate}es" if crate.endswith("x") else f"{crate}s"
    return {"crates": crates, "part": part, "unit": payload["units"][1]}


def _size(payload: Mapping[str, Any], size: int, converted: bool) -> str:
    source, target = payload["units"]
    value = Fraction(size)
    return decimal(convert(value, source, target) if converted else value)
