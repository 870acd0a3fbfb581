"""The tasks of BFCL v4 with several turns, from the package or a folder."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from jerp.domains.benchmark import Move, Say, ToolSpec
from jerp.domains.bfcl.calls import call_from_text
from jerp.domains.bfcl.entries import Entry, read_entries, read_tools
from jerp.domains.bfcl.session import BfclSession
from jerp.errors import MissingExtraError, UnknownNameError
from jerp.records import Task

__all__ = ["Bfcl"]

INSTALL = "pip install --no-deps bfcl-eval==2026.3.23"
"""Its pins want an older numpy, and torch, neither of which these tasks use."""

EVALUATION = "bfcl_eval.eval_checker.multi_turn_eval"
CONSTANTS = "bfcl_eval.constants"


class Bfcl:
    """BFCL v4 multi-turn: 200 tasks in each of four splits.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      data: folder with the official files; None takes those of the package.

    Raises:
      MissingExtraError: `bfcl-eval` is not installed.

    Reference:
      Patil et al., The Berkeley Function Calling Leaderboard, ICML 2025.
    """

    name = "bfcl"
    splits = ("base", "miss_func", "miss_param", "long_context")
    broken: Mapping[str, str] = {}

    def __init__(self, data: Path | None = None):
        try:
            self._utils = importlib.import_module(f"{EVALUATION}.multi_turn_utils")
            self._checker = importlib.import_module(f"{EVALUATION}.multi_turn_checker")
            importlib.import_module("mpmath")
        except ImportError as error:
            raise MissingExtraError("bfcl-eval", "benchmarks", INSTALL) from error
        self.version = version("bfcl-eval")
        self._folder = data or Path(str(self._utils.__file__)).parents[2] / "data"
        prompts = importlib.import_module(f"{CONSTANTS}.default_prompts")
        self._announcement = prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC
        self._entries: dict[str, dict[str, Entry]] = {}

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Those of a split; their kind is the services they need.

        Raises:
          UnknownNameError: no such split.
          StorageError: the files cannot be read.
        """
        return tuple(
            Task(
                key=f"bfcl/{split}/{key.rsplit('_', 1)[1]}",
                domain=self.name,
                difficulty=0,
                prompt=entry.said(0, self._announcement),
                payload={
                    "kind": "+".join(sorted(entry.record["involved_classes"])),
                    "split": split,
                    "id": key,
                    "turns": len(entry.truth),
                },
            )
            for key, entry in self._split(split).items()
        )

    def start(self, task: Task, *, seed: int = 0) -> BfclSession:
        """A fresh conversation; nothing in it depends on the seed."""
        return BfclSession(
            self._entry(task),
            utils=self._utils,
            checker=self._checker,
            announcement=self._announcement,
        )

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The reference calls of each turn, which words end."""
        entry = self._entry(task)
        names = {t.name: [*t.parameters.get("properties", {})] for t in entry.tools}
        moves: list[Move] = []
        for turn in entry.truth:
            moves += [call_from_text(text, names) for text in turn]
            moves.append(Say("That is all for now."))
        return tuple(moves)

    def close(self) -> None:
        """Nothing is held."""

    @cached_property
    def _tools(self) -> Mapping[str, tuple[ToolSpec, ...]]:
        services = importlib.import_module(f"{CONSTANTS}.executable_backend_config")
        types = importlib.import_module(f"{CONSTANTS}.type_mappings")
        return read_tools(
            self._folder,
            services.MULTI_TURN_FUNC_DOC_FILE_MAPPING,
            types.GORILLA_TO_OPENAPI,
        )

    def _split(self, split: str) -> dict[str, Entry]:
        """Entries by official identifier, read once."""
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        if split not in self._entries:
            found = read_entries(self._folder, split, self._tools)
            self._entries[split] = {entry.key: entry for entry in found}
        return self._entries[split]

    def _entry(self, task: Task) -> Entry:
        entries = self._split(task.payload["split"])
        if task.payload["id"] not in entries:
            raise UnknownNameError("task", task.payload["id"], entries)
        return entries[task.payload["id"]]
