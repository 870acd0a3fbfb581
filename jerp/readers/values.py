"""What a cell of a file means: a name, a number, an outcome.

CSV cells are text, those of JSONL and Parquet may be numbers and truth values too. Each
function takes a column of one block of rows and refuses the first cell that it cannot
read, with its line.
"""

from __future__ import annotations

import difflib
import math
import re
from typing import Any

import numpy as np

from jerp.errors import InputError
from jerp.readers.rows import Block
from jerp.typing import Outcome

__all__ = ["Interned", "number", "outcome_class"]

OUTCOME_WORDS = {
    **{outcome.name.lower(): int(outcome) for outcome in Outcome},
    "true": int(Outcome.SUCCESS),
    "false": int(Outcome.FAILURE),
}

FLOAT32_LIMITS = tuple(
    map(float, (np.finfo(np.float32).tiny, np.finfo(np.float32).max))
)
"""Between them a number > 0 is neither nothing nor infinite in float32."""

_WHOLE = re.compile(r"(0|-?[1-9][0-9]*)\.0")
"""Whole numbers as pandas writes them in a column that has a gap somewhere."""


class Interned:
    """Names with an index each, in order of first appearance.

    Attributes:
      names: the texts, without the blanks around them; 3.0, number or text, is "3".
    """

    def __init__(self) -> None:
        self.names: list[str] = []
        self._index: dict[str, int] = {}
        # Cells as they stand in the file; no bools, because True equals 1.
        self._seen: dict[str | int, int] = {}

    def ids(self, block: Block, column: str) -> np.ndarray:
        """The index of each cell's name, `[R]` int32.

        Raises:
          InputError: a cell is empty, or neither text nor a number.
        """
        cells = block.columns[column]
        out = np.empty(len(cells), np.int32)
        for i, cell in enumerate(cells):
            plain = type(cell) in (str, int)
            known = self._seen.get(cell) if plain else None
            if known is None:
                name = _name(cell)
                if not name:
                    raise block.refusal(i, column, "a text or a number")
                known = self._index.setdefault(name, len(self.names))
                if known == len(self.names):
                    self.names.append(name)
                if plain:
                    self._seen[cell] = known
            out[i] = known
        return out


def number(
    block: Block, column: str, *, may_lack: np.ndarray | None = None
) -> np.ndarray:
    """A column of numbers >= 0 that float32 can hold, `[R]` float64.

    Args:
      block: the rows.
      column: which of its columns.
      may_lack: `[R]` bool, rows whose cell may be empty, which gives NaN; None for no
        row.

    Raises:
      InputError: a cell is empty and may not be, or is no such number.
    """
    cells = block.columns[column]
    least, most = FLOAT32_LIMITS
    out = np.empty(len(cells))
    for i, cell in enumerate(cells):
        out[i] = _number(cell)
        if out[i] == 0 or least <= out[i] <= most:
            continue
        if may_lack is None or not may_lack[i] or not _is_empty(cell):
            excuse = "" if may_lack is None else " (only infrastructure may lack it)"
            size = ""
            if 0 < out[i] < math.inf:
                size = f", 0 or from {least:.2g} to {most:.2g}; use another unit"
            raise block.refusal(i, column, f"a finite number >= 0{size}{excuse}")
    return out


def outcome_class(block: Block, column: str) -> np.ndarray:
    """A column of outcomes, `[R]` int32 of `jerp.typing.Outcome`.

    Raises:
      InputError: a cell is no outcome; the message offers the nearest.
    """
    cells = block.columns[column]
    out = np.empty(len(cells), np.int32)
    for i, cell in enumerate(cells):
        found = OUTCOME_WORDS.get(cell) if type(cell) is str else None
        if found is None:
            found = _outcome(cell)
        if found is None:
            raise _unknown_outcome(block, i, column)
        out[i] = found
    return out


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _name(cell: Any) -> str:
    """The text of a cell, empty for what names nothing."""
    if isinstance(cell, str):
        text = cell.strip()
        whole = _WHOLE.fullmatch(text)
        return whole[1] if whole else text
    if isinstance(cell, float):
        whole = cell.is_integer()
        return str(int(cell) if whole else cell) if math.isfinite(cell) else ""
    return str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else ""


def _number(cell: Any) -> float:
    """The cell as a number, NaN for what is none."""
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        return math.nan  # Python's 1_0 is nobody else's number.
    try:
        return float(cell)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _outcome(cell: Any) -> int | None:
    if isinstance(cell, bool):
        return int(cell)
    if isinstance(cell, str):
        word = cell.strip().lower()
        if word in OUTCOME_WORDS:
            return OUTCOME_WORDS[word]
    value = _number(cell)
    return int(value) if value in range(len(Outcome)) else None


def _unknown_outcome(block: Block, index: int, column: str) -> InputError:
    cell = block.columns[column][index]
    word = cell.strip().lower() if isinstance(cell, str) else ""
    near = difflib.get_close_matches(word, OUTCOME_WORDS, n=1)
    error = block.refusal(
        index, column, f"{', '.join(OUTCOME_WORDS)}, or a number 0 to 4"
    )
    return InputError(f"{error}; did you mean {near[0]!r}?") if near else error
