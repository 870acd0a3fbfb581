"""Choosing a subcommand, running it, and turning errors into one line."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Any

import tyro
from tyro.extras import SubcommandApp

from jerp.cli.conformance import ConformanceCheck
from jerp.cli.models import ModelsList, ModelsPull
from jerp.cli.ope import Ope
from jerp.cli.passkt import Passkt, PassktPlan
from jerp.cli.rules import (
    RulesDiff,
    RulesEdit,
    RulesExport,
    RulesImport,
    RulesShow,
)
from jerp.cli.run import (
    RunGigpoVsGrpo,
    RunHarness,
    RunJerp,
    RunPassSurface,
    RunWer,
    run_commands,
)
from jerp.cli.sandbox import SandboxReport
from jerp.cli.serve import Serve
from jerp.cli.skills import SkillsDiff, SkillsExport, SkillsShow, SkillsTree
from jerp.cli.store import StoreVerify
from jerp.cli.train import TrainHarness
from jerp.cli.trajectories import TrajectoriesCheck, TrajectoriesShow
from jerp.cli.version import Version
from jerp.cli.view import View
from jerp.errors import ConfigError, JerpError, UnknownNameError

__all__ = ["execute"]

DESCRIPTION = "LLM agents that improve from their own trajectories."

INTERRUPTED = {
    "run": "what was collected is kept, and the same command resumes",
    "train": "nothing was written, and the same command begins anew",
    "ope": "nothing was written, and the same command begins anew",
    "rules": "the pool is as it was, and a copy that was open in an editor is kept",
    "passkt": "the folder of results is whole, as it was or new, and the same command "
    "begins anew",
    "conformance": "nothing was written, and the same command begins anew",
    "serve": "answers under way were not finished",
    "passkt plan": "nothing was written, and the same command begins anew",
}


def execute(words: Sequence[str]) -> int:
    """Runs the subcommand that the words name; an error becomes one line.

    Returns:
      The exit status.
    """
    _escape_what_output_cannot_encode()
    try:
        _check_options(words)
        command = _app(words).cli(
            prog="jerp",
            description=DESCRIPTION,
            args=words,
            config=(tyro.conf.FlagCreatePairsOff, tyro.conf.OmitSubcommandPrefixes),
        )
        status = command()
        # Only now does a full disk behind a redirection show.
        sys.stdout.flush()
        return status
    except JerpError as error:
        print(f"jerp: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        _drop_output()
        print(f"jerp: {_reason(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        names = (" ".join(words[:2]), *words[:1])
        kept = next((INTERRUPTED[name] for name in names if name in INTERRUPTED), None)
        text = "interrupted" + (f"; {kept}" if kept else "")
        print(f"jerp: {text}", file=sys.stderr)
        return 130


def _escape_what_output_cannot_encode() -> None:
    """A name that the terminal cannot show is no reason to stop halfway."""
    out = sys.stdout
    strict = getattr(out, "errors", None) in ("strict", "surrogateescape")
    if strict and isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")


def _reason(error: OSError) -> str:
    """What the system says, in one line, with the file if it names one."""
    reason = " ".join((error.strerror or str(error)).split()) or type(error).__name__
    return reason if error.filename is None else f"{error.filename}: {reason}"


def _drop_output() -> None:
    """Lets go of output that nobody takes, lest Python complain of it at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _app(words: Sequence[str]) -> SubcommandApp:
    """All subcommands; the settings of `run` only if `words` ask for it."""
    outlines = {
        "harness": RunHarness,
        "gigpo-vs-grpo": RunGigpoVsGrpo,
        "jerp": RunJerp,
        "pass-surface": RunPassSurface,
        "wer": RunWer,
    }
    experiments = run_commands() if words[:1] == ["run"] else outlines
    groups: dict[str, tuple[str, dict[str, Callable[..., Any]]]] = {
        "run": ("Run an experiment.", {**experiments}),
        "train": ("Learn from stored episodes.", {"harness": TrainHarness}),
        "trajectories": (
            "Look at stored episodes.",
            {"check": TrajectoriesCheck, "show": TrajectoriesShow},
        ),
        "rules": (
            "Pools of rules.",
            {
                "show": RulesShow,
                "edit": RulesEdit,
                "diff": RulesDiff,
                "import": RulesImport,
                "export": RulesExport,
            },
        ),
        "skills": (
            "Skills in words.",
            {
                "show": SkillsShow,
                "diff": SkillsDiff,
                "tree": SkillsTree,
                "export": SkillsExport,
            },
        ),
        "models": ("Weights of executors.", {"pull": ModelsPull, "list": ModelsList}),
        "store": ("Recorded responses.", {"verify": StoreVerify}),
    }
    others = ("conformance", "ope", "passkt", "sandbox", "serve", "view")
    _check_word("command", words, ("version", *groups, *others))
    app = _group(version=Version)
    for name, (meaning, commands) in groups.items():
        if words[:1] == [name]:
            _check_word(f"command of jerp {name}", words[1:], commands)
        app.command(_group(**commands), name=name, help=meaning)
    app.command(name="conformance")(ConformanceCheck)
    app.command(name="ope")(Ope)
    if words[:2] == ["passkt", "plan"]:
        app.command(_group(plan=PassktPlan), name="passkt", help="Plan a comparison.")
    else:
        app.command(name="passkt")(Passkt)
    app.command(name="sandbox")(SandboxReport)
    app.command(name="serve")(Serve)
    app.command(name="view")(View)
    return app


def _check_word(kind: str, words: Sequence[str], known: Collection[str]) -> None:
    """Refuses a first word that is neither an option nor a `known` name."""
    if words and not words[0].startswith("-") and words[0] not in known:
        raise UnknownNameError(kind, words[0], known)


def _check_options(words: Sequence[str]) -> None:
    """Refuses an empty word, and an option that is given twice.

    An empty path would be the folder that the command runs in, and of an option that is
    given twice the parser keeps the last alone.
    """
    seen: set[str] = set()
    for before, word in zip(("", *words), words, strict=False):
        option, is_assigned, value = word.partition("=")
        is_option = option.startswith("--")
        if not word or (is_option and is_assigned and not value):
            name = option if is_option else before
            name = name if name.startswith("--") else "command line"
            raise ConfigError(
                f"{name}: expected a name or path, got an empty text; is a variable of "
                "the shell not set?"
            )
        name = option.replace("_", "-")
        if is_option and name in seen:
            raise ConfigError(
                f"{name}: expected once, got twice; give all its values after one"
            )
        if is_option:
            seen.add(name)


def _group(**commands: Callable[..., Any]) -> SubcommandApp:
    app = SubcommandApp()
    for name, command in commands.items():
        app.command(name=name)(command)
    return app
