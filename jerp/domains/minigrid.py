"""BabyAI's missions in MiniGrid, seen and acted on in words."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, redirect_stdout
from functools import cache
from importlib.metadata import version
from io import StringIO
from typing import Any

from jerp.domains.benchmark import Call, Move, Reply, ToolSpec
from jerp.domains.minigrid_words import Codes, describe
from jerp.errors import ConfigError, MissingExtraError, UnknownNameError
from jerp.records import Criterion, Task, Verdict

__all__ = ["LEVELS", "MiniGrid", "MiniGridSession"]

LEVELS = (
    *("BabyAI-GoToRedBallGrey-v0", "BabyAI-GoToLocal-v0", "BabyAI-PickupLoc-v0"),
    *("BabyAI-PutNextLocal-v0", "BabyAI-Open-v0", "BabyAI-UnlockLocal-v0"),
)
"""Go to a thing, pick one up, put one next to another, open a door, unlock one."""

FIRST_SEED = {"train": 0, "test": 1_000_000}
"""Of the worlds of a split; the official demonstrations begin their seeds apart too."""

DOES = {
    "left": "turn left",
    "right": "turn right",
    "forward": "go one step forward",
    "pickup": "pick up the thing in front of you",
    "drop": "put down in front of you what you carry",
    "toggle": "open or close the door, or open the box, in front of you",
    "done": "say that nothing is left to do",
}


class MiniGridSession:
    """One mission.

    Args:
      world: an environment of the package, at its start.
      view: the first one.
      mission: what has to be done.
      actions: numbers of the package by name.
      codes: what a view's numbers mean.
    """

    def __init__(
        self,
        world: Any,
        view: Any,
        mission: str,
        *,
        actions: Mapping[str, int],
        codes: Codes,
    ):
        self._world, self._view, self._mission = world, view, mission
        self._actions, self._codes = actions, codes
        self._reward, self._ended = 0.0, False
        self.tools = (_act(actions),)

    @property
    def opening(self) -> str:
        """The mission, and what is seen at the start."""
        return f"Your mission: {self._mission}.\n{describe(self._view, self._codes)}"

    def move(self, move: Move) -> Reply:
        """Acts; words and all else are errors."""
        if self._ended:
            return Reply("The mission is over.", error=True, ended=True)
        arguments = dict(move.arguments) if isinstance(move, Call) else {}
        if not isinstance(move, Call) or move.tool != "act":
            return Reply("Call act with an action.", error=True)
        action = arguments.pop("action", None)
        if not isinstance(action, str) or action not in self._actions or arguments:
            return Reply(f"Actions are: {', '.join(self._actions)}.", error=True)
        seen, reward, done, late, _ = self._world.step(self._actions[action])
        self._view, self._reward = seen["image"], float(reward)
        self._ended = done or late
        text = describe(self._view, self._codes)
        if self._ended:
            text += f" The mission is {'done' if reward > 0 else 'over'}."
        return Reply(text, ended=self._ended)

    def score(self) -> Verdict:
        """The world's reward, which is above 0 for a mission done, and less the later.

        Success is a mission done, however late.
        """
        reward = self._reward if self._ended else 0.0
        return Verdict((Criterion("reward", reward, 1.0),), reward > 0)

    def close(self) -> None:
        """Closes the world."""
        self._ended = True
        self._world.close()


class MiniGrid:
    """Missions of some levels of BabyAI; worlds of `train` and `test` differ.

    Attributes:
      name, version, splits, broken: see `jerp.domains.benchmark.Benchmark`.

    Args:
      levels: names in the package's registry.
      each: worlds of each level in a split.

    Raises:
      MissingExtraError: `minigrid` is not installed.
      UnknownNameError: no such level.
      ConfigError: no worlds, or more than seeds are apart.

    Reference:
      Chevalier-Boisvert et al., BabyAI: A Platform to Study the Sample Efficiency of
      Grounded Language Learning, ICLR 2019; Minigrid & Miniworld, NeurIPS 2023.
    """

    name = "minigrid"
    splits = ("train", "test")
    broken: Mapping[str, str] = {}

    def __init__(self, levels: Sequence[str] = LEVELS, *, each: int = 50):
        try:
            self._gym = importlib.import_module("gymnasium")
            importlib.import_module("minigrid")
            core = importlib.import_module("minigrid.core.constants")
            actions = importlib.import_module("minigrid.core.actions").Actions
            self._bot = importlib.import_module("minigrid.utils.baby_ai_bot").BabyAIBot
        except ImportError as error:
            raise MissingExtraError("minigrid", "benchmarks") from error
        known = [name for name in self._gym.registry if name.startswith("BabyAI-")]
        for level in levels:
            if level not in known:
                raise UnknownNameError("level", level, known)
        if not 0 < each <= FIRST_SEED["test"]:
            raise ConfigError(f"each: expected 1 to {FIRST_SEED['test']}, got {each}")
        self.version = version("minigrid")
        self._levels, self._each = tuple(levels), each
        self._actions = {action.name: int(action) for action in actions}
        self._codes = Codes(
            core.IDX_TO_OBJECT,
            core.IDX_TO_COLOR,
            {number: name for name, number in core.STATE_TO_IDX.items()},
        )
        self._missions = cache(self._mission)

    def tasks(self, split: str) -> tuple[Task, ...]:
        """Worlds of each level in turn; their kind is the level.

        Raises:
          UnknownNameError: no such split.
        """
        if split not in self.splits:
            raise UnknownNameError("split", split, self.splits)
        seeds = range(FIRST_SEED[split], FIRST_SEED[split] + self._each)
        return tuple(
            Task(
                key=f"minigrid/{level}/{seed}",
                domain=self.name,
                difficulty=0,
                prompt=self._missions(level, seed),
                payload={"kind": level, "seed": seed},
            )
            for level in self._levels
            for seed in seeds
        )

    def start(self, task: Task, *, seed: int = 0) -> MiniGridSession:
        """The task's world from its start; nothing in it depends on the seed."""
        world, seen = self._world(task.payload["kind"], task.payload["seed"])
        return MiniGridSession(
            world,
            seen["image"],
            seen["mission"],
            actions=self._actions,
            codes=self._codes,
        )

    def oracle(self, task: Task) -> tuple[Move, ...]:
        """What BabyAI's bot does, who sees the whole world."""
        names = {number: name for name, number in self._actions.items()}
        world, _ = self._world(task.payload["kind"], task.payload["seed"])
        with closing(world):
            done = self._bot_actions(world)
            return tuple(Call("act", {"action": names[action]}) for action in done)

    def close(self) -> None:
        """Nothing is held."""

    def _bot_actions(self, world: Any) -> Iterator[int]:
        bot, action, over = self._bot(world.unwrapped), None, False
        while not over:
            action = bot.replan(action)
            _, _, done, late, _ = world.step(action)
            over = done or late
            yield int(action)

    def _world(self, level: str, seed: int) -> tuple[Any, Mapping[str, Any]]:
        # It prints of every draft of a world that it rejects.
        with redirect_stdout(StringIO()):
            world = self._gym.make(level, disable_env_checker=True)
            seen, _ = world.reset(seed=seed)
        return world, seen

    def _mission(self, level: str, seed: int) -> str:
        world, seen = self._world(level, seed)
        world.close()
        return seen["mission"]


def _act(actions: Mapping[str, int]) -> ToolSpec:
    does = "; ".join(f"{name}: {DOES.get(name, name)}" for name in actions)
    action = {"type": "string", "enum": [*actions]}
    schema = {
        "type": "object",
        "properties": {"action": action},
        "required": ["action"],
    }
    return ToolSpec("act", f"Does one of these. {does}.", schema)
