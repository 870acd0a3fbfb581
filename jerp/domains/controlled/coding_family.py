"""What a family of small programming problems is.

A family is a Python function: its name and positional arguments are the signature that
a task shows, its docstring the statement, its keyword-only arguments the parameters in
which tasks differ, its result what the tests expect. Arguments are drawn by their
names: `n`, `a`, `b` whole numbers, `m` one above zero, `xs` a list of numbers, `s` a
word, `ws` a list of words, `text` words in one string.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

__all__ = ["Family", "draw", "family"]

_WORDS = """
amber anchor apple basket bottle bridge candle camel carpet castle cloud copper
dance dust eagle engine ember falcon feather forest garden ginger hammer harbor
island jacket kettle ladder lemon level maple marble meadow minute mirror monkey
needle ocean orange paper pencil pepper pillow planet pocket radar river rocket
saddle saucer silver stone sugar table thunder tiger tower tunnel velvet violet
wagon water willow winter yellow zebra
"""
WORDS = _WORDS.split()


@dataclass(frozen=True)
class Family:
    """Problems that differ in their parameters alone.

    Attributes:
      difficulty: 0, 1 or 2.
      solve: `(*arguments, **parameters) -> result`.
      grid: values of each parameter.
      edges: arguments that are among the hidden tests of every problem.
    """

    difficulty: int
    solve: Callable[..., Any]
    grid: Mapping[str, Sequence[Any]]
    edges: tuple[tuple[Any, ...], ...]

    @property
    def name(self) -> str:
        """Name of the function."""
        return self.solve.__name__

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Names of the positional arguments."""
        return tuple(inspect.getfullargspec(self.solve).args)

    def statement(self, values: Mapping[str, Any]) -> str:
        """One line that says what the function returns."""
        return (self.solve.__doc__ or "").format(**values)


def family(
    difficulty: int, *, edges: tuple[tuple[Any, ...], ...] = (), **grid: Sequence[Any]
) -> Callable[[Callable[..., Any]], Family]:
    """Decorates a function into a family."""
    return lambda solve: Family(difficulty, solve, grid, edges)


def draw(rng: Random, argument: str) -> Any:
    """A value for the argument of that name."""
    if argument in ("n", "a", "b"):
        return rng.randint(-12, 40)
    if argument == "m":
        return rng.randint(1, 99)
    if argument == "xs":
        return [rng.randint(-9, 25) for _ in range(rng.randint(3, 6))]
    if argument == "s":
        return rng.choice(WORDS)
    words = [rng.choice(WORDS) for _ in range(rng.randint(2, 5))]
    return words if argument == "ws" else " ".join(words)
