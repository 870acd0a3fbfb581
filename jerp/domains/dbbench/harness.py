"""DB-Bench under the harness's seven actions: one statement is written, and submitted.

What is real: observe brings the names of tables and columns into a prompt that had the
question alone; retrieve shows rows, the first ones and then those that share most words
with the question; call-tool runs the draft in the sandbox, on a database that is then
as before; check compiles it; submit runs it once more and judges by the published hash
or label. To a question the statement's rows are the answers, where the benchmark lets
its agent word them: an answer that no row holds has to be selected as a literal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from jerp.bridge.executor import Completion, Message, Request, Sampling
from jerp.bridge.sql_engine import SqlEngine
from jerp.bridge.sql_report import SqlResult, SqlTable
from jerp.domains.base import Effect, Feedback, Workspace
from jerp.domains.benchmark_domain import BenchmarkDomain
from jerp.domains.controlled.criteria import checked
from jerp.domains.dbbench.benchmark import DbBench
from jerp.domains.dbbench.entries import Entry
from jerp.domains.dbbench.scoring import labels_match
from jerp.domains.dbbench.session import hash_of, shown
from jerp.harness.actions import Action
from jerp.records import Criterion, ProcessStep, Task, Verdict

__all__ = ["DbBenchDomain", "statement_of"]

SAMPLING = Sampling(temperature=0.7, top_p=0.95, max_tokens=160)
INSTRUCTION = (
    "Write one {dialect} statement in a ```sql block and nothing else. To a question, "
    "the rows that it returns are the answer."
)
CORRECT_WEIGHT = 3.0
PUBLIC_WEIGHT = 0.25
ROWS_SHOWN = 3


class DbBenchDomain(BenchmarkDomain):
    """One SQL statement a task; see the module's docstring for what is real.

    Args:
      benchmark: where tasks come from; closed with the domain.
      split: part of it.
    """

    name: ClassVar[str] = "dbbench"
    needs_evidence: ClassVar[bool] = False
    runs_code: ClassVar[bool] = True
    ladder: ClassVar[int] = 2

    def __init__(self, benchmark: DbBench, split: str = "standard"):
        super().__init__(benchmark, split)
        self._benchmark = benchmark

    def preflight(self) -> Mapping[str, str]:
        """The sandbox's protections, or its refusal before anything is run."""
        return self._benchmark.sandbox.protections

    def request(self, workspace: Workspace, action: int) -> Request | None:
        """A function of task, what is in hand and, to revise, draft and feedback."""
        if action not in (Action.DRAFT, Action.REVISE):
            return None
        entry = self._benchmark.entry(workspace.task)
        parts = [f"Question: {entry.question}"]
        if workspace.observed:
            engine = self._benchmark.sandbox
            parts += [_described(table, engine) for table in entry.tables]
        parts += workspace.passages
        if action == Action.REVISE and workspace.feedback is not None:
            parts += [
                f"A first try was:\n```sql\n{workspace.draft}\n```",
                f"What came of it: {workspace.feedback.text}",
                "Write a better one.",
            ]
        instruction = INSTRUCTION.format(dialect=self._benchmark.sandbox.dialect)
        messages = (Message("system", instruction), Message("user", "\n".join(parts)))
        return Request(messages, SAMPLING, workspace.sample_index)

    def verify(self, task: Task, artefact: str | None, workspace: Workspace) -> Verdict:
        """The official judgement of what the statement returns or leaves.

        The public criteria count as far as it is right.
        """
        result = self._run(task, artefact or "")
        right = result.status == "ok" and self._is_right(task, result)
        correct = Criterion("correct", float(right), CORRECT_WEIGHT, public=False)
        public = tuple(
            replace(c, score=c.score * right)
            for c in self._public(task, artefact or "")
        )
        return Verdict((correct, *public), success=right)

    def _retrieve(self, workspace: Workspace) -> Effect:
        entry = self._benchmark.entry(workspace.task)
        rung = len(workspace.passages)
        passage = _first_rows(entry) if rung == 0 else _nearest_rows(entry)
        step = ProcessStep("retrieve", arguments=f"rows #{rung}", new_facts=1)
        after = replace(workspace, passages=(*workspace.passages, passage))
        return after, step, passage

    def _call_tool(self, workspace: Workspace) -> Effect:
        """Runs the draft; an error, no rows and no change ask for a revision."""
        result = self._run(workspace.task, workspace.draft or "")
        idle = not (result.rows if result.columns else result.changes)
        failed = result.status != "ok" or idle
        feedback = Feedback(shown(result), failed=failed)
        after = replace(
            workspace,
            tested=True,
            feedback=feedback,
            support=float(not failed),
            findings=workspace.findings + failed,
        )
        digest = _digest(workspace.draft or "")
        step = ProcessStep(
            "call-tool",
            arguments=digest,
            error=result.status != "ok",
            tests_passed=int(not failed),
            tests_failed=int(failed),
            code_hash=digest,
            tool_valid=result.status != "denied",
        )
        return after, step, feedback.text

    def _write(
        self, workspace: Workspace, action: int, completion: Completion
    ) -> Effect:
        statement = statement_of(completion.text)
        revises = action == Action.REVISE
        feedback = "" if workspace.feedback is None else workspace.feedback.text
        error = completion.status != "ok"
        step = ProcessStep(
            "write",
            arguments="\n".join((*workspace.passages, workspace.draft or "", feedback)),
            error=error,
            revises=revises,
        )
        after = workspace.with_draft(statement, revises=revises)
        return after, step, f"executor: {completion.status}" if error else statement

    def _check(self, workspace: Workspace) -> Effect:
        """The public criteria, and the run if the draft was run."""
        draft = workspace.draft or ""
        criteria = self._public(workspace.task, draft)
        if workspace.tested:
            criteria = (*criteria, Criterion("works", workspace.support, 1.0))
        missing = tuple(c.name for c in criteria if c.score < 1)
        why = next((c.detail for c in criteria if c.score < 1 and c.detail), "")
        found = workspace.feedback
        if why or found is None:
            found = Feedback(why or "no fault found", failed=bool(missing))
        after, step = checked(
            replace(workspace, feedback=found), missing, len(criteria)
        )
        text = f"missing: {', '.join(missing)}; {found.text}" if missing else found.text
        after = replace(after, findings=workspace.findings + len(missing))
        return after, replace(step, arguments=_digest(draft)), text

    def _submit(self, workspace: Workspace) -> Effect:
        digest = _digest(workspace.draft or "")
        step = ProcessStep("submit", arguments=digest, code_hash=digest)
        return workspace, step, "submitted"

    def _run(self, task: Task, statement: str) -> SqlResult:
        benchmark = self._benchmark
        return benchmark.sandbox.run(benchmark.database(task), statement)

    def _is_right(self, task: Task, result: SqlResult) -> bool:
        entry = self._benchmark.entry(task)
        if entry.changes:
            found = hash_of(self._benchmark.sandbox, result.database, entry)
            return found == entry.table_hash
        values = [value for row in result.rows for value in row]
        return labels_match(values or ["none"], entry.label)

    def _public(self, task: Task, statement: str) -> tuple[Criterion, ...]:
        """What can be said without running it: it compiles, it names a table."""
        compiled = self._run(task, f"EXPLAIN {statement}")
        compiles = compiled.status == "ok" and bool(compiled.rows)
        why = "" if compiles else f"it does not compile: {compiled.text or 'empty'}"
        tables = self._benchmark.entry(task).tables
        named = any(table.name.lower() in statement.lower() for table in tables)
        lost = "" if named else "it does not name the table"
        return (
            Criterion("compiles", float(compiles), PUBLIC_WEIGHT, detail=why),
            Criterion("names-table", float(named), PUBLIC_WEIGHT, detail=lost),
        )


