"""Logs of other tools as tables of outcomes, whatever wrote them.

None of the tools is imported: their files are JSON. Which one wrote a file is seen from
its name and its first record, or said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from jerp.errors import InputError, StorageError
from jerp.readers.chat_lines import chat_runs
from jerp.readers.humaneval_samples import humaneval_runs
from jerp.readers.inspect_log import inspect_runs
from jerp.readers.json_parts import json_keys
from jerp.readers.log_fields import listed_names
from jerp.readers.log_options import LogOptions
from jerp.readers.log_runs import Reader, run_blocks
from jerp.readers.outcomes import COLUMNS, OutcomeRows, OutcomeTable, read_outcomes
from jerp.readers.rows import json_lines, readable
from jerp.readers.tau2_results import tau2_runs
from jerp.readers.verifiers_traces import verifiers_runs

__all__ = ["TABLE", "log_format", "read_runs"]

TABLE = "table"

READERS: dict[str, Reader] = {
    "inspect": inspect_runs,
    "tau2": tau2_runs,
    "verifiers": verifiers_runs,
    "humaneval": humaneval_runs,
    "chat": chat_runs,
}


def read_runs(
    path: Path | str,
    *,
    format: str = "auto",
    options: LogOptions | None = None,
    extra: Sequence[str] = (),
    apart: str | None = None,
) -> OutcomeTable:
    """Reads a table of outcomes, or a log of another tool as one.

    Args:
      path: a table as `read_outcomes` takes it, or a log.
      format: table, inspect, tau2, verifiers, humaneval or chat; auto looks.
      options: what the log is asked for; `LogOptions()` if left out.
      extra: further columns, as `read_outcomes` has them; of a log they are fields of
        its tasks or runs, an inner one named like 'outer.inner'.
      apart: one of `extra`, see `read_outcomes`.

    Returns:
      The table; its `notes` say what a log's numbers were taken from.

    Raises:
      StorageError: the file is missing, not whole, or of no kind that is known.
      InputError: a run is not what it should be, or something must be asked for.
      ConfigError: an option that changes nothing in this format.
      MissingExtraError: the file needs a package that is not installed.

    Example:
      >>> import pathlib, tempfile
      >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.jsonl"
      >>> line = '{"task": "a", "messages": [{"role": "assistant"}], "reward": %d}'
      >>> options = LogOptions(unit="turns", errors="none", truncated="none")
      >>> _ = path.write_text(line % 1 + chr(10) + line % 0)
      >>> table = read_runs(path, options=options)
      >>> table.outcome.tolist(), table.spent.tolist()
      ([1, 0], [1.0, 1.0])
    """
    path, options = Path(path), options or LogOptions()
    format = log_format(path) if format == "auto" else format
    if format == TABLE:
        if given := options.given():
            options.refuse(given, f"{path} is a table, in which it says nothing")
        return read_outcomes(path, extra=extra, apart=apart)
    notes: list[str] = []
    unit, runs = READERS[format](path, options, extra, notes)
    rows = OutcomeRows(path, extra, apart)
    with readable(path):
        for block in run_blocks(path, unit, runs, extra):
            rows.add(block)
    table = rows.table()
    counted = options.unit == "steps" and options.spent is None
    if counted and not np.any(table.spent > 0):
        notes.append(
            "no run calls a tool, so that each spent 0 steps; --unit turns counts the "
            "agent's messages"
        )
    return replace(table, notes=tuple(notes))


def log_format(path: Path) -> str:
    """Which of `READERS`, or "table", a file is for.

    Raises:
      StorageError, InputError: a .json file that is of no kind that is known.
    """
    suffix = path.suffix.lower()
    if suffix == ".eval":
        return "inspect"
    if suffix == ".json":
        return _of_document(path)
    if suffix != ".jsonl" or not path.is_file():
        return TABLE
    try:
        with readable(path):
            first = next((line for _, line in json_lines(path)), {})
    except (InputError, StorageError):
        return TABLE  # Which says what is wrong with the line.
    return _of_line(first)


def _of_document(path: Path) -> str:
    with readable(path):
        keys = json_keys(path, ("simulations", "samples"))
    if "simulations" in keys:
        return "tau2"
    if "eval" in keys and "version" in keys:
        return "inspect"
    raise InputError(
        f"{path}: expected a .json log of inspect_ai or results of tau2-bench, got a "
        f"document with {listed_names(keys)}; say what it is with --format, or write "
        "it as a table"
    )


def _of_line(line: dict[str, Any]) -> str:
    if all(name in line for name in COLUMNS):
        return TABLE
    if "traces" in line and "task" in line:
        return "verifiers"
    if "task_id" in line and ("passed" in line or "completion" in line):
        return "humaneval"
    return "chat" if "messages" in line else TABLE
