"""Printing tables and text for people and for pipes."""

from __future__ import annotations

from typing import Any

__all__ = ["show"]


def show(renderable: Any) -> None:
    """Prints to the terminal; to a file or pipe in full width, without colours."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
        return
    console.width = 10_000
    with console.capture() as capture:
        console.print(renderable)
    # Tables pad every row to the longest, which may name a long problem.
    for line in capture.get().removesuffix("\n").split("\n"):
        print(line.rstrip())
