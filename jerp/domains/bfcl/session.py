"""One episode of a BFCL task: services of its own, and the official checker."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from jerp.domains.benchmark import Call, Move, Reply, Say, ToolSpec
from jerp.domains.bfcl.calls import call_to_text
from jerp.domains.bfcl.entries import Entry
from jerp.errors import InputError
from jerp.records import Criterion, Verdict

__all__ = ["BfclSession"]

MOST_BITS, MOST_DIGITS = 100_000, 10_000
"""Of results, and of the precision that is asked for."""

_NUMBERS = itertools.count()


class BfclSession:
    """An episode; words end a turn.

    Args:
      entry: the task.
      official: modules of `bfcl-eval`: `utils` executes, `checker` judges.
      announcement: what the user says where tools are added.
    """

    def __init__(self, entry: Entry, *, utils: Any, checker: Any, announcement: str):
        self._entry, self._announcement = entry, announcement
        self._utils, self._checker = utils, checker
        self._name = _fresh_name()
        self._turns: list[list[list[str]]] = [[]]
        self._ended = False

    @property
    def opening(self) -> str:
        """The user's first words."""
        return self._entry.said(0, self._announcement)

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """Of this turn; where functions are missing more come later."""
        return self._entry.offered(len(self._turns) - 1)

    def move(self, move: Move) -> Reply:
        """Calls a tool, or ends the turn and hears what the user says next."""
        if self._ended:
            return Reply("The conversation is over.", error=True, ended=True)
        return self._end_turn() if isinstance(move, Say) else self._call(move)

    def score(self) -> Verdict:
        """What the official checker says of the calls of all turns.

        As in the official evaluation a conversation that was broken off before its
        last turn has failed.
        """
        truth = self._entry.truth
        if len(self._turns) != len(truth):
            reason = f"broken off in turn {len(self._turns)} of {len(truth)}"
            return _verdict(False, reason)
        with _own_instances(self._utils) as name:
            found = self._checker.multi_turn_checker(
                self._turns, truth, self._entry.record, "", name
            )
        return _verdict(found["valid"], found.get("error_message", ""))

    def close(self) -> None:
        """Takes this episode's services out of the executor's module."""
        self._ended = True
        _forget(self._utils, self._name)

    def _end_turn(self) -> Reply:
        if len(self._turns) == len(self._entry.truth):
            self._ended = True
            return Reply("", ended=True)
        self._turns.append([])
        return Reply(self._entry.said(len(self._turns) - 1, self._announcement))

    def _call(self, call: Call) -> Reply:
        # As in the official harness a tool that comes later works before, for whoever
        # knows of it: the reference of miss_func_49 does.
        if call.tool not in {tool.name for tool in self._entry.tools}:
            offered = ", ".join(tool.name for tool in self.tools)
            return Reply(f"No such tool; there are: {offered}", error=True)
        if why := _endless(call):
            return Reply(why, error=True)
        try:
            text = call_to_text(call)
        except InputError as error:
            return Reply(str(error), error=True)
        self._turns[-1].append([text])
        record = self._entry.record
        (result,), _ = self._utils.execute_multi_turn_func_call(
            [text],
            record["initial_config"],
            record["involved_classes"],
            self._name,
            self._entry.key,
            long_context=self._entry.long_context,
        )
        return Reply(result, error=_refused(result))


def _endless(call: Call) -> str:
    """Why a call would not return in any time; empty where it would.

    Calls are made in this process, and whole numbers are as exact as they are long.
    """
    base, exponent = (call.arguments.get(name) for name in ("base", "exponent"))
    bits = 0
    if call.tool == "power" and isinstance(base, int) and isinstance(exponent, int):
        bits = abs(exponent) * base.bit_length()
    if bits > MOST_BITS:
        return f"Error: the result would have more than {MOST_BITS:,} bits"
    precision = call.arguments.get("precision")
    if isinstance(precision, int | float) and precision > MOST_DIGITS:
        return f"Error: precision is at most {MOST_DIGITS:,} digits"
    return ""


def _fresh_name() -> str:
    """No other episode of this process has it, and none begins with it."""
    return f"jerp_episode_{next(_NUMBERS)}_"


@contextmanager
def _own_instances(utils: Any) -> Iterator[str]:
    """A name under which the checker may keep services, for as long as it checks."""
    name = _fresh_name()
    try:
        yield name
    finally:
        _forget(utils, name)


def _forget(utils: Any, name: str) -> None:
    """The executor keeps services as globals of its module."""
    for key in [key for key in list(vars(utils)) if key.startswith(name)]:
        vars(utils).pop(key, None)


def _refused(result: str) -> bool:
    """Whether a tool says that it did nothing."""
    if result.startswith("Error during execution"):
        return True
    try:
        told = json.loads(result)
    except ValueError:
        return False
    return isinstance(told, dict) and "error" in told


def _verdict(valid: bool, reason: str) -> Verdict:
    return Verdict((Criterion("valid", float(valid), 1.0, False, reason),), valid)
