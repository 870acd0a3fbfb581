"""Small programs as the place where skills are followed.

An episode is a single draft of code: the least that can be judged. The public tests are
run on it for the sake of the evidence, and no revision follows, which would mend by the
test what the skill left wrong, at twice the price.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from experiments.wer.text_place import TextPlace
from jerp.bridge.sandbox import Sandbox
from jerp.bridge.store import ResponseStore
from jerp.domains.controlled.coding import CodingDomain
from jerp.records import Task
from jerp.typing import Outcome

__all__ = ["coding_place", "reference_code", "secrets_of", "told_program"]


@contextmanager
def coding_place(store: ResponseStore) -> Iterator[TextPlace]:
    """Opens the sandbox; verdicts of tests are kept in the store."""
    with Sandbox(store=store) as sandbox:
        yield TextPlace(
            CodingDomain(sandbox),
            context=_context,
            secrets=secrets_of,
            reference=_judged_reference,
            told=told_program,
        )


def reference_code(task: Task) -> str:
    """A program that passes all tests of a task, for it has looked them up."""
    name, rows = task.payload["name"], task.payload["hidden"]
    arguments = task.prompt.partition("(")[2].rpartition(")")[0]
    table = ", ".join(f"{call!r}: {expected}" for call, expected in rows)
    called = f"'{name}(' + ', '.join(map(repr, [{arguments}])) + ')'"
    return f"{task.prompt}\n    return {{{table}}}[{called}]"


def told_program(content: Any) -> str:
    """A run in words: the program and what its public tests said."""
    shown = [step for step in content if step["action"] in ("draft", "call-tool")]
    lines = (step["observation"] or step.get("error", "") for step in shown)
    return "\n".join(lines)


def _context(task: Task) -> str:
    return (
        "To complete a Python function by one expression, such as:\n"
        f"# {task.payload['statement']}\n{task.prompt}"
    )


def secrets_of(task: Task) -> list[str | int | float]:
    """What a skill for others may not name: the function, and numbers and letters."""
    values = task.payload["parameters"].values()
    told = [v for v in values if any(c.isalnum() for c in str(v))]
    return [task.payload["name"], *told]


def _judged_reference(task: Task) -> Outcome:
    """Judged anew each time: no stored verdict tells whether the tests are steady."""
    with Sandbox() as sandbox:
        domain = CodingDomain(sandbox)
        workspace = domain.begin(task, 0)
        verdict = domain.verify(task, reference_code(task), workspace)
    return Outcome.SUCCESS if verdict.success else Outcome.FAILURE
