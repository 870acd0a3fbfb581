"""The tasks of DB-Bench and their reference solutions, from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from jerp.bridge.sql_sandbox import Database, SqlSandbox
from jerp.domains.benchmark import Call, Move
from jerp.domains.dbbench.entries import SPLITS, Entry, data_folder, read_entries
from jerp.domains.dbbench.session import ANSWER, EXECUTE, DbBenchSession, opening_of
from jerp.errors import UnknownNameError
from jerp.records import Task

__all__ = ["DbBench"]

_ESCAPES = "the reference has backslash escapes, which MySQL reads and SQLite keeps"
_BROKEN = {
    "dbbench/standard/164": _ESCAPES,
    "dbbench/standard/180": "the reference has an unquoted name that begins with a "
    "digit, which MySQL takes and SQLite does not",
    "dbbench/standard/206": "the reference finds a name without its accent, as MySQL "
    "compares and SQLite does not",
    "dbbench/standard/225": "the published hash is not that of the table after the "
    "reference; nobody has found why",
    "dbbench/standard/242": _ESCAPES,
}
_LEVELS = {"other": 0, "counting": 0, "comparison": 0, "ranking": 1}


class DbBench:
    """DB-Bench on SQLite: 60 tasks in `dev`, 300 in `standard`.

    A question is judged by its label, a change of the database by the hash of its
    tables, both as published. Statements run in the sandbox; columns are `TEXT COLLATE
    NOCASE`, which is how the benchmark's MySQL compares, accents apart.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`; the version
        is the beginning of a hash of the files.

    Args:
      data: folder with `dev.jsonl` and `standard.jsonl`; None takes what the variable
        `JERP_DBBENCH` names.
      sandbox: runs the statements; None makes one, which `close` ends.

    Raises:
      ConfigError: no folder is named.
      StorageError: the folder or a file cannot be read.
      InputError: a line of a file is no task.

    Reference:
      Liu et al., "AgentBench: Evaluating LLMs as Agents", arXiv 2308.03688.
    """

    name = "dbbench"
    splits = SPLITS
    broken: Mapping[str, str] = _BROKEN

    def __init__(self, data: Path | None = None, *, sandbox: SqlSandbox | None = None):
        folder = data_folder(data)
        read = {split: read_entries(folder, split) for split in SPLITS}
        self._entries = {split: entries for split, (entries, _) in read.items()}
        self.version = "+".join(begin for _, begin in read.values())
        self.sandbox = sandbox or SqlSandbox()
        self._owns_sandbox = sandbox is None
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
        """Ends the sandbox's processes, if the sandbox was made here."""
        if self._owns_sandbox:
            self.sandbox.close()

    def _create(self, split: str, index: int) -> Database:
        return self.sandbox.create(self._entries[split][index].tables)
