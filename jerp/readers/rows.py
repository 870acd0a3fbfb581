"""Rows of CSV, JSONL and Parquet files, a block at a time.

A file is read as what the end of its name says. Lines end at a newline alone, never at
other characters that Unicode calls line ends. A row that cannot be read is refused with
its line; what the values mean is not looked at here.
"""

from __future__ import annotations

import csv
import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jerp.errors import InputError, MissingExtraError, StorageError
from jerp.readers.json_lines import json_lines, readable

__all__ = ["Block", "read_blocks"]

BLOCK_ROWS = 2**16
"""Rows in memory as Python objects at once, some ten megabytes."""


@dataclass(frozen=True)
class Block:
    """Some consecutive rows.

    Attributes:
      path: the file.
      unit: what its rows are numbered by, "line" or "row".
      numbers: of each row, from 1.
      columns: the values of each column as the file has them; None where it has none.
    """

    path: Path
    unit: str
    numbers: Sequence[int]
    columns: dict[str, list[Any]]

    def refusal(self, index: int, column: str, expected: str) -> InputError:
        """The error that a value of this block is not what was expected."""
        got = self.columns[column][index]
        shown = "nothing" if got is None or got == "" else repr(got)
        return InputError(
            f"{self.path}, {self.unit} {self.numbers[index]}, {column}: expected "
            f"{expected}, got {shown if len(shown) <= 60 else shown[:57] + '...'}"
        )


def read_blocks(
    path: Path, required: Sequence[str], *, optional: str
) -> Iterator[Block]:
    """The columns `required`, and `optional` where the file has it.

    Raises:
      StorageError: the file is missing or not of the kind that its name says.
      InputError: a column is missing, or the name ends in something unknown.
      MissingExtraError: a Parquet file, and pyarrow is not installed.
    """
    with readable(path):
        yield from _reader(path)(path, required, optional)


def _reader(path: Path) -> Callable[[Path, Sequence[str], str], Iterator[Block]]:
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise InputError(
            f"{path}: expected a name that ends in {', '.join(_READERS)}, got "
            f"{path.suffix!r}; rename the file, or convert it to one of these"
        )
    return read


def _csv_blocks(path: Path, required: Sequence[str], optional: str) -> Iterator[Block]:
    with open(path, encoding="utf-8-sig", newline="\n") as file:
        rows = csv.reader(file, strict=True)
        try:
            header = [name.strip() for name in next(rows, [])]
            if not header:
                return
            _check_commas(path, header)
            names = _wanted(f"{path}, line 1", header, required, optional)
            at = {name: header.index(name) for name in names}
            kept, numbers = [], []
            for row in rows:
                if len(row) != len(header):
                    if not row:
                        continue
                    raise StorageError(
                        f"{path}, line {rows.line_num}: expected {len(header)} values, "
                        f"as the header has, got {len(row)}; put a value that holds a "
                        "comma in double quotes"
                    )
                kept.append(row)
                numbers.append(rows.line_num)
                if len(kept) == BLOCK_ROWS:
                    yield _csv_block(path, kept, numbers, at)
                    kept, numbers = [], []
            if kept:
                yield _csv_block(path, kept, numbers, at)
        except csv.Error as error:
            raise StorageError(
                f"{path}, line {rows.line_num}: {_not_csv(error)}"
            ) from error


def _check_commas(path: Path, header: Sequence[str]) -> None:
    """Refuses a header that is one name only because other signs separate it."""
    if len(header) == 1 and (found := set(header[0]) & set(";\t|")):
        raise StorageError(
            f"{path}, line 1: expected values separated by commas, got one value with "
            f"{min(found)!r} in it; separate the values by commas"
        )


def _not_csv(error: csv.Error) -> str:
    if "new-line character" in str(error):
        return (
            "expected lines that end at a newline, got a carriage return inside of "
            "one; save the file with newlines, or put such a value in double quotes"
        )
    return f"not CSV ({error}); mend the line"


def _csv_block(
    path: Path, rows: list[list[str]], numbers: list[int], at: dict[str, int]
) -> Block:
    columns = {name: [row[i] for row in rows] for name, i in at.items()}
    return Block(path, "line", numbers, columns)


def _jsonl_blocks(
    path: Path, required: Sequence[str], optional: str
) -> Iterator[Block]:
    names: list[str] = []
    kept, numbers = [], []
    for number, row in json_lines(path):
        if not names:
            names = _wanted(f"{path}, line {number}", list(row), required, optional)
            needed, has_optional = frozenset(names), optional in names
        if not row.keys() >= needed or (optional in row) != has_optional:
            _refuse_keys(f"{path}, line {number}", row, names, optional)
        kept.append(row)
        numbers.append(number)
        if len(kept) == BLOCK_ROWS:
            yield _jsonl_block(path, kept, numbers, names)
            kept, numbers = [], []
    if kept:
        yield _jsonl_block(path, kept, numbers, names)


def _jsonl_block(
    path: Path, rows: list[dict[str, Any]], numbers: list[int], names: list[str]
) -> Block:
    columns = {name: [row[name] for row in rows] for name in names}
    return Block(path, "line", numbers, columns)


def _refuse_keys(
    where: str, row: dict[str, Any], names: Sequence[str], optional: str
) -> None:
    """Says which key this row lacks, or has and the rows before it have not."""
    for name in names:
        if name not in row:
            raise InputError(
                f"{where}: lacks {name!r}, which the lines before it have; add it"
            )
    raise InputError(
        f"{where}: has {optional!r}, which the lines before it lack; give it to all or "
        "to none"
    )


def _parquet_blocks(
    path: Path, required: Sequence[str], optional: str
) -> Iterator[Block]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", "parquet") from error
    try:
        with parquet.ParquetFile(path) as file:
            found = file.schema_arrow.names
            names = _wanted(str(path), found, required, optional)
            first = 1
            for batch in file.iter_batches(BLOCK_ROWS, columns=names):
                columns = {name: batch.column(name).to_pylist() for name in names}
                numbers = range(first, first + len(batch))
                yield Block(path, "row", numbers, columns)
                first += len(batch)
    except FileNotFoundError:
        raise
    except (pyarrow.ArrowException, OSError) as error:
        raise StorageError(
            f"{path}: not a whole Parquet file ({error}); write it again"
        ) from error


_READERS: dict[str, Callable[[Path, Sequence[str], str], Iterator[Block]]] = {
    ".csv": _csv_blocks,
    ".jsonl": _jsonl_blocks,
    ".parquet": _parquet_blocks,
}


def _wanted(
    where: str, found: Sequence[str], required: Sequence[str], optional: str
) -> list[str]:
    """The columns to read; refuses what lacks or repeats one of them."""
    names = [*dict.fromkeys(required)]
    spare = {each.lower(): each for each in found if each not in (*names, optional)}
    for name in names:
        if name not in found:
            near = difflib.get_close_matches(name.lower(), spare, n=1, cutoff=0.5)
            advice = f"rename {spare[near[0]]!r} to it" if near else "add it"
            raise InputError(
                f"{where}: expected a column {name!r}, got "
                f"{', '.join(map(repr, found))[:200]}; {advice}. Needed are "
                f"{', '.join(names)}"
            )
    names += [optional] if optional in found and optional not in names else []
    for name in names:
        if found.count(name) > 1:
            raise InputError(
                f"{where}: expected one column {name!r}, got {found.count(name)}; "
                "rename all but one"
            )
    return names
