"""Conversations in OpenAI's format: a line a run, with `messages` and a reward.

There is no standard for what stands beside the messages, so everything but their form
is asked for or has one plain name: `task` or `task_id`, `reward`, and where a line has
them `sample`, `error` and `truncated`; where it has not, those two are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError
from jerp.readers.humaneval_samples import constant_or_field
from jerp.readers.json_lines import json_lines
from jerp.readers.log_fields import MISSING, column, found, listed_names, need
from jerp.readers.log_options import (
    MESSAGE_UNITS,
    LogOptions,
    spent_of_calls,
    succeeded,
    tool_calls,
)
from jerp.readers.log_runs import LoggedRun, SampleNumbers
from jerp.readers.run_ends import RunEnds
from jerp.typing import Outcome

__all__ = ["chat_runs"]

UNIT = "line"
TASK_FIELDS = ("task", "task_id")


def chat_runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> tuple[str, Iterator[LoggedRun]]:
    """The conversations of a file.

    Raises:
      ConfigError: an option that changes nothing here.
      InputError: nothing says what a run spent, or a line is not what it should be.
    """
    options.refuse(("agent",), "a conversation has one")
    if options.spent is None and options.unit not in MESSAGE_UNITS:
        raise InputError(
            f"{path}: conversations do not say their {options.unit}; name the field "
            f"that does: --spent FIELD, or take --unit {', '.join(MESSAGE_UNITS)}"
        )
    return UNIT, _runs(path, options, extra, notes)


def _runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> Iterator[LoggedRun]:
    sample_of = SampleNumbers()
    ends = RunEnds(options)
    for number, line in json_lines(path):
        where = f"{path}, {UNIT} {number}"
        task = need(
            line, _task_field(line, options, where), where, "a text or a number"
        )
        outcome = _outcome(line, options, ends, where)
        sample = sample_of(task)
        if "sample" in line:
            sample = need(line, "sample", where, "a text or a number")
        yield LoggedRun(
            number,
            task,
            sample,
            _spent(line, options, outcome, where),
            outcome,
            tuple(column((line, line.get("metadata")), n, where) for n in extra),
        )
    notes += [options.spent_note(MESSAGE_UNITS), *ends.notes(str(path))]


def _task_field(line: Any, options: LogOptions, where: str) -> str:
    if options.task is not None:
        return options.task
    there = [name for name in TASK_FIELDS if name in line]
    if len(there) != 1:
        raise InputError(
            f"{where}: expected one field that names the task, "
            f"{' or '.join(map(repr, TASK_FIELDS))}, got {listed_names(line)}; say "
            "which: --task FIELD"
        )
    return there[0]


def _outcome(line: Any, options: LogOptions, ends: RunEnds, where: str) -> Outcome:
    broken, cut = ends(line, where)
    if broken:
        return Outcome.INFRASTRUCTURE
    field = options.score or "reward"
    value = found(line, field)
    if value is MISSING and options.score is None:
        raise InputError(
            f"{where}: expected a field 'reward', got {listed_names(line)}; say which "
            "field is the reward: --score FIELD"
        )
    if succeeded(options, value, field, where):
        return Outcome.SUCCESS
    return Outcome.TRUNCATED if cut else Outcome.FAILURE


def _spent(
    line: Any, options: LogOptions, outcome: Outcome, where: str
) -> float | None:
    excused = outcome == Outcome.INFRASTRUCTURE
    if options.spent is not None:
        return constant_or_field(line, options, where, may_lack=excused)
    messages = need(line, "messages", where, "a list of objects")
    calls = [
        tool_calls(message, where)
        for message in messages
        if need(message, "role", where, "a text") == "assistant"
        and message.get("weight") != 0
    ]
    return spent_of_calls(options.unit, calls)
