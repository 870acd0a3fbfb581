"""Results of tau2-bench: one JSON document, a simulation a run.

The reward is that of tau2. What its user simulator or an error of the harness ended is
nobody's answer. The greeting with which tau2 opens every conversation is no turn of
the agent's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError
from jerp.readers.json_parts import json_elements, json_rest
from jerp.readers.log_fields import MISSING, column, found, need, refusal, spent_at
from jerp.readers.log_options import (
    MESSAGE_UNITS,
    LogOptions,
    spent_of_calls,
    succeeded,
    tool_calls,
)
from jerp.readers.log_runs import UNSAID, LoggedRun, ends_noted
from jerp.typing import Outcome

__all__ = ["tau2_runs"]

UNIT = "simulation"

ENDS = {
    "user_stop": Outcome.FAILURE,
    "agent_stop": Outcome.FAILURE,
    "judge_stop": Outcome.FAILURE,
    "too_many_errors": Outcome.FAILURE,
    "max_steps": Outcome.TRUNCATED,
    "agent_error": Outcome.MALFORMED,
    "user_error": Outcome.INFRASTRUCTURE,
    "infrastructure_error": Outcome.INFRASTRUCTURE,
}
"""What a run that earned no reward is, by its `termination_reason`."""

SPENT = {
    **MESSAGE_UNITS,
    "tokens": "completion_tokens of the agent's messages",
    "seconds": "duration, the simulated user's time included",
    "dollars": "agent_cost",
}


def tau2_runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> tuple[str, Iterator[LoggedRun]]:
    """The simulations of a file, and those that were planned and are not there.

    Raises:
      ConfigError: an option that changes nothing here.
      StorageError, InputError: the file is not whole, or a run is not what it should.
    """
    options.refuse(("score", "task", "agent"), "tau2's results have one of it")
    options.refuse(("errors", "truncated"), "tau2's results say it themselves")
    return UNIT, _runs(path, options, extra, notes)


def _runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> Iterator[LoggedRun]:
    rest = json_rest(path, "simulations")
    tasks = {
        str(task.get("id")): task
        for task in need(rest, "tasks", str(path), "a list of objects")
    }
    trials = need(rest, "info.num_trials", str(path), "a number of runs")
    seen: set[tuple[str, int]] = set()
    counts: Counter[str] = Counter()
    last, costs = 0, 0.0
    for last, simulation in enumerate(json_elements(path, "simulations"), 1):
        run = _run(path, last, simulation, tasks, options, extra)
        counts.update(_noted(simulation, run.outcome, f"{path}, {UNIT} {last}"))
        seen.add((str(run.task), run.sample))
        costs += run.spent or 0.0
        yield run
    if options.unit == "dollars" and options.spent is None and last and not costs:
        raise InputError(
            f"{path}: every agent_cost is 0, which tau2 writes for a model whose price "
            "it does not know; take --unit steps, turns, calls, tokens or seconds"
        )
    planned = [(task, trial) for trial in range(trials) for task in tasks]
    missing = [run for run in planned if run not in seen]
    for number, (task, trial) in enumerate(missing, last + 1):
        values = _extra(tasks[task], {}, extra, str(path))
        yield LoggedRun(number, task, trial, None, Outcome.INFRASTRUCTURE, values)
    if missing:
        counts["planned and not in the file, taken as infrastructure"] = len(missing)
    notes += [options.spent_note(SPENT), *ends_noted(counts)]


def _run(
    path: Path,
    number: int,
    simulation: Any,
    tasks: Mapping[str, Any],
    options: LogOptions,
    extra: Sequence[str],
) -> LoggedRun:
    where = f"{path}, {UNIT} {number}"
    task = need(simulation, "task_id", where, "a text or a number")
    trial = need(simulation, "trial", where, "a whole number")
    where = f"{where} (task {task!r}, trial {trial})"
    if str(task) not in tasks:
        raise refusal(where, "task_id", "one of the file's tasks", task)
    outcome = _outcome(simulation, options, where)
    values = _extra(tasks[str(task)], simulation, extra, where)
    spent = _spent(simulation, options, outcome, where)
    return LoggedRun(number, task, trial, spent, outcome, values)


def _extra(
    task: Any, simulation: Any, extra: Sequence[str], where: str
) -> tuple[Any, ...]:
    return tuple(column((task, simulation), name, where) for name in extra)


def _outcome(simulation: Any, options: LogOptions, where: str) -> Outcome:
    if simulation.get("skipped"):
        return Outcome.INFRASTRUCTURE
    reason = need(simulation, "termination_reason", where, "a text")
    if reason not in ENDS:
        raise refusal(
            where,
            "termination_reason",
            f"one of {', '.join(ENDS)}, of which it is known whose fault they are",
            reason,
        )
    if ENDS[reason] == Outcome.INFRASTRUCTURE:
        return Outcome.INFRASTRUCTURE
    field = "reward_info.reward"
    if succeeded(options, found(simulation, field), field, where):
        return Outcome.SUCCESS
    if ENDS[reason] != Outcome.FAILURE:
        return ENDS[reason]
    cut = _last_finish(simulation, where) == "length"
    return Outcome.TRUNCATED if cut else Outcome.FAILURE


def _last_finish(simulation: Any, where: str) -> Any:
    """How the agent's last message ended, as its provider says, or `MISSING`."""
    messages = need(simulation, "messages", where, "a list of objects")
    said = [message for message in messages if message.get("role") == "assistant"]
    return found(said[-1], "raw_data.finish_reason") if said else MISSING


def _noted(simulation: Any, outcome: Outcome, where: str) -> list[str]:
    """What there is to note of how a run ended."""
    if outcome == Outcome.SUCCESS:
        return []
    if outcome == Outcome.FAILURE:
        said = isinstance(_last_finish(simulation, where), str)
        return [] if said else [f"{UNSAID}, taken as failure"]
    reason = "an error, skipped by tau2"
    if not simulation.get("skipped"):
        reason = simulation["termination_reason"]
        if ENDS[reason] == Outcome.FAILURE:
            reason = "the length of an answer"
    return [f"ended by {reason}, taken as {outcome.name.lower()}"]


def _spent(
    simulation: Any, options: LogOptions, outcome: Outcome, where: str
) -> float | None:
    excused = outcome == Outcome.INFRASTRUCTURE
    if simulation.get("skipped"):
        return None  # tau2 keeps nothing of it and writes zeros.
    if options.spent is not None:
        return spent_at(simulation, options.spent, where, may_lack=excused)
    if options.unit in ("seconds", "dollars"):
        field = "duration" if options.unit == "seconds" else "agent_cost"
        return spent_at(simulation, field, where, may_lack=excused)
    messages = need(simulation, "messages", where, "a list of objects")
    turns = [
        message
        for i, message in enumerate(messages)
        if message.get("role") == "assistant" and not _greets(i, messages)
    ]
    if options.unit in MESSAGE_UNITS:
        calls = [tool_calls(turn, where) for turn in turns]
        return spent_of_calls(options.unit, calls)
    tokens = [
        spent_at(
            turn, "usage.completion_tokens", f"{where}, messages", may_lack=excused
        )
        for turn in turns
    ]
    return None if None in tokens else sum(each or 0 for each in tokens)


def _greets(index: int, messages: Sequence[Any]) -> bool:
    """Whether a message is the fixed one before the user has said anything."""
    followed = len(messages) == 1 or messages[1].get("role") == "user"
    return index == 0 and not messages[0].get("tool_calls") and followed
