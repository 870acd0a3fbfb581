"""Episodes of the released code as `ProcessTrace`, mapped field by field."""

import json
from dataclasses import replace
from pathlib import Path

from jerp.harness.actions import ACTIONS
from jerp.records import ProcessStep, ProcessTrace

GOLDEN = Path(__file__).parents[1] / "golden"

ACTION = {
    "read_input": "observe",
    "read_problem": "observe",
    "observe": "observe",
    "search": "retrieve",
    "read_memory_chunk": "retrieve",
    "use_tool": "call-tool",
    "run_code": "call-tool",
    "run_tests": "call-tool",
    "verify_solution": "call-tool",
    "draft": "draft",
    "write_code": "draft",
    "check_rubric": "check",
    "revise_solution": "revise",
    "revise_code": "revise",
    "submit": "submit",
}
GATHERS_EVIDENCE = {"read_input", "search", "read_memory_chunk"}
IS_TOOL = {"search", "run_code", "use_tool"}
RUNS_TESTS = {"run_code", "run_tests"}
FAILURE_WORDS = ("fail", "invalid", "missing")


def load(name: str) -> list[dict]:
    return json.loads((GOLDEN / f"{name}.json").read_text())["cases"]


def peer_trace(records: list[dict]) -> ProcessTrace:
    """The trace that makes our events read what the peer's code read."""
    first, last = records[0], records[-1]
    meta = first.get("task_meta", {})
    offered = first.get("available_tools")
    final = last.get("final_rubric_score", {})
    max_steps = first.get("task_max_steps")
    coding = first["task_type"] == "coding"
    budget = first.get("cost_budget")
    missing, number = len(final.get("missing_items", ())), first.get("n_criteria")
    return ProcessTrace(
        steps=_steps(records, offered),
        max_steps=max_steps or 10,
        cost_budget=float("inf") if budget is None else budget,
        # A revision is no tool to the peer: it may always be made.
        tools=ACTIONS if offered is None else (*map(_tool, offered), "revise"),
        score=final.get("rubric_score_norm"),
        missing_share=missing / number if number else 0.0,
        runs_code=coding or meta.get("requires_code_execution", False),
        needs_evidence=meta.get("requires_evidence", False),
        # Where the peer knows no step budget it cannot see a choice.
        chose_submit=last.get("termination_reason") == "submit" and bool(max_steps),
    )


def change(trace: ProcessTrace, index: int, **fields) -> ProcessTrace:
    """The trace with some fields of one step changed."""
    steps = list(trace.steps)
    steps[index] = replace(steps[index], **fields)
    return replace(trace, steps=tuple(steps))


def _tool(name: str) -> str:
    return ACTION.get(name, name)


def _steps(records: list[dict], offered: list[str] | None) -> tuple[ProcessStep, ...]:
    known: set[str] = set()
    steps = []
    for record in records:
        facts = set((record["observation"] or {}).get("extracted_facts", ()))
        step = _step(record, offered)
        steps.append(replace(step, new_facts=len(facts - known)))
        known |= facts
    return tuple(steps)


def _step(record: dict, offered: list[str] | None) -> ProcessStep:
    name, observation = record["action"], record["observation"] or {}
    succeeded = observation.get("status") == "success"
    tests = observation.get("test_results") if name in RUNS_TESTS else None
    draft = record.get("draft_state", {})
    rubric = record.get("rubric_status", {}) if name == "check_rubric" else None
    summary = observation.get("summary", "")
    tool = observation.get("tool_name", name)
    return ProcessStep(
        action=ACTION[name],
        arguments=json.dumps([name, record.get("args", {})]),
        error=observation.get("status") == "error",
        coverage=rubric.get("coverage") if rubric is not None else None,
        missing=tuple(rubric.get("missing_ids", ())) if rubric is not None else None,
        tests_passed=tests["passed"] if tests else None,
        tests_failed=tests["failed"] if tests else None,
        verify_failed=any(word in summary.lower() for word in FAILURE_WORDS)
        if name == "verify_solution"
        else None,
        code_hash=draft.get("code_hash"),
        claims=len(draft.get("claims", ())),
        evidence=len(draft.get("claims_with_evidence", ())),
        gathers_evidence=name in GATHERS_EVIDENCE and succeeded,
        tool_valid=(succeeded and (offered is None or tool in offered))
        if name in IS_TOOL
        else None,
        revises=ACTION[name] == "revise",
        cost=observation.get("cost") or 0.0,
    )
