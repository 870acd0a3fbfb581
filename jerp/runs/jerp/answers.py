"""What a reflector answered, before anything is done with it.

What an answer may not say is counted elsewhere, by reason. Here is what cannot be an
answer at all, which is a fault of the reflector and an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jerp.bridge.reflection import Operation, Reflection
from jerp.errors import InputError
from jerp.rules.edits import EditOp

__all__ = ["checked_answers"]

_REASON = re.compile(r"[\w-]{1,60}")


def checked_answers(answers: Any, number: int, *, reflector: str) -> list[Reflection]:
    """The reflections that a reflector answered with.

    Args:
      answers: what `reflect` returned.
      number: of occasions.
      reflector: its name.

    Raises:
      InputError: no list of so many reflections, or one of another form than
        `jerp.bridge.reflection.Reflection` says.

    Example:
      >>> checked_answers([Reflection(None)], 1, reflector="mine")
      Traceback (most recent call last):
      ...
      jerp.errors.InputError: reflector 'mine': reflection 0: expected operations in a \
tuple, got None
    """
    said = f"reflector {reflector!r}: "
    if not isinstance(answers, list | tuple):
        raise InputError(f"{said}expected a list of reflections, got {answers!r:.80}")
    if len(answers) != number:
        raise InputError(
            f"{said}expected {number} reflections, one an occasion, got {len(answers)}"
        )
    for place, answer in enumerate(answers):
        if (wrong := _fault(answer)) is not None:
            raise InputError(f"{said}reflection {place}: expected {wrong}")
    return list(answers)


def _fault(answer: Any) -> str | None:
    """What is expected of a reflection, and what came; None if it is one."""
    if not isinstance(answer, Reflection):
        return f"a Reflection, got {answer!r:.80}"
    operations, rejected = answer.operations, answer.rejected
    if not isinstance(operations, list | tuple):
        return f"operations in a tuple, got {operations!r:.80}"
    for operation in operations:
        if (wrong := _operation_fault(operation)) is not None:
            return wrong
    if not isinstance(rejected, Mapping):
        return f"rejected to be counts by reason, got {rejected!r:.80}"
    for reason, count in rejected.items():
        if not isinstance(reason, str) or not _REASON.fullmatch(reason):
            return f"reasons of one word in rejected, got {reason!r:.80}"
        if not _is_whole(count) or count < 0:
            return f"a count of rejected {reason!r}, got {count!r:.80}"
    return None


def _operation_fault(operation: Any) -> str | None:
    if not isinstance(operation, Operation):
        return f"an Operation, got {operation!r:.80}"
    op, targets = operation.op, operation.targets
    if not _is_whole(op) or op not in [*EditOp]:
        return f"an EditOp as op of an operation, got {op!r:.80}"
    if not isinstance(targets, Sequence | np.ndarray) or isinstance(targets, str):
        return f"rule ids as targets of {EditOp(op).name}, got {targets!r:.80}"
    for target in targets:
        if not _is_whole(target):
            return f"rule ids as targets of {EditOp(op).name}, got {target!r:.80}"
    return None


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
