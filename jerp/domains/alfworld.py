"""ALFWorld: household tasks in text, by its package's domain and TextWorld's engine.

Games are those of the official download, or of `jerp.domains.alfworld_instances`.
"""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jerp.domains.benchmark import Move
from jerp.domains.commands import CommandSession, IdleWorlds, command, until_over
from jerp.domains.text_games import WANTED, TextGame
from jerp.errors import ConfigError, MissingExtraError, StorageError, UnknownNameError
from jerp.records import Task

__all__ = ["KINDS", "AlfWorld", "new_world", "plan"]

KINDS = (
    *("pick_and_place_simple", "look_at_obj_in_light", "pick_two_obj_and_place"),
    *("pick_clean_then_place_in_recep", "pick_heat_then_place_in_recep"),
    "pick_cool_then_place_in_recep",
)
"""The six official types of tasks."""

VARIABLE = "ALFWORLD_DATA"

PARTS = ("pddl_domain", "pddl_problem", "grammar")
"""Of a game."""

GOAL = re.compile(r"Your task is to: ([^\"\\]*?)\.?(?=[\"\\])")


class AlfWorld:
    """Games of a folder; its parts, such as `valid_seen`, are the splits.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      data: folder of the official download, or its folder json_2.1.1; None takes that
        of the variable ALFWORLD_DATA, or ~/.cache/alfworld.
      max_steps: of an episode; 50 are official.

    Raises:
      MissingExtraError: `alfworld` is not installed, or not its planner.
      ConfigError: no games are there, or no step is allowed.

    Reference:
      Shridhar et al., ALFWorld: Aligning Text and Embodied Environments for Interactive
      Learning, ICLR 2021.
    """

    name = "alfworld"
    broken: Mapping[str, str] = {}

    def __init__(self, data: Path | None = None, *, max_steps: int = 50):
        named = data or os.environ.get(VARIABLE)
        _require()
        if max_steps < 1:
            raise ConfigError(f"max_steps: expected at least 1, got {max_steps}")
        self.version = version("alfworld")
        self._max_steps = max_steps
        self._folder, self.splits = _games(
            Path(named or Path.home() / ".cache" / "alfworld")
        )
        self._worlds = IdleWorlds[Any](new_world, lambda world: None)
        self._listed = cache(self._list)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """The games that the official code would play: solvable, of the six types.

        Raises:
          UnknownNameError: no such split.
          StorageError: a file cannot be read.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return self._listed(split)

    def start(self, task: Task, *, seed: int = 0) -> CommandSession:
        """The game from its start; nothing in it depends on the seed.

        Raises:
          StorageError: the file cannot be read.
        """
        told, world = self._game(task), self._worlds.take()
        world.load(told)
        game = TextGame(world, max_steps=self._max_steps)
        opening = game.state["feedback"].strip()
        return game.session(opening, lambda: self._worlds.give(world))

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The game's walkthrough; without one, or if it is too long, a plan.

        Raises:
          StorageError: the file cannot be read.
        """
        game = self._game(task)
        path = game.get("walkthrough") or ()
        world = self._worlds.take()
        if not 0 < len(path) <= self._max_steps:
            path = plan(world, game)
        world.load(game)
        world.reset()
        needed = until_over(path, lambda line: world.step(line)[2])
        self._worlds.give(world)
        return tuple(command(line) for line in needed)

    def close(self) -> None:
        """Forgets the worlds that it kept for further games."""
        self._worlds.close()

    def _game(self, task: Task) -> dict[str, Any]:
        return _read(self._folder / task.payload["file"], PARTS)

    def _list(self, split: str) -> tuple[Task, ...]:
        found = []
        for file in sorted((self._folder / split).rglob("game.tw-pddl")):
            inner = file.relative_to(self._folder)
            if "movable" in str(inner) or "Sliced" in str(inner):
                continue  # officially left out as well
            kind = _read(file.with_name("traj_data.json"), ("task_type",))["task_type"]
            game = _read(file, PARTS)
            if game.get("solvable") and kind in KINDS:
                found.append(_task(inner, game, kind))
        return tuple(found)


def new_world() -> Any:
    """The engine as the official code sets it up; it loads games by `load`.

    It holds a copy of the planner that nothing unloads, so it is for many games.

    Raises:
      MissingExtraError: `alfworld` is not installed, or not its planner.
    """
    engine, infos = _require()
    core = importlib.import_module("textworld")
    wanted = core.EnvInfos(**dict.fromkeys(WANTED, True), extras=["walkthrough"])
    return infos.AlfredDemangler(engine.PddlEnv(wanted), shuffle=False)


def plan(world: Any, game: Mapping[str, Any]) -> tuple[str, ...]:
    """The planner's solution; empty if there is none.

    Args:
      world: of `new_world`.
      game: content of a file game.tw-pddl.
    """
    world.load({**game, "walkthrough": None})
    return tuple(world.reset()["extra.walkthrough"])


def _require() -> tuple[Any, Any]:
    try:
        importlib.import_module("fast_downward")
        return (
            importlib.import_module("textworld.envs.pddl"),
            importlib.import_module("alfworld.agents.environment.alfred_tw_env"),
        )
    except ImportError as error:
        raise MissingExtraError("alfworld", "gpl-envs") from error


def _task(inner: Path, game: Mapping[str, Any], kind: str) -> Task:
    goal = GOAL.search(game["grammar"])
    return Task(
        key=f"alfworld/{inner.parent.as_posix()}",
        domain="alfworld",
        difficulty=0,
        prompt=goal[1] if goal else kind.replace("_", " "),
        payload={"kind": kind, "file": inner.as_posix()},
    )


def _games(folder: Path) -> tuple[Path, tuple[str, ...]]:
    """The folder whose subfolders have games, and the names of these."""
    official = folder / "json_2.1.1"
    inner = official if official.is_dir() else folder
    parts = sorted(inner.iterdir()) if inner.is_dir() else []
    splits = [part.name for part in parts if any(part.rglob("game.tw-pddl"))]
    if not splits:
        raise ConfigError(
            f"data: expected folders with games of ALFWorld in {folder}, got none; "
            f"name that of the official download by --data or {VARIABLE}, or make "
            "games by python -m jerp.domains.alfworld_instances"
        )
    return inner, tuple(splits)


def _read(file: Path, needed: Sequence[str]) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return {**{name: found[name] for name in needed}, **found}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{file}: no game of ALFWorld: {error!r}") from error
