"""Every edit of every rule as JSON lines, appended and never rewritten.

The file is the record of where rules came from. Rows are numbered, complete or absent,
and in the order of their steps. A run that resumes takes back the rows after its
checkpoint, which will be made again, and sees by their number whether one before it is
missing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError, JerpError, StorageError
from jerp.rules.book import RuleBook
from jerp.storage.atomic import make_folder, write_bytes
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_history import (
    LedgerRow,
    RuleEdit,
    RuleHistories,
    RuleScores,
    histories,
)

__all__ = [
    "RuleEdit",
    "RuleHistories",
    "RuleLedger",
    "RuleScores",
    "histories",
    "read_ledger",
    "rows_before",
    "start_rows",
]

KINDS: dict[str, type[RuleEdit] | type[RuleScores]] = {
    "edit": RuleEdit,
    "scores": RuleScores,
}


class RuleLedger:
    """Appends rows to `rules.jsonl`.

    Args:
      path: of the file.
      first: the next step to be written; rows from it on, of a session that went
        further than its checkpoint, are taken back.
      num_rows: how many rows there were at the checkpoint; None if nobody knows.
      digest: of those rows; None if nobody knows.

    Attributes:
      histories: of all rows, those just written too.

    Raises:
      StorageError: the file is damaged before its last line, or has other rows than
        there were at the checkpoint.
    """

    def __init__(
        self,
        path: Path,
        *,
        first: int = 0,
        num_rows: int | None = None,
        digest: str | None = None,
    ):
        self.path = path
        make_folder(path.parent)
        kept = rows_before(path, first, num_rows=num_rows, digest=digest)
        self.histories = histories(kept)
        self._num_rows, self._step = len(kept), kept[-1].step if kept else 0
        lines = _lines(kept)
        self._digest = hashlib.sha256(lines)
        write_bytes(path, lines)

    @property
    def num_rows(self) -> int:
        """Rows so far, for the checkpoint to note."""
        return self._num_rows

    @property
    def digest(self) -> str:
        """Of the rows so far, for the checkpoint to note."""
        return self._digest.hexdigest()

    def write(self, rows: Iterable[LedgerRow]) -> None:
        """Appends rows, all or none of them.

        Args:
          rows: in the order of their steps, none before the last one written.

        Raises:
          InputError: a row of an earlier step.
          StorageError: the disk refuses.
        """
        rows, step = list(rows), self._step
        for row in rows:
            if row.step < step:
                raise InputError(f"step: expected {step} or later, got {row.step}")
            step = row.step
        numbers = range(self._num_rows, self._num_rows + len(rows))
        lines = b"".join(map(_line, numbers, rows))
        self._append(lines)
        self._digest.update(lines)
        self._num_rows, self._step = numbers.stop, step
        for row in rows:
            self.histories.add(row)

    def _append(self, lines: bytes) -> None:
        try:
            # Without a buffer: one would be written again after it was taken back.
            with self.path.open("ab", buffering=0) as file:
                before = file.tell()
                try:
                    while lines:
                        lines = lines[file.write(lines) :]
                    os.fsync(file.fileno())
                except OSError:
                    # What comes next must not follow half a line.
                    file.truncate(before)
                    raise
        except OSError as error:
            raise StorageError(f"{self.path}: {error}") from error


def read_ledger(path: Path | str) -> tuple[LedgerRow, ...]:
    """The complete rows of a file, none where there is no file.

    A last line that a kill cut off is left out.

    Raises:
      StorageError: another line is no row, or not the next one.
    """
    path = Path(path)
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error
    rows: list[LedgerRow] = []
    for number, line in enumerate(lines[:-1]):
        try:
            row = _row(number, json.loads(line))
            if rows and row.step < rows[-1].step:
                raise InputError(f"step {row.step} after step {rows[-1].step}")
        except (JerpError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise StorageError(
                f"{path}: line {number + 1} is no row of a ledger ({error}); remove "
                "the lines from it on, and checkpoints of later steps"
            ) from error
        rows.append(row)
    return tuple(rows)


def rows_before(
    path: Path, step: int, *, num_rows: int | None = None, digest: str | None = None
) -> tuple[LedgerRow, ...]:
    """The rows of earlier steps, those that a checkpoint knows.

    Args:
      path: of the file.
      step: of the checkpoint.
      num_rows: how many there were; None if nobody knows.
      digest: of them, see `RuleLedger`; None if nobody knows.

    Raises:
      StorageError: there are others, or the file is damaged.
    """
    kept = tuple(row for row in read_ledger(path) if row.step < step)
    wrong = num_rows is not None and len(kept) != num_rows
    changed = digest is not None and hashlib.sha256(_lines(kept)).hexdigest() != digest
    if wrong or changed:
        raise StorageError(
            f"{path}: expected the {num_rows} rows before the checkpoint, got "
            f"{len(kept)}{'' if wrong else ', some of them changed'}; bring the file "
            "back, remove the newest checkpoints to go on from an earlier one, or the "
            "run folder to begin anew"
        )
    return kept


def start_rows(
    document: PoolDocument, book: RuleBook, *, step: int = 0
) -> Sequence[RuleEdit]:
    """The rows that say which rules were there before the first edit.

    Args:
      document: what the pool was opened from.
      book: which has its texts.
      step: the first.
    """
    return [
        RuleEdit(
            step,
            key,
            "START",
            book.intern(rule.text),
            rule.text,
            source_tasks=rule.sources,
            note=rule.note,
        )
        for key, rules in document.pools.items()
        for rule in rules
    ]


def _lines(rows: Sequence[LedgerRow]) -> bytes:
    return b"".join(map(_line, range(len(rows)), rows))


def _line(number: int, row: LedgerRow) -> bytes:
    [kind] = (kind for kind, made in KINDS.items() if isinstance(row, made))
    fields: dict[str, Any] = {"row": number, "kind": kind}
    for item in dataclasses.fields(row):
        value = getattr(row, item.name)
        # What is as ever is left out, which halves the file.
        if value != item.default:
            fields[item.name] = value
    return json.dumps(fields, allow_nan=False).encode() + b"\n"


def _row(number: int, fields: dict[str, Any]) -> LedgerRow:
    if fields.pop("row") != number:
        raise InputError(f"expected row {number}")
    made = KINDS[fields.pop("kind")]
    for name, value in fields.items():
        if isinstance(value, list):
            fields[name] = tuple(value)
    if made is RuleScores:
        scores = fields.pop("scores").items()
        fields["scores"] = {int(rule): float(score) for rule, score in scores}
    return made(**fields)
