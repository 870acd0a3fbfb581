"""The public part of the coding rubric: what can be said of code without running it.

Code is parsed, never run, in this process. The criteria are ordered; the first that
fails is what a revision hears of.
"""

from __future__ import annotations

import ast

from jerp.bridge.python_source import parse_python
from jerp.records import Criterion

__all__ = ["MAX_CHARACTERS", "public_criteria"]

MAX_CHARACTERS = 160
ALLOWED_IMPORTS = frozenset({"math", "re", "string", "itertools", "functools"})
FORBIDDEN_NAMES = frozenset(
    {"open", "exec", "eval", "compile", "input", "globals", "locals", "breakpoint"}
)


def public_criteria(code: str, name: str, arity: int) -> tuple[Criterion, ...]:
    """Judges `code`, which should define the function `name` of `arity` arguments.

    Criteria of equal weight, 1 or 0: `parses`, `defines`, `plain` (nothing imported but
    pure standard modules, no file, no evaluation of text, no double underscores) and
    `short`. Code that does not parse fails the first three.
    """
    tree, error = _parse(code)
    wrong = f"should define {name} with {arity} arguments"
    short = f"longer than {MAX_CHARACTERS} characters"
    return (
        _criterion("parses", tree is not None, error),
        _criterion("defines", tree is not None and _defines(tree, name, arity), wrong),
        _criterion("plain", tree is not None and _plain(tree), "uses a forbidden name"),
        _criterion("short", len(code) <= MAX_CHARACTERS, short),
    )


def _criterion(name: str, holds: bool, otherwise: str) -> Criterion:
    return Criterion(name, float(holds), 1.0, detail="" if holds else otherwise)


def _parse(code: str) -> tuple[ast.AST | None, str]:
    try:
        return parse_python(code), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # The parser's own message differs between versions of Python
        return None, "SyntaxError"


def _defines(tree: ast.AST, name: str, arity: int) -> bool:
    functions = [n for n in getattr(tree, "body", []) if isinstance(n, ast.FunctionDef)]
    named = [f.args for f in functions if f.name == name]
    return len(named) == 1 and len(named[0].posonlyargs + named[0].args) == arity


def _plain(tree: ast.AST) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {node.module or ""}
        elif isinstance(node, ast.Name | ast.Attribute):
            text = node.id if isinstance(node, ast.Name) else node.attr
            if text in FORBIDDEN_NAMES or text.startswith("__"):
                return False
            continue
        else:
            continue
        if not names <= ALLOWED_IMPORTS:
            return False
    return True