def statement_of(text: str) -> str:
    """The statement in what an executor wrote: its first block of code, else all.

    Example:
      >>> statement_of("Like this: ```sql SELECT 1; ``` Good?")
      'SELECT 1;'
      >>> statement_of(" SELECT 2 ")
      'SELECT 2'
    """
    block = re.search(r"```(?:sql\b)?(.*?)(?:```|\Z)", text, re.DOTALL | re.IGNORECASE)
    return (block[1] if block else text).strip()


def _described(table: SqlTable, engine: SqlEngine) -> str:
    columns = ", ".join(engine.quoted(name) for name, _ in table.columns)
    return f"Table {engine.quoted(table.name)} with the text columns {columns}"


def _first_rows(entry: Entry) -> str:
    return "First rows:\n" + "\n".join(
        " | ".join(map(str, row))
        for table in entry.tables
        for row in table.rows[:ROWS_SHOWN]
    )


def _nearest_rows(entry: Entry) -> str:
    """Rows that share most words with the question; ties go to the earlier."""
    wanted = _words(entry.question)
    rows = [" | ".join(map(str, row)) for table in entry.tables for row in table.rows]
    rows.sort(key=lambda row: -len(wanted & _words(row)))
    return "Rows like the question:\n" + "\n".join(rows[:ROWS_SHOWN])


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


def _digest(statement: str) -> str:
    return hashlib.sha256(statement.encode(errors="replace")).hexdigest()[:16]
