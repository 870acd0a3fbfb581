"""ScienceWorld: experiments of elementary school in text, by its package and Java.

The package lists things in the order of Java's identity hashes, which differ from one
episode to the next; with them all equal, equal episodes bring equal replies.
"""

from __future__ import annotations

import importlib
import os
import shutil
import threading
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

__all__ = ["ScienceWorld"]

UNKNOWN = "No known action matches that input"

EQUAL_HASHES = (
    "-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
)
"""Options of Java by which all identity hashes are equal."""


class ScienceWorld:
    """All 30 tasks with the official variations of each split, nothing simplified.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      max_steps: of an episode, as the package counts, for which waiting is more than
        one; the longest gold path seen has 743.

    Raises:
      MissingExtraError: `scienceworld` is not installed.
      ConfigError: there is no Java, or no step is allowed.

    Reference:
      Wang et al., ScienceWorld: Is your Agent Smarter than a 5th Grader?, EMNLP 2022.
    """

    name = "scienceworld"
    splits = ("train", "dev", "test")
    broken: Mapping[str, str] = {}

    def __init__(self, *, max_steps: int = 1000):
        try:
            self._package = importlib.import_module("scienceworld")
        except ImportError as error:
            raise MissingExtraError("scienceworld", "benchmarks") from error
        if shutil.which("java") is None:
            raise ConfigError("scienceworld needs Java 8 or later; none is found")
        if max_steps < 1:
            raise ConfigError(f"max_steps: expected at least 1, got {max_steps}")
        self.version = version("scienceworld")
        self._max_steps = max_steps
        self._worlds = IdleWorlds[Any](self._start_world, _end)
        self._listed = cache(self._variations)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """The official variations of each task in turn; their kind is the task.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        return tuple(
            Task(
                key=f"{self.name}/{name}/{variation}",
                domain=self.name,
                difficulty=0,
                prompt=name.replace("-", " "),
                payload={"kind": name, "variation": variation},
            )
            for name, variations in self._listed(split)
            for variation in variations
        )

    def start(self, task: Task, *, seed: int = 0) -> CommandSession:
        """The variation from its start; nothing in it depends on the seed."""
        world = self._worlds.take()
        first = _load(world, task)

        def act(line: str) -> Outcome:
            text, _, over, told = world.step(line)
            return Outcome(
                text=text,
                score=max(0, told["score"]) / 100,
                success=told["score"] == 100,
                ended=bool(over),
                known=not text.startswith(UNKNOWN),
            )

        opening = f"{world.get_task_description()}\n{first}"
        return CommandSession(
            opening,
            act,
            lambda: self._worlds.give(world),
            admissible=lambda: world.server.getValidActionObjectCombinations(),
        )

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """The package's gold path, as far as it is needed."""
        with self._borrowed() as world:
            _load(world, task, gold=True)
            path = world.get_gold_action_sequence()
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

    def _start_world(self) -> Any:
        with _java_options(EQUAL_HASHES):
            world = self._package.ScienceWorldEnv(envStepLimit=self._max_steps)
        # After every step it lists all that could be done, which takes longer than the
        # step and is shown to nobody.
        world.get_valid_action_object_combinations = list
        return world

    def _variations(self, split: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
        found = []
        with self._borrowed() as world:
            for name in world.get_task_names():
                world.load(name)
                listed = getattr(world, f"get_variations_{split}")()
                found.append((name, tuple(listed)))
        return tuple(found)


_changing_options = threading.Lock()


@contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Processes of Java that are started within take these, besides the user's own.

    The package passes none on, so they go by the variable that Java reads.
    """
    name = "JAVA_TOOL_OPTIONS"
    with _changing_options:
        before = os.environ.get(name)
        os.environ[name] = f"{before or ''} {options}".strip()
        try:
            yield
        finally:
            if before is None:
                del os.environ[name]
            else:
                os.environ[name] = before


def _load(world: Any, task: Task, *, gold: bool = False) -> str:
    """What is seen at the start."""
    payload = task.payload
    world.load(payload["kind"], payload["variation"], "", generateGoldPath=gold)
    return world.reset()[0]


def _end(world: Any) -> None:
    """Ends the process, and removes the folder that the package leaves to chance."""
    end_java(world)
    world._obj_tree_tempdir.cleanup()
