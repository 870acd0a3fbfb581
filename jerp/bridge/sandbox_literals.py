"""Reading and comparing the literals that tests expect and sandboxed calls return.

What comes out of a sandbox is text chosen by untrusted code: it is parsed, never
evaluated, and whatever does not parse is no literal.
"""

from __future__ import annotations

import ast
import cmath
import math

from jerp.bridge.python_source import parse_python

__all__ = ["literals_match", "read_literal"]

RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-9, 1e-12
_SPECIAL = {"inf": math.inf, "nan": math.nan}


class _SpecialFloats(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in _SPECIAL:
            return ast.copy_location(ast.Constant(_SPECIAL[node.id]), node)
        return node


def read_literal(text: str) -> object:
    """The value of a Python literal; `inf` and `nan` are floats.

    Raises:
      ValueError: `text` is not a literal, or nested too deeply to read.
    """
    try:
        tree = _SpecialFloats().visit(parse_python(text.strip(), mode="eval"))
        return ast.literal_eval(tree)
    except (SyntaxError, TypeError, MemoryError, RecursionError, ValueError) as error:
        raise ValueError(f"not a Python literal: {text[:80]!r}") from error


def _exact(value: object) -> tuple[str, object]:
    """A hashable stand-in that tells `1`, `1.0` and `True` apart."""
    kind = type(value).__name__
    if isinstance(value, tuple):
        return kind, tuple(map(_exact, value))
    return kind, value


def _numbers_match(expected: complex, got: complex) -> bool:
    if isinstance(expected, int) and isinstance(got, int):
        return expected == got
    if expected == got or (expected != expected and got != got):
        return True
    return cmath.isclose(
        expected, got, rel_tol=RELATIVE_TOLERANCE, abs_tol=ABSOLUTE_TOLERANCE
    )


def literals_match(expected: object, got: object) -> bool:
    """Whether two literals are the same answer.

    As Python's `==`, but: `True` is not `1`; two floats, or a float and an integer, may
    differ by 1e-9 of the larger or by 1e-12; `nan` is `nan`. A list is not a tuple.
    Members of sets and keys of dictionaries must be equal and of the same type.
    """
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    if isinstance(expected, (int, float, complex)):
        if not isinstance(got, (int, float, complex)):
            return False
        try:
            return _numbers_match(expected, got)
        except OverflowError:
            return False
    if type(expected) is not type(got):
        return False
    if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        pairs = zip(expected, got, strict=False)
        return len(expected) == len(got) and all(literals_match(e, g) for e, g in pairs)
    if isinstance(expected, set) and isinstance(got, set):
        return set(map(_exact, expected)) == set(map(_exact, got))
    if isinstance(expected, dict) and isinstance(got, dict):
        values = {_exact(key): value for key, value in got.items()}
        return len(expected) == len(got) and all(
            _exact(key) in values and literals_match(value, values[_exact(key)])
            for key, value in expected.items()
        )
    return expected == got
