"""The `jerp` command: parses, calls, prints; a module for each subcommand.

Each subcommand is a dataclass whose call does the work and returns the exit status: 0
when all is well, 1 when something was checked and found wrong, 2 for a mistake or a
failure with its reason, 130 after Ctrl-C. What is slow to import is imported by the
subcommand that needs it, so that `jerp --help` answers at once; the app itself is
imported by `main`, so that Ctrl-C is answered in one line from then on.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Args:
      arguments: the words after `jerp`; None takes them from the command line.

    Returns:
      The exit status.
    """
    try:
        from jerp.cli.app import execute
    except KeyboardInterrupt:
        print("jerp: interrupted before anything began", file=sys.stderr)
        return 130
    return execute(list(sys.argv[1:] if arguments is None else arguments))
