"""Parsing of Python text that a model wrote, safe to call from several threads.

CPython 3.11 counts the depth of a syntax tree in one counter of the interpreter, so two
threads that parse at once end in "AST constructor recursion depth mismatch"; and
warning filters belong to the process. One lock serves both.
"""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Literal

__all__ = ["parse_python"]

_PARSING = threading.Lock()


def parse_python(source: str, *, mode: Literal["exec", "eval"] = "exec") -> ast.AST:
    """The syntax tree of `source`, without the warnings that its literals earn.

    Raises:
      SyntaxError, ValueError, RecursionError, MemoryError: it does not parse, or is
        nested too deeply to.
    """
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode=mode)
