"""Evaluates untrusted code and writes what its calls return (child side).

Everything here shares a process with the untrusted code and may be subverted by it. It
is told no expected value, so that the worst a subverted run can send is a wrong answer.
One JSON pair `[kind, text]` a line: first how loading went, then one line a call.
Values are taken apart by the base types' own methods: an overridden `__repr__` or
`__eq__` has no say.
"""

from __future__ import annotations

import builtins
import json
import os
import random
import sys
import types
from collections.abc import Callable
from typing import Any

__all__ = ["ERROR_CHARS", "evaluate", "literal_text"]

ERROR_CHARS = 300
"""Longest text of an error."""

_PLAIN: tuple[Any, ...] = (int, float, complex, str, bytes)
_SETS: tuple[Any, ...] = (set, frozenset)
_DOES_NOT_COMPILE = (SyntaxError, ValueError, OverflowError, RecursionError)


def literal_text(value: object) -> str:
    """Python source of a value made of literals; subclasses count as their base type.

    `inf` and `nan` are written as those names, a frozenset as a set.

    Raises:
      TypeError: the value is not made of literals.
    """
    if value is None or isinstance(value, bool):
        return repr(value)
    for kind in _PLAIN:
        if isinstance(value, kind):
            return kind.__repr__(value)
    if isinstance(value, dict):
        pairs = dict.items(value)
        texts = [f"{literal_text(k)}: {literal_text(v)}" for k, v in pairs]
        return "{" + ", ".join(texts) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal_text, list.__iter__(value))) + "]"
    if isinstance(value, tuple):
        texts = [literal_text(item) for item in tuple.__iter__(value)]
        return "(" + ", ".join(texts) + ("," if len(texts) == 1 else "") + ")"
    for kind in _SETS:
        if isinstance(value, kind):
            texts = sorted(map(literal_text, kind.__iter__(value)))
            return "{" + ", ".join(texts) + "}" if texts else "set()"
    raise TypeError(f"the result, a {type(value).__name__}, is not a literal")


def _failure(error: BaseException) -> tuple[str, str]:
    kind = "memory" if isinstance(error, MemoryError) else "error"
    try:
        text = f"{type(error).__name__}: {error}"
    except BaseException:
        text = "an exception without a name or text"
    return kind, text[:ERROR_CHARS]


def _load(code: str) -> tuple[dict | None, tuple[str, str]]:
    module = types.ModuleType("solution")
    sys.modules["solution"] = module
    try:
        program = compile(code, "solution.py", "exec", dont_inherit=True)
    except _DOES_NOT_COMPILE as error:
        return None, ("syntax_error", _failure(error)[1])
    except BaseException as error:
        return None, _failure(error)
    try:
        exec(program, module.__dict__)
    except BaseException as error:
        return None, _failure(error)
    return module.__dict__, ("loaded", "")


def _call(call: str, namespace: dict, result_chars: int) -> tuple[str, str]:
    try:
        program = compile(call, "call", "eval", dont_inherit=True)
        text = literal_text(eval(program, namespace))
    except BaseException as error:
        return _failure(error)
    if len(text) > result_chars:
        return "error", f"the result is longer than {result_chars} characters"
    return "value", text


def _line_writer(handle: int) -> Callable[[tuple[str, str]], None]:
    # Bound now: the code may replace both names in their modules.
    dumps, write = json.dumps, os.write

    def write_line(pair: tuple[str, str]) -> None:
        data = dumps(pair).encode() + b"\n"
        while data:
            data = data[write(handle, data) :]

    return write_line


def evaluate(code: str, calls: list[str], handle: int, result_chars: int) -> None:
    """Runs `code` as a module named `solution`, then evaluates `calls` in it, in order.

    Args:
      code: source text.
      calls: source of expressions.
      handle: file descriptor for the lines.
      result_chars: a longer result is an error.
    """
    write_line = _line_writer(handle)
    # Unseeded draws of the code must not differ from run to run.
    random.seed(0)
    namespace, loaded = _load(code)
    write_line(loaded)
    if namespace is None:
        return
    namespace.setdefault("__builtins__", builtins)
    for call in calls:
        write_line(_call(call, namespace, result_chars))
