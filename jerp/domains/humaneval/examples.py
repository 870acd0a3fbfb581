"""The examples in a docstring, as test cases: a call, and what it should return.

Docstrings word them in many ways: after a prompt of the interpreter, or as `f(1) == 2`,
with arrows, or with "returns". What cannot be read for certain is left out.
"""

from __future__ import annotations

import ast
import doctest
import re
from collections.abc import Iterator

from jerp.bridge.python_source import parse_python
from jerp.bridge.sandbox import TestCase
from jerp.errors import ConfigError

__all__ = ["examples_of"]

MOST = 8
"""Examples that are taken."""

_SAYS = re.compile(
    r"\s*#?\s*(?:==?>?|➞|→|[-–]>|(?:should |will |must )?(?:returns?|be|gives?)\b:?)\s*"
)
_OPERATOR = re.compile(r"\s*[-+*/%=]")
_OTHER_NAMES = {"true": "True", "false": "False", "null": "None"}
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def examples_of(prompt: str, name: str) -> tuple[TestCase, ...]:
    r"""The examples in the docstring of a function, each once, in their order.

    Args:
      prompt: Python that ends with the function's head and its docstring.
      name: of the function.

    Example:
      >>> prompt = "def f(x):\n    'f(1) -> 2. And f([3]) returns [4], f(x) is 0.'"
      >>> [(case.call, case.expected) for case in examples_of(prompt, "f")]
      [('f(1)', '2'), ('f([3])', '[4]')]
    """
    text = _docstring(prompt, name)
    found = dict.fromkeys([*_of_the_interpreter(text, name), *_of_lines(text, name)])
    return tuple(found)[:MOST]


def _docstring(prompt: str, name: str) -> str:
    try:
        tree = parse_python(prompt)
    except _UNREADABLE:
        return ""
    body = getattr(tree, "body", [])
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    own = [node for node in functions if node.name == name]
    return ast.get_docstring(own[-1]) or "" if own else ""


def _of_the_interpreter(text: str, name: str) -> Iterator[TestCase]:
    try:
        examples = doctest.DocTestParser().get_examples(text)
    except ValueError:
        return
    for example in examples:
        call, value = example.source.strip(), _literal(example.want.strip())
        if value is not None and _is_call(call, name):
            yield TestCase(call, value)


def _of_lines(text: str, name: str) -> Iterator[TestCase]:
    for line in text.splitlines():
        for begin in re.finditer(rf"(?<!\w){re.escape(name)}\(", line):
            call = _call(line[begin.start() :], name)
            if call is None:
                continue
            rest = line[begin.start() + len(call) :]
            says = _SAYS.match(rest)
            value = says and _first_literal(rest[says.end() :])
            if value is not None:
                yield TestCase(call, value)


def _call(text: str, name: str) -> str | None:
    """The call with which a text begins."""
    for end in re.finditer(r"\)", text):
        if _is_call(text[: end.end()], name):
            return text[: end.end()]
    return None


def _is_call(text: str, name: str) -> bool:
    """Whether a text is a call of the function, with nothing but literals."""
    try:
        call = getattr(parse_python(text, mode="eval"), "body", None)
    except _UNREADABLE:
        return False
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    inner = (node for part in call.args for node in ast.walk(part))
    return call.func.id == name and not any(isinstance(n, ast.Name) for n in inner)


def _first_literal(text: str) -> str | None:
    """The longest literal with which a text begins; none of a sum that is spelt out."""
    words = text.split(" ")
    for number in range(len(words), 0, -1):
        value = _literal(" ".join(words[:number]).strip().rstrip(".,;"))
        if value is not None:
            goes_on = _OPERATOR.match(" ".join(words[number:]))
            return None if goes_on else value
    return None


def _literal(text: str) -> str | None:
    """A literal, with the names that other languages have for a few made Python's."""
    text = _OTHER_NAMES.get(text, text)
    try:
        TestCase("", text)
    except ConfigError:
        return None
    return text
