"""The `jerp` command: parses, calls, prints; a module for each subcommand.

Each subcommand is a dataclass whose call does the work and returns the exit status: 0
when all is well, 1 when something was checked and found wrong, 2 for a mistake or a
failure with its reason, 130 after Ctrl-C. What is slow to import is imported by the
subcommand that needs it, so that `jerp --help` answers at once.
"""

from jerp.cli.app import main

__all__ = ["main"]
