"""TextWorld: games in text that its package makes, or of a folder, and plays."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jerp.domains.benchmark import Move
from jerp.domains.commands import CommandSession, command, until_over
from jerp.domains.text_games import WANTED, TextGame
from jerp.domains.textworld_games import FIRST_SEED, KINDS, game_folder, make_game
from jerp.errors import ConfigError, MissingExtraError, StorageError, UnknownNameError
from jerp.records import Task

__all__ = ["TextWorld"]


class TextWorld:
    """Games of the package's four challenges, or those of a folder.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      data: folder with games that TextWorld made, each a .z8 file and a .json file;
        its subfolders are the splits, or else all is one. None has games made.
      each: games of each challenge in a split, where they are made.
      max_steps: of an episode.
      cache: folder where games that are made are kept; None takes the user's.

    Raises:
      MissingExtraError: `textworld` is not installed.
      ConfigError: no games of a challenge, or no step, is allowed.
      StorageError: the folder has no games.

    Reference:
      Côté et al., TextWorld: A Learning Environment for Text-based Games, 2018.
    """

    name = "textworld"
    broken: Mapping[str, str] = {}

    def __init__(
        self,
        data: Path | None = None,
        *,
        each: int = 10,
        max_steps: int = 100,
        cache: Path | None = None,
    ):
        try:
            self._package = importlib.import_module("textworld")
        except ImportError as error:
            raise MissingExtraError("textworld", "gpl-envs") from error
        if not 0 < each < FIRST_SEED["test"] or max_steps < 1:
            raise ConfigError(
                "expected at least one game of each challenge and one step, got "
                f"{each} and {max_steps}"
            )
        self.version = version("textworld")
        self._each, self._max_steps = each, max_steps
        self._cache = cache or game_folder(self.version)
        self._data, self._files = data, {} if data is None else _files(data)
        self.splits = tuple(FIRST_SEED if data is None else self._files)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Games of each challenge in turn, or all of a folder.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        if self._data is not None:
            found = [{"kind": "game", "file": file} for file in self._files[split]]
        else:
            found = [
                {"kind": kind, "split": split, "number": number}
                for kind in KINDS
                for number in range(self._each)
            ]
        return tuple(self._task(split, payload) for payload in found)

    def start(self, task: Task, *, seed: int = 0) -> CommandSession:
        """The game from its start; nothing in it depends on the seed.

        Raises:
          StorageError: it cannot be made, or is none of TextWorld.
        """
        world = self._world(task)
        game = TextGame(world, max_steps=self._max_steps)
        goal, seen = game.state["objective"], game.state["description"]
        opening = "\n\n".join(text for text in (goal, seen) if text)
        return game.session(opening, world.close)

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The game's walkthrough, as far as it is needed.

        Raises:
          StorageError: as for `start`.
        """
        told = self._file(task).with_suffix(".json")
        path = self._package.Game.load(str(told)).walkthrough or ()
        world = self._world(task)
        try:
            world.reset()
            needed = until_over(path, lambda line: world.step(line)[2])
        finally:
            world.close()
        return tuple(command(line) for line in needed)

    def close(self) -> None:
        """Nothing is held."""

    def _task(self, split: str, payload: Mapping[str, Any]) -> Task:
        own = payload.get("file") or f"{split}/{payload['kind']}/{payload['number']}"
        return Task(
            key=f"{self.name}/{own}",
            domain=self.name,
            difficulty=0,
            prompt=f"A game of TextWorld, {payload['kind']}.",
            payload=payload,
        )

    def _file(self, task: Task) -> Path:
        payload = task.payload
        if self._data is not None:
            return self._data / payload["file"]
        names = payload["kind"], payload["split"], payload["number"]
        return make_game(self._cache, *names)

    def _world(self, task: Task) -> Any:
        file = self._file(task)
        wanted = self._package.EnvInfos(**dict.fromkeys(WANTED, True))
        try:
            return self._package.start(str(file), wanted)
        except (OSError, ValueError, KeyError) as error:
            raise StorageError(f"{file}: no game of TextWorld: {error}") from error


def _files(data: Path) -> dict[str, list[str]]:
    """Games of a folder by split, as paths within it."""
    found: dict[str, list[str]] = {}
    for file in sorted(data.rglob("*.z8")):
        if file.with_suffix(".json").exists():
            inner = file.relative_to(data)
            split = inner.parts[0] if len(inner.parts) > 1 else "all"
            found.setdefault(split, []).append(inner.as_posix())
    if not found:
        raise StorageError(
            f"{data}: expected games of TextWorld, each a .z8 file and a .json file of "
            "that name, got none"
        )
    return found
