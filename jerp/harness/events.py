"""The seven process events that harness maturity counts, each applicable and fired.

Only the steps up to the first submit count; an episode without a submit counts all its
steps. A failure is an error observation, a test run with failures, a check that found
something missing, or a verify step whose own field says so: no text is read here.
Thresholds are an argument, because the score hangs on them.

Reference: arXiv 2607.05458 and its released code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from jerp.errors import ConfigError
from jerp.harness.actions import ACTIONS, Action
from jerp.records import ProcessStep, ProcessTrace

__all__ = ["EVENTS", "Event", "MaturityThresholds", "process_events"]

_CHECK, _REVISE, _SUBMIT = (
    ACTIONS[a] for a in (Action.CHECK, Action.REVISE, Action.SUBMIT)
)


@dataclass(frozen=True)
class MaturityThresholds:
    """Where the events begin; the defaults are the released code's.

    Attributes:
      evidence_share: least share of claims with evidence, EvidenceBeforeClaim.
      revision_window: most steps from a failure to its revision, RevisionAfterFailure.
      valid_share: least share of valid tool calls, ValidToolUse.
      check_age: most steps from the last check to the submit, StopWhenSufficient.
      coverage: least coverage of that check, StopWhenSufficient.
      early_score: scores below it are low, EarlySubmit.
      early_progress: a low score is early up to this share of the steps. The paper's
        finding for its research domain changes sign between .25 and .35.
      early_missing: share of criteria missing from which a submit is early.
      early_pass_rate: pass rates of the last tests below it make a submit early.
      cost_factor: cost above this multiple of the budget is an overrun.
    """

    evidence_share: float = 0.7
    revision_window: int = 3
    valid_share: float = 0.9
    check_age: int = 3
    coverage: float = 0.85
    early_score: float = 0.5
    early_progress: float = 0.25
    early_missing: float = 0.5
    early_pass_rate: float = 0.5
    cost_factor: float = 1.5


class Event(NamedTuple):
    """Whether an event could happen in an episode, and whether it did."""

    applicable: bool
    fired: bool


class _Episode(NamedTuple):
    """A trace cut at its first submit (`submit` None: there is none)."""

    trace: ProcessTrace
    work: Sequence[ProcessStep]
    submit: int | None
    limits: MaturityThresholds


def process_events(
    trace: ProcessTrace, thresholds: MaturityThresholds
) -> dict[str, Event]:
    """The events of one episode.

    Args:
      trace: the episode; without steps, no event has fired.
      thresholds: see `MaturityThresholds`.

    Returns:
      Name to `Event`, in the order of `EVENTS`. What is not applicable has not fired.

    Deviations from the released code: RevisionAfterFailure is not applicable where the
      task offers no revision; a test counts only for the very artefact that was
      submitted, and only if the run itself did not fail; at the last step a submit with
      criteria missing is not early.
    """
    if trace.max_steps < 1:
        raise ConfigError(f"trace.max_steps: expected >= 1, got {trace.max_steps}")
    submits = [i for i, step in enumerate(trace.steps) if step.action == _SUBMIT]
    submit = submits[0] if submits else None
    episode = _Episode(trace, trace.steps[:submit], submit, thresholds)
    return {name: detect(episode) for name, detect in _DETECTORS.items()}


def _check_before_submit(episode: _Episode) -> Event:
    """A check precedes the submit, but not directly if it found something missing."""
    trace, work, submit, _ = episode
    if _CHECK not in trace.tools:
        return Event(False, False)
    check = _last(work, _is_check)
    if submit is None or check is None:
        return Event(True, False)
    return Event(True, not work[check].missing or submit - check > 1)


def _evidence_before_claim(episode: _Episode) -> Event:
    """What is claimed in the end has evidence, and some came before the first claim."""
    trace, work, submit, limits = episode
    shown = trace.steps if submit is None else trace.steps[: submit + 1]
    number = shown[-1].claims if shown else 0
    if not number or (trace.runs_code and not trace.needs_evidence):
        return Event(False, False)
    claimed = next(i for i, step in enumerate(shown) if step.claims)
    # A quotient is the nearest float to a decimal threshold; a product need not be.
    supported = shown[-1].evidence / number >= limits.evidence_share
    return Event(True, supported and any(s.gathers_evidence for s in work[:claimed]))


def _test_before_submit(episode: _Episode) -> Event:
    """The submitted artefact was tested, and not submitted right after failing."""
    trace, work, submit, _ = episode
    if not trace.runs_code:
        return Event(False, False)
    test = _last(work, _is_test)
    if submit is None or test is None:
        return Event(True, False)
    same = work[test].code_hash == trace.steps[submit].code_hash
    return Event(True, same and (not work[test].tests_failed or submit - test > 1))


def _revision_after_failure(episode: _Episode) -> Event:
    """Every failure is answered by a revision soon after."""
    trace, work, _, limits = episode
    failures = [i for i, step in enumerate(work) if _is_failure(step)]
    if not failures or _REVISE not in trace.tools:
        return Event(False, False)
    answers = [work[i + 1 : i + 1 + limits.revision_window] for i in failures]
    return Event(True, all(any(s.revises for s in answer) for answer in answers))


def _valid_tool_use(episode: _Episode) -> Event:
    """Nearly all tool calls are valid."""
    calls = [s.tool_valid for s in episode.work if s.tool_valid is not None]
    if not calls:
        return Event(False, False)
    return Event(True, sum(calls) / len(calls) >= episode.limits.valid_share)


def _stop_when_sufficient(episode: _Episode) -> Event:
    """Submitted by choice, with steps left, on a recent check that found nearly all."""
    trace, work, submit, limits = episode
    if _CHECK not in trace.tools:
        return Event(False, False)
    check = _last(work, _is_check)
    if submit is None or check is None or not trace.chose_submit:
        return Event(True, False)
    coverage = work[check].coverage
    sufficient = coverage is not None and coverage >= limits.coverage
    recent = submit - check <= limits.check_age
    return Event(True, sufficient and recent and _steps_left(episode))


def _early_submit(episode: _Episode) -> Event:
    """Penalty: submitted with too little done, by any of four signs."""
    trace, work, submit, limits = episode
    if submit is None:
        return Event(True, False)
    poor = trace.score is not None and trace.score < limits.early_score
    rushed = poor and submit / trace.max_steps <= limits.early_progress
    missing = trace.missing_share >= limits.early_missing and _steps_left(episode)
    failing = trace.runs_code and _pass_rate(work) < limits.early_pass_rate
    gathered = any(step.gathers_evidence for step in work)
    unfounded = trace.needs_evidence and trace.steps[submit].claims and not gathered
    return Event(True, bool(rushed or missing or failing or unfounded))


_DETECTORS: dict[str, Callable[[_Episode], Event]] = {
    "CheckBeforeSubmit": _check_before_submit,
    "EvidenceBeforeClaim": _evidence_before_claim,
    "TestBeforeSubmit": _test_before_submit,
    "RevisionAfterFailure": _revision_after_failure,
    "ValidToolUse": _valid_tool_use,
    "StopWhenSufficient": _stop_when_sufficient,
    "EarlySubmit": _early_submit,
}
EVENTS = tuple(_DETECTORS)
"""Names of the events, in the order of every table; the last one is a penalty."""


def _last(
    work: Sequence[ProcessStep], wanted: Callable[[ProcessStep], bool]
) -> int | None:
    return max((i for i, step in enumerate(work) if wanted(step)), default=None)


def _steps_left(episode: _Episode) -> bool:
    return episode.submit is not None and episode.submit < episode.trace.max_steps - 1


def _is_check(step: ProcessStep) -> bool:
    return step.action == _CHECK


def _is_test(step: ProcessStep) -> bool:
    return step.tests_passed is not None and not step.error


def _is_failure(step: ProcessStep) -> bool:
    return bool(step.error or step.tests_failed or step.missing or step.verify_failed)


def _pass_rate(work: Sequence[ProcessStep]) -> float:
    """Of the last test run; NaN, below no threshold, without one or without a test."""
    test = _last(work, _is_test)
    if test is None:
        return math.nan
    passed, failed = work[test].tests_passed or 0, work[test].tests_failed or 0
    return passed / (passed + failed) if passed + failed else math.nan
