"""TextWorldExpress: short games in text, by the package of that name and Java."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from typing import Any

from jerp.domains.benchmark import Move
from jerp.domains.commands import (
    CommandSession,
    IdleWorlds,
    Outcome,
    command,
    end_java,
    until_over,
)
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError
from jerp.records import Task

__all__ = ["GAMES", "TextWorldExpress"]

GAMES = (
    *("cookingworld", "twc", "coin", "mapreader", "arithmetic", "sorting"),
    *("simonsays", "peckingorder"),
)

MOST = 1000
"""Worlds of a game in a split."""


class TextWorldExpress:
    """Games of the official splits, each in its default size.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      each: worlds of each game in a split, at most 1,000.
      max_steps: of an episode.

    Raises:
      MissingExtraError: `textworld-express` is not installed.
      ConfigError: there is no Java, or a number is out of range.

    Reference:
      Jansen and Côté, TextWorldExpress: Simulating Text Games at One Million Steps Per
      Second, EACL 2023.
    """

    name = "textworld-express"
    splits = ("train", "dev", "test")
    broken: Mapping[str, str] = {
        "textworld-express/dev/cookingworld/10020": "the gold path wanders until the "
        "100 steps are used up",
        "textworld-express/dev/peckingorder/10022": "of two cucumbers the gold path "
        "takes the one that was not meant",
    }

    def __init__(self, *, each: int = 25, max_steps: int = 100):
        try:
            package = importlib.import_module("textworld_express")
        except ImportError as error:
            raise MissingExtraError("textworld-express", "benchmarks") from error
        if shutil.which("java") is None:
            raise ConfigError("textworld-express needs Java 8 or later; none is found")
        if not 0 < each <= MOST or max_steps < 1:
            raise ConfigError(
                f"expected 1 to {MOST} worlds of each game and at least one step, got "
                f"{each} and {max_steps}"
            )
        self.version = version("textworld-express")
        self._each = each
        self._worlds = IdleWorlds[Any](
            lambda: package.TextWorldExpressEnv(envStepLimit=max_steps), end_java
        )
        self._seeds = cache(self._official_seeds)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """The first worlds of each game in turn; their kind is the game.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return tuple(
            Task(
                key=f"{self.name}/{split}/{game}/{seed}",
                domain=self.name,
                difficulty=0,
                prompt=f"A game of {game}.",
                payload={"kind": game, "split": split, "seed": seed},
            )
            for game in GAMES
            for seed in self._seeds(split)[: self._each]
        )

    def start(self, task: Task, *, seed: int = 0) -> CommandSession:
        """The task's world from its start; nothing in it depends on the seed."""
        world = self._worlds.take()
        first = _reset(world, task)

        def act(line: str) -> Outcome:
            known = {"help", *world.runHistory[-1]["validActions"]}
            text, _, over, told = world.step(line)
            return Outcome(
                text=text,
                score=min(1.0, max(0.0, float(told["score"]))),
                success=bool(told["tasksuccess"]),
                ended=bool(over),
                known=line in known,
            )

        opening = f"{first['taskDescription']}\n{first['observation']}"
        return CommandSession(
            opening,
            act,
            lambda: self._worlds.give(world),
            admissible=lambda: world.runHistory[-1]["validActions"],
        )

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The package's gold path, as far as it is needed."""
        with self._borrowed() as world:
            _reset(world, task, gold=True)
            path = world.getGoldActionSequence()
            needed = until_over(path, lambda line: world.step(line)[2])
        return tuple(command(line) for line in needed)

    def close(self) -> None:
        """Ends the processes of Java."""
        self._worlds.close()

    @contextmanager
    def _borrowed(self) -> Iterator[Any]:
        world = self._worlds.take()
        try:
            yield world
        finally:
            self._worlds.give(world)

    def _official_seeds(self, split: str) -> list[int]:
        with self._borrowed() as world:
            world.load(GAMES[0], "")
            return getattr(world, f"getValidSeeds{split.capitalize()}")()


def _reset(world: Any, task: Task, *, gold: bool = False) -> Mapping[str, Any]:
    """What the package tells at the start."""
    payload = task.payload
    _, told = world.reset(
        seed=payload["seed"],
        gameFold=payload["split"],
        gameName=payload["kind"],
        gameParams="",
        generateGoldPath=gold,
    )
    return told
