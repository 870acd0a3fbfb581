"""What a run would ask of its executor, said before anything is spent.

Calls are bounds that follow from the settings. Tokens that are read are estimated: what
prompts at the start of some tasks have in characters, a token for each four of them.
Answers that the store has already, and equal requests, cost nothing and are not taken
off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from jerp.bridge.budget import Price
from jerp.bridge.executor import Request

__all__ = ["Asks", "print_plan", "prompt_tokens", "total_of", "user_asks"]

CHARACTERS = 4
"""Of a token, about, in English."""

USER_PROMPT = 1500
"""Tokens that who plays a user reads, about: scenario, and half of a conversation."""

USER_WRITES = 256
"""Tokens of its message, at most."""


@dataclass(frozen=True)
class Asks:
    """What one part of a run asks.

    Attributes:
      part: of the run.
      episodes: that it plays.
      calls: of the executor, at most.
      tokens_in: that it reads, about.
      tokens_out: that it writes, at most.
    """

    part: str
    episodes: int
    calls: int
    tokens_in: int
    tokens_out: int


def prompt_tokens(requests: Sequence[Request]) -> int:
    """Tokens of a prompt, about: the mean of some.

    Example:
      >>> from jerp.bridge.executor import Message
      >>> prompt_tokens([Request((Message("user", "12345678"),))])
      2
    """
    sizes = [
        sum(len(message.content) for message in request.messages)
        + sum(len(t.description) + len(t.parameters) for t in request.tools)
        for request in requests
    ]
    return round(sum(sizes) / len(sizes) / CHARACTERS) if sizes else 0


def user_asks(part: str, episodes: int, calls: int) -> Asks:
    """What an executor is asked that plays the user in episodes.

    Args:
      part: of the run.
      episodes: that it takes part in.
      calls: of whoever it talks to; it answers each at most.
    """
    return Asks(part, episodes, calls, calls * USER_PROMPT, calls * USER_WRITES)


def total_of(parts: Sequence[Asks]) -> Asks:
    """The sum, under the name of `all`."""

    def summed(value: Callable[[Asks], int]) -> int:
        return sum(map(value, parts))

    return Asks(
        "all",
        summed(lambda p: p.episodes),
        summed(lambda p: p.calls),
        summed(lambda p: p.tokens_in),
        summed(lambda p: p.tokens_out),
    )


def print_plan(
    parts: Sequence[Asks], price: Price | None, stored: int, console: Console
) -> dict[str, Any]:
    """Prints the plan as a table, and returns its sums.

    Args:
      parts: of the run, in order.
      price: of the model's tokens; None where it is not known.
      stored: answers that the run's store has already.
      console: to print to.
    """
    table = Table(title="what this run would ask; nothing was asked", box=None)
    for column in ("part", "episodes", "calls <=", "read ~", "written <=", "cost <~"):
        first = column == "part"
        table.add_column(column, justify="left" if first else "right", no_wrap=first)
    total = total_of(parts)
    for row in (*parts, total):
        table.add_row(
            row.part,
            *(_short(n) for n in (row.episodes, row.calls, row.tokens_in)),
            _short(row.tokens_out),
            _dollars(row, price),
        )
    console.print(table)
    console.print(
        "read and written: tokens, of prompts estimated from their characters. Equal "
        f"requests are asked once, and {stored:,} answers are in the run's store."
    )
    if price is None:
        console.print("cost: unknown; --prices FILE says what a token costs")
    return {
        "calls": total.calls,
        "tokens_in": total.tokens_in,
        "tokens_out": total.tokens_out,
        "dollars": None if price is None else _cost(total, price),
    }


def _short(number: int) -> str:
    """With three digits or more, so that a row fits into a terminal's width.

    Example:
      >>> _short(9_876), _short(45_678), _short(12_345_678)
      ('9,876', '46 k', '12.3 M')
    """
    if number < 10_000:
        return f"{number:,}"
    if number < 1_000_000:
        return f"{number / 1e3:.0f} k"
    return f"{number / 1e6:.1f} M"


def _cost(asks: Asks, price: Price) -> float:
    return price.dollars(asks.tokens_in, asks.tokens_out)


def _dollars(asks: Asks, price: Price | None) -> str:
    return "?" if price is None else f"${_cost(asks, price):,.2f}"
