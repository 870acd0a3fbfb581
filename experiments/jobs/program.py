"""A module as a program: its words, and one line for an error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from jerp.errors import JerpError

__all__ = ["run_program"]


def run_program(main: Callable[[list[str]], int]) -> NoReturn:
    """Ends this process with what `main` returns for the words given to it."""
    try:
        sys.exit(main(sys.argv[1:]))
    except JerpError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
