"""Rooms and tasks of our own on ALFWorld's domain, for whoever lacks the download.

    python -m jerp.domains.alfworld_instances FOLDER --number 60 --seed 0

What may lie where, what can be heated, and what the goals mean is the package's; which
furniture a room has, and where things are, is drawn here. They are no benchmark: scores
on them are not comparable with published ones.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import tyro

from jerp.domains.alfworld import KINDS, new_world, plan
from jerp.domains.alfworld_rooms import Room, draw_room, problem
from jerp.errors import ConfigError, MissingExtraError, StorageError

__all__ = ["make_instances"]

SPLITS = ("train", "valid_seen", "valid_unseen")
"""Named as the official ones; the rooms of all three are drawn alike."""

ROOMS = {
    "pick_and_place_simple": ("kitchen", "bedroom", "bathroom", "living room"),
    "pick_two_obj_and_place": ("kitchen", "bedroom", "bathroom", "living room"),
    "look_at_obj_in_light": ("bedroom", "living room"),
    "pick_clean_then_place_in_recep": ("kitchen", "bathroom"),
    "pick_heat_then_place_in_recep": ("kitchen",),
    "pick_cool_then_place_in_recep": ("kitchen",),
}

ABILITY = {
    "pick_clean_then_place_in_recep": "Cleanable",
    "pick_heat_then_place_in_recep": "Heatable",
    "pick_cool_then_place_in_recep": "Coolable",
}


@dataclass(frozen=True)
class _Goal:
    """What is to be done, in the official words: a thing, a place, or a lamp."""

    kind: str
    thing: str
    place: str
    lamp: str

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.thing}-{self.lamp or 'None'}-{self.place or 'None'}"


def make_instances(folder: Path, seed: int, number: int) -> int:
    """Writes games, with as many of each kind as of any other.

    Args:
      folder: for them; it has the official form of folders and files. Games that are
        there already stay.
      seed: other seeds bring other games.
      number: of games in each of three splits.

    Returns:
      How many were written.

    Raises:
      MissingExtraError: `alfworld` is not installed.
      ConfigError: a number below 1.
      StorageError: they cannot be written.
    """
    if number < 1:
        raise ConfigError(f"number: expected at least 1, got {number}")
    try:
        library = importlib.import_module("alfworld.gen.goal_library").gdict
        known = importlib.import_module("alfworld.gen.constants")
    except ImportError as error:
        raise MissingExtraError("alfworld", "gpl-envs") from error
    world, written = new_world(), 0
    for split in SPLITS:
        for place in range(number):
            random = Random(f"{seed} {split} {place}")
            kind = KINDS[place % len(KINDS)]
            goal, game = next(_solvable(world, random, kind, known, library))
            name = f"{goal.name}-{seed}/{place:05d}"
            written += _write(folder / split / name, goal, game)
    return written


def _solvable(
    world: Any, random: Random, kind: str, known: Any, library: Mapping[str, Any]
) -> Iterator[tuple[_Goal, dict[str, Any]]]:
    """Games of a kind that the planner can win, and that are not won from the start."""
    package = importlib.import_module("alfworld.info")
    domain = Path(package.ALFRED_PDDL_PATH).read_text(encoding="utf-8")
    grammar = Path(package.ALFRED_TWL2_PATH).read_text(encoding="utf-8")
    while True:
        room = draw_room(random, random.choice(ROOMS[kind]), known)
        goals = _goals(kind, room, known)
        if not goals:
            continue
        goal = random.choice(goals)
        words = {"obj": goal.thing, "recep": goal.place, "toggle": goal.lamp}
        told = random.choice(library[kind]["templates"])
        told = told.format(**{name: word.lower() for name, word in words.items()})
        wanted = library[kind]["pddl"].format(**words).replace("#", "-")
        game = {
            "pddl_domain": domain,
            "grammar": grammar.replace("UNKNOWN GOAL", told),
            "pddl_problem": problem(room, wanted, known),
        }
        if walkthrough := plan(world, game):
            yield goal, {**game, "solvable": True, "walkthrough": list(walkthrough)}


def _goals(kind: str, room: Room, known: Any) -> list[_Goal]:
    """What could be asked for in a room, and is not so already."""
    here: Sequence[str] = sorted({thing for thing, _ in room.things})
    lamps = [thing for thing in here if thing in known.VAL_ACTION_OBJECTS["Toggleable"]]
    things = [thing for thing in here if thing not in lamps]
    if kind == "look_at_obj_in_light":
        return [_Goal(kind, thing, "", lamp) for thing in things for lamp in lamps]
    if kind in ABILITY:
        things = [t for t in things if t in known.VAL_ACTION_OBJECTS[ABILITY[kind]]]
    least = 2 if kind == "pick_two_obj_and_place" else 1
    return [
        _Goal(kind, thing, place, "")
        for thing in things
        if room.number_of(thing) >= least
        for place in sorted(set(room.places))
        if thing in known.VAL_RECEPTACLE_OBJECTS[place] and not room.has(thing, place)
    ]


def _write(folder: Path, goal: _Goal, game: Mapping[str, Any]) -> bool:
    """Whether the game was not there yet."""
    told = {
        "task_type": goal.kind,
        "pddl_params": {
            **{"object_target": goal.thing, "parent_target": goal.place},
            **{"toggle_target": goal.lamp, "mrecep_target": "", "object_sliced": False},
        },
    }
    file = folder / "game.tw-pddl"
    if file.exists():
        return False
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The game comes last: without it nothing is read.
        (folder / "traj_data.json").write_text(json.dumps(told), encoding="utf-8")
        new = folder / "game.tmp"
        new.write_text(json.dumps(game), encoding="utf-8")
        new.replace(file)
    except OSError as error:
        raise StorageError(f"{folder}: the game cannot be written: {error}") from error
    return True


def _main(folder: tyro.conf.Positional[Path], number: int = 60, seed: int = 0) -> None:
    """Makes games of our own on ALFWorld's domain, so many in each of three splits."""
    written = make_instances(folder, seed, number)
    sys.stdout.write(f"{written} games written to {folder}\n")


if __name__ == "__main__":
    tyro.cli(_main)
