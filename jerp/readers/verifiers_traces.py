"""Traces of verifiers: `traces.jsonl`, an episode a line, each with its agents' traces.

A run is the trace of one agent. Errors that a retry mended do not count against it; the
error that ended it is attributed by verifiers to a boundary outside of the policy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import InputError
from jerp.readers.json_lines import json_lines
from jerp.readers.log_fields import (
    MISSING,
    column,
    found,
    is_finite,
    listed_names,
    need,
    refusal,
    spent_at,
)
from jerp.readers.log_options import (
    MESSAGE_UNITS,
    LogOptions,
    spent_of_calls,
    succeeded,
    tool_calls,
)
from jerp.readers.log_runs import UNSAID, LoggedRun, SampleNumbers, ends_noted
from jerp.typing import Outcome

__all__ = ["verifiers_runs"]

UNIT = "line"

LIMITS = (
    "max_turns",
    "max_input_tokens",
    "max_output_tokens",
    "max_total_tokens",
    "compaction_failed",
    "agent_timeout",
)
"""Stop conditions of a run whose budget was at its end."""

AROUND_THE_AGENT = ("setup_timeout", "finalize_timeout", "scoring_timeout")
"""Stop conditions of a run that something else than the agent kept waiting."""

TOTAL = "reward"
"""What `--score` calls the weighted sum of all rewards."""

SPENT = {
    **MESSAGE_UNITS,
    "tokens": "completion_tokens of the agent's model calls",
    "seconds": "timing.agent",
    "dollars": "cost of the agent's model calls",
}


def verifiers_runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> tuple[str, Iterator[LoggedRun]]:
    """The episodes of a file.

    Raises:
      ConfigError: an option that changes nothing here.
      StorageError, InputError: a line is not what it should be.
    """
    options.refuse(("task",), "verifiers' episodes name their task by key or hash")
    options.refuse(("errors", "truncated"), "verifiers' traces say it themselves")
    return UNIT, _runs(path, options, extra, notes)


def _runs(
    path: Path, options: LogOptions, extra: Sequence[str], notes: list[str]
) -> Iterator[LoggedRun]:
    sample_of = SampleNumbers()
    counts: Counter[str] = Counter()
    for number, episode in json_lines(path):
        where = f"{path}, {UNIT} {number}"
        task = _task(episode, where)
        where = f"{where} (task {task!r})"
        trace = _trace(episode, options, where)
        outcome = _outcome(episode, trace, options, where)
        counts.update(_noted(episode, trace, outcome, where))
        data = found(episode, "task.data")
        places = (data, trace, found(trace, "info"), episode)
        yield LoggedRun(
            number,
            task,
            sample_of(task),
            _spent(trace, options, outcome, where),
            outcome,
            tuple(column(places, name, where) for name in extra),
        )
    notes.append(options.spent_note(SPENT))
    notes += ends_noted(counts)


def _task(episode: Any, where: str) -> str:
    """The task's key, which is its content's hash where nobody named it."""
    need(episode, "task", where, "an object")
    field = "task.key" if found(episode, "task.key") is not MISSING else "task.hash"
    return need(episode, field, where, "a text")


def _trace(episode: Any, options: LogOptions, where: str) -> dict[str, Any]:
    """The one trace that is the run; empty where the episode came to none."""
    traces = need(episode, "traces", where, "a list of objects")
    names = [need(trace, "agent.name", where, "a text") for trace in traces]
    if options.agent is not None:
        traces = [
            trace
            for trace, name in zip(traces, names, strict=True)
            if name == options.agent
        ]
    elif len(traces) > 1:
        traces = [t for t in traces if found(t, "agent.trainable") is True]
    if not traces and (not names or not found(episode, "ok")):
        return {}
    if len(traces) != 1:
        asked = "" if options.agent is None else f" of agent {options.agent!r}"
        raise InputError(
            f"{where}, traces: expected one trace{asked}, got {len(traces)}, of the "
            f"agents {listed_names(names)}; say whose run it is: --agent NAME"
        )
    return traces[0]


def _outcome(episode: Any, trace: Any, options: LogOptions, where: str) -> Outcome:
    if not trace or not need(trace, "ok", where, "true or false"):
        return Outcome.INFRASTRUCTURE
    stop = _stop(trace, where)
    if stop in AROUND_THE_AGENT or not need(episode, "ok", where, "true or false"):
        return Outcome.INFRASTRUCTURE
    value, field = _reward(trace, options, where)
    if succeeded(options, value, field, where):
        return Outcome.SUCCESS
    cut = stop in LIMITS or _last_finish(trace, where) == "length"
    return Outcome.TRUNCATED if cut else Outcome.FAILURE


def _stop(trace: Any, where: str) -> str | None:
    if trace.get("stop_condition") is None:
        return None
    return need(trace, "stop_condition", where, "a text")


def _last_finish(trace: Any, where: str) -> Any:
    """How the last answer ended, as its provider says, or `MISSING`."""
    calls = need({"calls": [], **trace}, "calls", where, "a list of objects")
    ended = [call for call in calls if found(call, "error") in (MISSING, None)]
    return found(ended[-1], "finish_reason") if ended else MISSING


def _noted(episode: Any, trace: Any, outcome: Outcome, where: str) -> list[str]:
    """What there is to note of how a run ended."""
    if outcome == Outcome.SUCCESS:
        return []
    if why := _why(episode, trace, where):
        return [f"ended by {why}, taken as {outcome.name.lower()}"]
    said = isinstance(_last_finish(trace, where), str)
    return [] if said else [f"{UNSAID}, taken as {outcome.name.lower()}"]


def _why(episode: Any, trace: Any, where: str) -> str | None:
    """What ended a run that did not end by itself."""
    errors = trace.get("errors") or found(episode, "errors")
    if (not trace or trace.get("ok") is not True) and isinstance(errors, list):
        kind = found(errors[-1], "type") if errors else MISSING
        return kind if isinstance(kind, str) else "an error"
    if found(episode, "ok") is not True:
        return "another agent's or the environment's error"
    stop = _stop(trace, where)
    if stop in (*LIMITS, *AROUND_THE_AGENT):
        return stop
    cut = _last_finish(trace, where) == "length"
    return "the length of an answer" if cut else None


def _reward(trace: Any, options: LogOptions, where: str) -> tuple[Any, str]:
    rewards = need(trace, "rewards", where, "an object")
    name = options.score
    if name is None and len(rewards) == 1:
        name = next(iter(rewards))
    if name in rewards:
        return found(rewards[name], "score"), f"rewards.{name}.score"
    metrics = trace.get("metrics") or {}
    if not isinstance(metrics, dict):
        raise refusal(where, "metrics", "an object", metrics)
    if name in metrics:
        return metrics[name], f"metrics.{name}"
    if name == TOTAL and rewards:
        total = 0.0
        for each in rewards.values():
            score, weight = found(each, "score"), found(each, "weight")
            if not (is_finite(score) and is_finite(weight)):
                raise refusal(where, "rewards", "a score and a weight each", each)
            total += float(score) * float(weight)
        return total, TOTAL
    asked = "one reward" if name is None else f"the reward or metric {name!r}"
    raise InputError(
        f"{where}, rewards: expected {asked}, got the rewards {listed_names(rewards)} "
        f"and the metrics {listed_names(metrics)}; say which one counts: --score NAME, "
        f"or --score {TOTAL} for the weighted sum of the rewards"
    )


def _spent(
    trace: Any, options: LogOptions, outcome: Outcome, where: str
) -> float | None:
    excused = outcome == Outcome.INFRASTRUCTURE
    if not trace:
        return None
    if options.spent is not None:
        return spent_at(trace, options.spent, where, may_lack=excused)
    if options.unit in MESSAGE_UNITS:
        nodes = need(trace, "nodes", where, "a list of objects")
        said = [
            need(n, "message", where, "an object") for n in nodes if n.get("sampled")
        ]
        calls = [tool_calls(message, where) for message in said]
        return spent_of_calls(options.unit, calls)
    if options.unit == "seconds":
        ends = [
            spent_at(trace, f"timing.agent.{end}", where, may_lack=excused)
            for end in ("start", "end")
        ]
        return None if None in ends or not ends[1] else ends[1] - (ends[0] or 0)
    field = "completion_tokens" if options.unit == "tokens" else "cost"
    calls = need(trace, "calls", where, "a list of objects")
    used = [
        spent_at(call, f"usage.{field}", f"{where}, calls", may_lack=excused)
        for call in calls
        if found(call, "error") in (MISSING, None)
    ]
    return None if None in used else sum(each or 0 for each in used)
