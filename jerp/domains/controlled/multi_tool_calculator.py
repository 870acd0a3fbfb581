"""A calculator for short arithmetic: a recursive-descent parser with exact fractions.

    sum     = product { ("+" | "-") product }
    product = factor { ("*" | "/") factor }
    factor  = "-" factor | "(" sum ")" | number

Numbers are decimals without sign or exponent. Nothing is ever evaluated as code, and no
value is rounded: `0.1 + 0.2` is 3/10.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["MAX_LENGTH", "Calculation", "calculate", "decimal"]

MAX_LENGTH = 80
"""Longer text is refused, which also bounds the depth of the recursion."""

_TOKEN = re.compile(r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<sign>[-+*/()]))")


@dataclass(frozen=True)
class Calculation:
    """What the calculator says of an expression.

    Attributes:
      value: exact, None after an error.
      numbers: the numbers in the expression, in order; empty after an error.
      error: what is wrong, empty where nothing is.
    """

    value: Fraction | None
    numbers: tuple[Fraction, ...] = ()
    error: str = ""


def calculate(expression: str) -> Calculation:
    """Parses and evaluates `expression`; what is wrong with it is said, not raised.

    Args:
      expression: arithmetic, see the module; at most `MAX_LENGTH` characters.

    Returns:
      A `Calculation`.

    Example:
      >>> calculate("3 * (0.1 + 0.2)").value
      Fraction(9, 10)
      >>> calculate("3 * (0.1 +").error
      'expected a number at the end'
    """
    if len(expression) > MAX_LENGTH:
        error = f"expected at most {MAX_LENGTH} characters, got {len(expression)}"
        return Calculation(None, error=error)
    try:
        parser = _Parser(_tokens(expression))
        value = parser.whole()
    except (_SyntaxError, ZeroDivisionError) as error:
        reason = str(error) if isinstance(error, _SyntaxError) else "division by zero"
        return Calculation(None, error=reason)
    return Calculation(value, tuple(parser.numbers))


def decimal(value: Fraction) -> str:
    """The shortest decimal text of `value`, exact.

    Args:
      value: a fraction whose denominator has no prime factors but 2 and 5.

    Returns:
      Digits with a point only where needed.

    Raises:
      ValueError: no finite decimal equals `value`.

    Example:
      >>> decimal(Fraction(3, 8)), decimal(Fraction(12))
      ('0.375', '12')
    """
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
        if places > value.denominator.bit_length():
            raise ValueError(f"value: expected a finite decimal, got {value}")
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    sign = "-" if value < 0 else ""
    if not places:
        return sign + digits
    digits = digits.rjust(places + 1, "0")
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


class _SyntaxError(Exception):
    """The text is no arithmetic."""


def _tokens(text: str) -> list[str]:
    text, tokens, place = text.rstrip(), [], 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _SyntaxError(f"unexpected {text[place:].strip()[:1]!r}")
        tokens.append(match["number"] or match["sign"])
        place = match.end()
    return tokens


class _Parser:
    """One token of look-ahead over `tokens`; keeps the numbers that it met."""

    def __init__(self, tokens: list[str]):
        self.left = tokens[::-1]
        self.numbers: list[Fraction] = []

    def whole(self) -> Fraction:
        value = self.sum()
        if self.left:
            raise _SyntaxError(f"unexpected {self.left[-1]!r}")
        return value

    def sum(self) -> Fraction:
        value = self.product()
        while self._next() in ("+", "-"):
            sign = self.left.pop()
            term = self.product()
            value = value + term if sign == "+" else value - term
        return value

    def product(self) -> Fraction:
        value = self.factor()
        while self._next() in ("*", "/"):
            sign = self.left.pop()
            term = self.factor()
            value = value * term if sign == "*" else value / term
        return value

    def factor(self) -> Fraction:
        token = self._next()
        if token is None:
            raise _SyntaxError("expected a number at the end")
        self.left.pop()
        if token == "-":
            return -self.factor()
        if token == "(":
            value = self.sum()
            if self._next() != ")":
                raise _SyntaxError("expected a closing parenthesis")
            self.left.pop()
            return value
        if not token[0].isdigit():
            raise _SyntaxError(f"expected a number, got {token!r}")
        self.numbers.append(Fraction(token))
        return self.numbers[-1]

    def _next(self) -> str | None:
        return self.left[-1] if self.left else None
