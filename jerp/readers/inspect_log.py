"""Logs of inspect_ai: a run is a sample in an epoch.

Only what the outcome and the budget need is looked at. An error of the infrastructure
is never a failure; a score of NaN is inspect's word for "not scored".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError
from jerp.readers.inspect_file import inspect_file
from jerp.readers.inspect_score import number_of, score_of
from jerp.readers.log_fields import (
    MISSING,
    column,
    found,
    listed_names,
    need,
    spent_at,
)
from jerp.readers.log_options import (
    MESSAGE_UNITS,
    LogOptions,
    spent_of_calls,
    succeeded,
    tool_calls,
)
from jerp.readers.log_runs import UNSAID, LoggedRun, ends_noted
from jerp.typing import Outcome

__all__ = ["inspect_runs"]

UNIT = "sample"
SPENT = {
    **MESSAGE_UNITS,
    "tokens": "output_tokens of the agent's model",
    "seconds": "working_time, without waits for rate limits",
    "dollars": "total_cost of the agent's model",
}

CUT = ("max_tokens", "model_length")
"""Stop reasons of an answer that was not at its end."""

OF_THE_AGENT = {
    "invalid_response_format": Outcome.MALFORMED,
    "refusal": Outcome.FAILURE,
    "no_response": Outcome.FAILURE,
}
"""Why a sample has no score, where the agent is the reason; else the grader is."""


def inspect_runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> tuple[str, Iterator[LoggedRun]]:
    """The samples of a log, and those that were planned and never came about.

    Raises:
      ConfigError: an option that changes nothing here.
      StorageError, InputError: the log is not whole, or a sample is not what it should.
      MissingExtraError: an .eval log, and zstandard is not installed.
    """
    options.refuse(("task", "agent"), "inspect's samples name their task by their id")
    options.refuse(("errors", "truncated"), "inspect's logs say it themselves")
    return UNIT, _runs(path, options, extra, notes)


def _runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> Iterator[LoggedRun]:
    header, samples = inspect_file(path)
    log = _Log(path, header, options)
    last = 0
    for last, sample in enumerate(samples, 1):
        yield log.run(last, sample, extra)
    for number, (task, epoch) in enumerate(log.planned(), last + 1):
        yield LoggedRun(
            number, task, epoch, None, Outcome.INFRASTRUCTURE, log.known(task, extra)
        )
    notes += log.notes()


class _Log:
    """What is known of a log while its samples pass by."""

    def __init__(
        self, path: Path, header: Mapping[str, Any], options: LogOptions
    ) -> None:
        self.path, self.options = path, options
        need(header, "eval", str(path), "an object")
        self.header = header
        self.seen: set[tuple[str, int]] = set()
        self.extra: dict[str, tuple[Any, ...]] = {}
        self.counts: Counter[str] = Counter()
        self.planned_missing = 0

    def run(self, number: int, sample: Any, extra: Sequence[str]) -> LoggedRun:
        """One sample as a run."""
        where = f"{self.path}, {UNIT} {number}"
        task = need(sample, "id", where, "a text or a number")
        epoch = need(sample, "epoch", where, "a whole number")
        where = f"{where} (id {task!r}, epoch {epoch})"
        outcome = self._outcome(sample, where)
        values = tuple(
            column((sample.get("metadata"), sample), name, where) for name in extra
        )
        self.seen.add((str(task), epoch))
        self.extra.setdefault(str(task), values)
        return LoggedRun(
            number,
            task,
            epoch,
            self._spent(sample, outcome, where),
            outcome,
            values,
        )

    def _outcome(self, sample: Mapping[str, Any], where: str) -> Outcome:
        if sample.get("invalidation"):
            return self._counted("invalidated by hand", Outcome.INFRASTRUCTURE)
        if sample.get("error"):
            return self._counted("ended by an error", Outcome.INFRASTRUCTURE)
        value, reason, field = score_of(sample, self.options.score, where)
        if isinstance(value, float) and math.isnan(value):
            outcome = OF_THE_AGENT.get(reason or "", Outcome.INFRASTRUCTURE)
            return self._counted(f"not scored ({reason or 'no reason given'})", outcome)
        if succeeded(self.options, number_of(value, field, where), field, where):
            return Outcome.SUCCESS
        limit = sample.get("limit")
        if not limit:
            return self._unsolved(sample)
        kind = need(sample, "limit.type", where, "a text")
        # Only a person at the console ends a run without its having spent too much.
        operator = kind == "operator"
        outcome = Outcome.INFRASTRUCTURE if operator else Outcome.TRUNCATED
        return self._counted(f"ended by the {kind} limit", outcome)

    def _unsolved(self, sample: Mapping[str, Any]) -> Outcome:
        choices = found(sample, "output.choices")
        last = choices[-1] if isinstance(choices, list) and choices else {}
        reason = found(last, "stop_reason")
        if not isinstance(reason, str):
            return self._counted(UNSAID, Outcome.FAILURE)
        if reason not in CUT:
            return Outcome.FAILURE
        return self._counted("ended by the length of an answer", Outcome.TRUNCATED)

    def _counted(self, what: str, outcome: Outcome) -> Outcome:
        self.counts[f"{what}, taken as {outcome.name.lower()}"] += 1
        return outcome

    def _spent(
        self, sample: Mapping[str, Any], outcome: Outcome, where: str
    ) -> float | None:
        excused = outcome == Outcome.INFRASTRUCTURE
        unit = self.options.unit
        if self.options.spent is not None:
            return spent_at(sample, self.options.spent, where, may_lack=excused)
        if unit in MESSAGE_UNITS:
            return self._spent_in_messages(sample, excused, where)
        if unit == "seconds":
            return spent_at(sample, "working_time", where, may_lack=excused)
        field = "output_tokens" if unit == "tokens" else "total_cost"
        usage = self._usage(sample, where)
        return spent_at(usage, field, where, may_lack=excused)

    def _spent_in_messages(
        self, sample: Mapping[str, Any], excused: bool, where: str
    ) -> float | None:
        messages = need(sample, "messages", where, "a list of objects")
        calls = [
            tool_calls(message, where)
            for message in messages
            if message.get("role") == "assistant" and message.get("source") != "input"
        ]
        turns = sample.get("turn_count")
        unit = self.options.unit
        if unit == "turns" and isinstance(turns, int):
            return turns
        if isinstance(turns, int) and turns > len(calls):
            if excused:
                return None
            raise InputError(
                f"{where}, messages: expected the {turns} turns of turn_count, got "
                f"{len(calls)}; the conversation was shortened, so that its {unit} "
                "cannot be counted. --unit turns, tokens or seconds can"
            )
        return spent_of_calls(unit, calls)

    def _usage(self, sample: Mapping[str, Any], where: str) -> Any:
        """What the agent's model used; graders and helpers may have used others."""
        usage = sample.get("model_usage")
        if not isinstance(usage, dict) or not usage:
            return {}
        model = found(self.header, "eval.model")
        if len(usage) == 1:
            return next(iter(usage.values()))
        if not isinstance(model, str) or model not in usage:
            raise InputError(
                f"{where}, model_usage: expected the model of the log, {model!r}, got "
                f"{listed_names(usage)}; name the agent's: --spent "
                f"model_usage.NAME.output_tokens"
            )
        self.counts["used other models too, which does not count"] += 1
        return usage[model]

    def planned(self) -> Iterator[tuple[Any, int]]:
        """Samples and epochs of the plan that are not in the log."""
        ids = self._planned("eval.dataset.sample_ids", "a list", [])
        epochs = self._planned("eval.config.epochs", "a number of runs", 1)
        for epoch in range(1, epochs + 1):
            for task in ids:
                if (str(task), epoch) not in self.seen:
                    self.planned_missing += 1
                    yield task, epoch

    def _planned(self, field: str, kind: str, default: Any) -> Any:
        if found(self.header, field) in (MISSING, None):
            return default
        return need(self.header, field, str(self.path), kind)

    def known(self, task: Any, extra: Sequence[str]) -> tuple[Any, ...]:
        """The extra columns of a task, from another of its runs."""
        if not extra:
            return ()
        if str(task) not in self.extra:
            raise InputError(
                f"{self.path}: no run of the sample {task!r} is in the log, so that "
                f"its {', '.join(extra)} is not known; finish the log with `inspect "
                "eval-retry`, or leave --by out"
            )
        return self.extra[str(task)]

    def notes(self) -> list[str]:
        """What was read and chosen, in words."""
        notes = [self.options.spent_note(SPENT)]
        notes += ends_noted(self.counts)
        if self.planned_missing:
            status = self.header.get("status", "started")
            notes.append(
                f"status {status}; {self.planned_missing} planned runs are not in the "
                "log, taken as infrastructure"
            )
        return notes
