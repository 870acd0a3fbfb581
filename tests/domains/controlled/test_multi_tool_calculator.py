"""The calculator: literals, errors said in words, agreement with Python's parser."""

import ast
import operator
from fractions import Fraction
from random import Random

import pytest

from jerp.domains.controlled.multi_tool_calculator import (
    MAX_LENGTH,
    calculate,
    decimal,
)

OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def slow(text):
    """The value by Python's parse tree, decimals as written."""

    def value(node):
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        return Fraction(ast.get_source_segment(text, node))

    return value(ast.parse(text, mode="eval").body)


def draw(rng, depth):
    """Random arithmetic."""
    kind = rng.randrange(4) if depth else 0
    if kind == 0:
        return rng.choice(("7", "0.25", "12.5", "300"))
    if kind == 1:
        return f"-({draw(rng, depth - 1)})"
    inner = f"{draw(rng, depth - 1)} {rng.choice('+-*/')} {draw(rng, depth - 1)}"
    return f"({inner})" if kind == 2 else inner


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3 * (0.1 + 0.2)", Fraction(9, 10)),
        ("2 + 3 * 4", 14),
        ("8 - 3 - 2", 3),
        ("8 / 4 / 2", 1),
        ("-2 * -(3 - 5)", -4),
        (" 7 ", 7),
    ],
)
def test_hand_literals(text, value):
    assert calculate(text).value == value


def test_agrees_with_python_on_random_arithmetic():
    rng = Random(0)
    texts = [draw(rng, 4) for _ in range(300)]
    compared = 0
    for text in texts:
        if len(text) > MAX_LENGTH:
            continue
        try:
            expected = slow(text)
        except ZeroDivisionError:
            assert calculate(text).error == "division by zero"
            continue
        assert calculate(text).value == expected, text
        compared += 1
    assert compared > 150


def test_numbers_are_listed_in_order():
    assert calculate("2 * (0.5 + 3)").numbers == (2, Fraction(1, 2), 3)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "expected a number at the end"),
        ("3 *", "expected a number at the end"),
        ("3 4", "unexpected '4'"),
        ("3 * (2 + 1", "expected a closing parenthesis"),
        ("3)", "unexpected ')'"),
        ("* 3", "expected a number, got '*'"),
        ("3 kg", "unexpected 'k'"),
        ("2 ** 3", "expected a number, got '*'"),
        ("1e9", "unexpected 'e'"),
        ("__import__('os')", "unexpected '_'"),
        ("1 / (2 - 2)", "division by zero"),
        ("(" * 81, "expected at most 80 characters, got 81"),
    ],
)
def test_errors_are_said_not_raised(text, error):
    result = calculate(text)
    assert result.error == error and result.value is None and result.numbers == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Fraction(3, 8), "0.375"),
        (Fraction(-5, 4), "-1.25"),
        (Fraction(1, 100), "0.01"),
        (Fraction(120), "120"),
        (Fraction(0), "0"),
    ],
)
def test_decimal(value, text):
    assert decimal(value) == text


def test_decimal_refuses_what_has_none():
    with pytest.raises(ValueError, match="finite decimal, got 1/3"):
        decimal(Fraction(1, 3))
