"""The tasks of DB-Bench and their reference solutions, from a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from jerp.bridge.mysql_address import VARIABLE as SERVER
from jerp.bridge.mysql_sandbox import MySqlSandbox
from jerp.bridge.sql_engine import SqlEngine
from jerp.bridge.sql_report import Database
from jerp.bridge.sql_sandbox import SqlSandbox
from jerp.domains.benchmark import Call, Move
from jerp.domains.dbbench.entries import (
    SPLITS,
    Entry,
    data_folder,
    read_entries,
    with_named_columns,
)
from jerp.domains.dbbench.session import ANSWER, EXECUTE, DbBenchSession, opening_of
from jerp.errors import UnknownNameError
from jerp.records import Task

__all__ = ["DbBench"]

_ESCAPES = "the reference has backslash escapes, which MySQL reads and SQLite keeps"
_UNEXPLAINED = (
    "the published hash is not that of the table after the reference; nobody has found "
    "why"
)
_STRICT = (
    "the reference compares texts with a number, which MySQL's strict mode refuses to "
    "a change; with the number as a text it is right"
)
_BROKEN = {
    "dbbench/standard/164": _ESCAPES,
    "dbbench/standard/180": "the reference has an unquoted name that begins with a "
    "digit, which MySQL takes and SQLite does not",
    "dbbench/standard/206": "the reference finds a name without its accent, as MySQL "
    "compares and SQLite does not",
    "dbbench/standard/225": _UNEXPLAINED,
    "dbbench/standard/242": _ESCAPES,
}
_BROKEN_ON_MYSQL = {
    "dbbench/standard/225": _UNEXPLAINED,
    "dbbench/standard/278": _STRICT,
    "dbbench/standard/295": _STRICT,
}
_LEVELS = {"other": 0, "counting": 0, "comparison": 0, "ranking": 1}


class DbBench:
    """DB-Bench on SQLite, or on a MySQL server: 60 tasks in `dev`, 300 in `standard`.

    A question is judged by its label, a change of the database by the hash of its
    tables, both as published. On SQLite statements run in the sandbox; columns are
    `TEXT COLLATE NOCASE`, which is how MySQL compares, accents apart.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`; the version
        is the beginning of a hash of the files and, of MySQL, the server's.

    Args:
      data: folder with `dev.jsonl` and `standard.jsonl`; None takes what the variable
        `JERP_DBBENCH` names.
      mysql: address of a server, `mysql://user@127.0.0.1:3306`; None takes what the
        variable `JERP_MYSQL` names, and SQLite where that names none.
      sandbox: runs the statements; None makes one, which `close` ends.

    Raises:
      ConfigError: no folder is named, or an address that is none.
      MissingExtraError: MySQL is meant, and PyMySQL is not installed.
      SandboxError: the server does not answer, or its user has the wrong rights.
      StorageError: the folder or a file cannot be read.
      InputError: a line of a file is no task.

    Reference:
      Liu et al., "AgentBench: Evaluating LLMs as Agents", arXiv 2308.03688.
    """

    name = "dbbench"
    splits = SPLITS
    broken: Mapping[str, str] = _BROKEN

    def __init__(
        self,
        data: Path | None = None,
        *,
        mysql: str | None = None,
        sandbox: SqlEngine | None = None,
    ):
        folder = data_folder(data)
        read = {split: read_entries(folder, split) for split in SPLITS}
        self._entries = {split: entries for split, (entries, _) in read.items()}
        self.version = "+".join(begin for _, begin in read.values())
        self.sandbox = sandbox or _engine(mysql)
        self._owns_sandbox = sandbox is None
        if isinstance(self.sandbox, MySqlSandbox):
            # Runs on one kind of database are never mixed with those on another.
            self.version += f"+{self.sandbox.version}"
            self.broken = _BROKEN_ON_MYSQL
            self._entries = {
                split: tuple(map(with_named_columns, entries))
                for split, entries in self._entries.items()
            }
        self._created = lru_cache(maxsize=512)(self._create)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Those of a split; of kind INSERT, UPDATE, or of which the question is.

        Difficulty 0 is a question about rows, 1 a ranking or an aggregate, 2 a change.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in self._entries:
            raise UnknownNameError("split", split, self.splits)
        return tuple(
            Task(
                key=f"{self.name}/{split}/{index}",
                domain=self.name,
                difficulty=2 if entry.changes else _LEVELS.get(entry.kind, 1),
                prompt=opening_of(entry),
                payload={"kind": entry.kind, "split": split, "index": index},
            )
            for index, entry in enumerate(self._entries[split])
        )

    def start(self, task: Task, *, seed: int = 0) -> DbBenchSession:
        """A fresh database; nothing in it depends on the seed.

        Raises:
          SandboxError: statements cannot be run here.
        """
        return DbBenchSession(self.entry(task), self.database(task), self.sandbox)

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The bundled change, or the label of a question."""
        entry = self.entry(task)
        if not entry.changes:
            return (Call(ANSWER.name, {"answers": list(entry.label)}),)
        return Call(EXECUTE.name, {"query": entry.statement}), Call(ANSWER.name, {})

    def entry(self, task: Task) -> Entry:
        """What the file says of a task.

        Raises:
          UnknownNameError: it is none of this benchmark's.
        """
        entries = self._entries.get(str(task.payload.get("split")), ())
        index = task.payload.get("index")
        if not isinstance(index, int) or not 0 <= index < len(entries):
            known = [f"{self.name}/{split}/0" for split in SPLITS]
            raise UnknownNameError("task", task.key, known)
        return entries[index]

    def database(self, task: Task) -> Database:
        """The task's tables as they are at first; made once.

        Raises:
          SandboxError: statements cannot be run here.
        """
        return self._created(task.payload["split"], task.payload["index"])

    def close(self) -> None:
        """Ends the sandbox, if it was made here."""
        if self._owns_sandbox:
            self.sandbox.close()

    def _create(self, split: str, index: int) -> Database:
        kind = self.sandbox.text_type
        tables = [
            replace(table, columns=tuple((name, kind) for name, _ in table.columns))
            for table in self._entries[split][index].tables
        ]
        return self.sandbox.create(tables)


def _engine(mysql: str | None) -> SqlEngine:
    address = mysql or os.environ.get(SERVER)
    return MySqlSandbox(address) if address else SqlSandbox()
