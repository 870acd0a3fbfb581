"""An episode of DB-Bench: statements on a database, then a final answer."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from jerp.bridge.sql_engine import SqlEngine
from jerp.bridge.sql_report import Database, SqlResult
from jerp.domains.benchmark import Call, Move, Reply, ToolSpec
from jerp.domains.dbbench.entries import Entry
from jerp.domains.dbbench.scoring import labels_match, table_hash
from jerp.records import Criterion, Verdict

__all__ = ["ANSWER", "EXECUTE", "MOST_MOVES", "DbBenchSession", "hash_of", "shown"]

MOST_MOVES = 20
"""Rounds that an agent has, as published; an episode without an answer is lost."""

MOST_SHOWN = 800

EXECUTE = ToolSpec(
    "execute_sql",
    "Runs one SQL statement on the database and shows its result.",
    {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "The statement."}},
        "required": ["query"],
    },
)
ANSWER = ToolSpec(
    "commit_final_answer",
    "Ends the task. To a question, gives all the answers; after a change of the "
    "database none are needed.",
    {
        "type": "object",
        "properties": {
            "answers": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Each answer, exactly as it stands in the database.",
            }
        },
    },
)


class DbBenchSession:
    """One task on a database of its own.

    Attributes:
      database: as the statements so far have left it.

    Args:
      entry: of the task.
      database: with its tables.
      sandbox: runs the statements; its owner closes it.
    """

    tools = (EXECUTE, ANSWER)

    def __init__(self, entry: Entry, database: Database, sandbox: SqlEngine):
        self.database = database
        self._entry, self._sandbox = entry, sandbox
        self._moves, self._ended = 0, False
        self._answers: Sequence[Any] | None = None

    @property
    def opening(self) -> str:
        """The question, and the names of table and columns."""
        return opening_of(self._entry)

    def move(self, move: Move) -> Reply:
        """Runs a statement or takes the answer; anything else only costs a move."""
        if self._ended:
            return Reply("The task is over.", error=True, ended=True)
        self._moves += 1
        text, error = self._done(move)
        self._ended = self._answers is not None or self._moves >= MOST_MOVES
        return Reply(text, error=error, ended=self._ended)

    def score(self) -> Verdict:
        """The official judgement: 1 or 0; 0 without a final answer."""
        right = self._answers is not None and self._is_right(self._answers)
        return Verdict((Criterion("correct", float(right), 1.0),), success=right)

    def close(self) -> None:
        """Nothing is held: the sandbox is the benchmark's."""

    def _done(self, move: Move) -> tuple[str, bool]:
        match move:
            case Call("execute_sql", {"query": str(query), **rest}) if not rest:
                result = self._sandbox.run(self.database, query)
                self.database = result.database
                return shown(result), result.status != "ok"
            case Call("commit_final_answer", arguments) if not {*arguments} - {
                "answers"
            }:
                answers = _answers(arguments)
                if answers is None:
                    return "Error: answers: expected a list of texts", True
                self._answers = answers
                return "The answer was taken.", False
            case Call(tool, _) if tool in {spec.name for spec in self.tools}:
                return f"Error: {tool} does not take these arguments", True
            case _:
                names = " or ".join(spec.name for spec in self.tools)
                return f"Error: expected a call of {names}", True

    def _is_right(self, answers: Sequence[Any]) -> bool:
        if not self._entry.changes:
            return labels_match(answers, self._entry.label)
        found = hash_of(self._sandbox, self.database, self._entry)
        return found == self._entry.table_hash


def opening_of(entry: Entry) -> str:
    """What an agent is told first."""
    about = f"About the table: {entry.about}\n" if entry.about else ""
    return f"{about}Question: {entry.question}"


def shown(result: SqlResult) -> str:
    """A result as text, cut where it is long."""
    if result.status != "ok":
        return f"Error ({result.status}): {result.text}"
    text = str([*result.rows]) if result.columns else f"{result.changes} rows changed"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}... (cut)"


def hash_of(sandbox: SqlEngine, database: Database, entry: Entry) -> str | None:
    """The published hash of the entry's tables; None where one cannot be read.

    Raises:
      SandboxError: statements cannot be run here.
    """
    tables = []
    for table in entry.tables:
        statement = sandbox.reading(table.name, [name for name, _ in table.columns])
        result = sandbox.run(database, statement, read_only=True)
        if result.status != "ok":
            return None
        tables.append(result.rows)
    return table_hash(tables)


def _answers(arguments: Mapping[str, Any]) -> Sequence[Any] | None:
    """The list of answers; a text of one is read as a list if it looks like one."""
    answers = arguments.get("answers", [])
    if isinstance(answers, str):
        try:
            read = ast.literal_eval(answers) if answers.startswith("[") else None
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            read = None
        return read if isinstance(read, list) else [answers]
    return answers if isinstance(answers, list | tuple) else None
