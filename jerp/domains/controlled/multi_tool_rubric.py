"""The rubric of the multi-tool domain: what a draft is, what its public part can see.

A draft is an arithmetic expression. Which columns a question names is public, how they
are to be combined is not: a check can ask for the operands, only the verifier knows the
value. A criterion counts only where those it builds on hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from jerp.domains.controlled.multi_tool_calculator import calculate
from jerp.domains.controlled.multi_tool_tasks import operands
from jerp.records import Task

__all__ = ["PUBLIC", "WEIGHTS", "known_share", "public_scores", "scores"]

WEIGHTS = {"correct": 0.6, "tools": 0.15, "unit": 0.1, "operands": 0.1, "form": 0.05}
PUBLIC = ("form", "operands", "unit")

Rows = Sequence[Sequence[str | int]]


def public_scores(
    task: Task, draft: str | None, rows: Rows, *, converted: bool
) -> dict[str, float]:
    """The criteria that a check may ask, each 0 or 1.

    Args:
      task: the task.
      draft: an expression.
      rows: what the SELECT gave; empty before it ran.
      converted: the unit converter ran on them.

    Returns:
      `form`: the expression has a value, above 0. `operands`: good form, and its
      numbers are the amounts and the cells that the question names, each once, in
      either unit. `unit`: those operands, in the question's unit, by the converter.
    """
    result = calculate(draft or "")
    form = result.value is not None and result.value > 0
    numbers = sorted(result.numbers)
    asked = [_operands(task, rows, converted=unit) for unit in (False, True) if rows]
    named = form and numbers in asked
    return {
        "form": float(form),
        "operands": float(named),
        "unit": float(named and converted and numbers == asked[-1]),
    }


def scores(
    task: Task, draft: str | None, rows: Rows, *, converted: bool, calculated: bool
) -> dict[str, float]:
    """All criteria, each 0 or 1; the verifier's own, since they need the gold answer.

    `correct`: exactly the gold value. `tools`: correct, and table, converter and
    calculator were used, in this order; `calculated` says that the calculator ran on
    this very draft, written over the rows as they are now.
    """
    public = public_scores(task, draft, rows, converted=converted)
    gold = Fraction(task.payload["hidden"]["answer"])
    correct = calculate(draft or "").value == gold
    tools = correct and bool(rows) and converted and calculated
    return {"correct": float(correct), "tools": float(tools), **public}


def known_share(task: Task, draft: str, rows: Rows, *, converted: bool) -> float:
    """Share of a draft's numbers that question or rows in hand state; 0 of none."""
    numbers = calculate(draft).numbers
    known = {Fraction(amount) for amount in task.payload["amounts"]}
    if rows:
        known |= set(_operands(task, rows, converted=converted))
    return sum(n in known for n in numbers) / len(numbers) if numbers else 0.0


def _operands(task: Task, rows: Rows, *, converted: bool) -> list[Fraction]:
    return sorted(map(Fraction, operands(task.payload, rows, converted=converted)))
