"""Choosing a subcommand, running it, and turning errors into one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import tyro
from tyro.extras import SubcommandApp

from jerp.cli.models import ModelsList, ModelsPull
from jerp.cli.passkt import Passkt
from jerp.cli.run import RunHarness, run_harness
from jerp.cli.store import StoreVerify
from jerp.cli.trajectories import TrajectoriesCheck, TrajectoriesShow
from jerp.cli.version import Version
from jerp.cli.view import View
from jerp.errors import JerpError, UnknownNameError

__all__ = ["main"]

DESCRIPTION = "LLM agents that improve from their own trajectories."


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one subcommand.

    Args:
      arguments: the words after `jerp`; None takes them from the command line.

    Returns:
      The exit status.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        command = _app(words).cli(
            prog="jerp",
            description=DESCRIPTION,
            args=words,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitSubcommandPrefixes),
        )
        return command()
    except JerpError as error:
        print(f"jerp: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "jerp: interrupted; what was collected is kept, and the same command "
            "resumes",
            file=sys.stderr,
        )
        return 130


def _app(words: Sequence[str]) -> SubcommandApp:
    """All subcommands; the settings of `run` only if `words` ask for it."""
    harness = run_harness() if words[:1] == ["run"] else RunHarness
    groups: dict[str, tuple[str, dict[str, Callable[..., Any]]]] = {
        "run": ("Run an experiment.", {"harness": harness}),
        "trajectories": (
            "Look at stored episodes.",
            {"check": TrajectoriesCheck, "show": TrajectoriesShow},
        ),
        "models": ("Weights of executors.", {"pull": ModelsPull, "list": ModelsList}),
        "store": ("Recorded responses.", {"verify": StoreVerify}),
    }
    _check_word("command", words, ("version", *groups, "passkt", "view"))
    app = _group(version=Version)
    for name, (meaning, commands) in groups.items():
        if words[:1] == [name]:
            _check_word(f"command of jerp {name}", words[1:], commands)
        app.command(_group(**commands), name=name, help=meaning)
    app.command(name="passkt")(Passkt)
    app.command(name="view")(View)
    return app


def _check_word(kind: str, words: Sequence[str], known: Collection[str]) -> None:
    """Refuses a first word that is neither an option nor a `known` name."""
    if words and not words[0].startswith("-") and words[0] not in known:
        raise UnknownNameError(kind, words[0], known)


def _group(**commands: Callable[..., Any]) -> SubcommandApp:
    app = SubcommandApp()
    for name, command in commands.items():
        app.command(name=name)(command)
    return app
