"""What an agent of MiniGrid sees, in words.

It sees a square of cells, itself in the middle of the nearest row, looking away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Codes", "describe"]


@dataclass(frozen=True)
class Codes:
    """What the numbers of a cell mean.

    Attributes:
      things: by the first number.
      colours: by the second.
      states: of doors, by the third.
    """

    things: Mapping[int, str]
    colours: Mapping[int, str]
    states: Mapping[int, str]


def describe(image: Iterable[Iterable[Iterable[int]]], codes: Codes) -> str:
    """The view in a few sentences.

    Args:
      image: `[side, side, 3]` integers: from left to right, from far to near.
      codes: of the package.

    Example:
      >>> codes = Codes({1: "empty", 2: "wall", 6: "ball"}, {0: "red"}, {})
      >>> free, wall, ball = [1, 0, 0], [2, 0, 0], [6, 0, 0]
      >>> print(describe([[wall] * 3, [ball, free, free], [wall] * 3], codes))
      You carry nothing. Ahead: 1 free step, then a red ball. Left: at once a wall. \
Right: at once a wall. In view: a red ball (2 ahead).
    """
    cells = [[[int(number) for number in cell] for cell in column] for column in image]
    side, middle = len(cells), len(cells) // 2
    here = _name(cells[middle][side - 1], codes)
    carried = "nothing" if here == "empty" else _with_article(here)
    rays = {
        "Ahead": [cells[middle][y] for y in reversed(range(side - 1))],
        "Left": [cells[x][side - 1] for x in reversed(range(middle))],
        "Right": [cells[x][side - 1] for x in range(middle + 1, side)],
    }
    told = [f"You carry {carried}."]
    told += [f"{where}: {_ray(cells, codes)}." for where, cells in rays.items()]
    seen = [
        f"{_with_article(name)} ({_where(x - middle, side - 1 - y)})"
        for y in reversed(range(side))
        for x in range(side)
        if (x, y) != (middle, side - 1)
        and (name := _name(cells[x][y], codes)) not in ("empty", "unseen", "wall")
    ]
    return " ".join([*told, f"In view: {', '.join(seen) or 'nothing else'}."])


def _name(cell: Sequence[int], codes: Codes) -> str:
    thing, colour, state = cell
    name = codes.things[thing]
    if name == "floor":
        return "empty"
    if name in ("unseen", "empty", "wall", "lava"):
        return name
    coloured = f"{codes.colours[colour]} {name}"
    return f"{codes.states[state]} {coloured}" if name == "door" else coloured


def _with_article(name: str) -> str:
    if name == "lava":
        return name
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _ray(cells: Sequence[Sequence[int]], codes: Codes) -> str:
    """How far one could go, and what is then."""
    names = [_name(cell, codes) for cell in cells]
    free = next((i for i, name in enumerate(names) if name != "empty"), len(names))
    steps = f"{free} free step{'' if free == 1 else 's'}, then" if free else "at once"
    out_of_sight = free == len(names) or names[free] == "unseen"
    return f"{steps} {'out of sight' if out_of_sight else _with_article(names[free])}"


def _where(right: int, ahead: int) -> str:
    parts = [f"{ahead} ahead"] if ahead else []
    if right:
        parts.append(f"{abs(right)} to the {'right' if right > 0 else 'left'}")
    return ", ".join(parts)
