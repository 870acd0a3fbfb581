"""Games that TextWorld's own generator makes, each once, and kept in a folder.

The file of a game depends on nothing but its kind, split and number; a game takes a
second or two.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jerp.errors import StorageError

__all__ = ["FIRST_SEED", "KINDS", "game_folder", "make_game"]

KINDS: Mapping[str, Mapping[str, Any]] = {
    "tw-coin_collector": {"level": 105},
    "tw-treasure_hunter": {"level": 13},
    "tw-simple": {"rewards": "dense", "goal": "brief"},
    "tw-cooking": {
        **{"recipe": 2, "take": 2, "go": 6, "recipe_seed": 1},
        **{"open": True, "cook": True, "cut": True, "drop": False},
    },
}
"""The package's challenges, and how hard they are here."""

FIRST_SEED = {"train": 1, "test": 1_000_001}
"""Of the games of a split."""


def game_folder(version: str) -> Path:
    """Where games are kept: below XDG_CACHE_HOME, or ~/.cache.

    Args:
      version: of the package, because another may make other games.
    """
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "jerp" / f"textworld-{version}"


def make_game(folder: Path, kind: str, split: str, number: int) -> Path:
    """The file of a game, which is made where it is not there yet.

    Args:
      folder: of the games.
      kind: one of `KINDS`.
      split: one of `FIRST_SEED`.
      number: of the game, from 0.

    Raises:
      StorageError: it cannot be written.
    """
    seed = FIRST_SEED[split] + number
    file = folder / f"{kind}-{split}-{seed}.z8"
    if file.exists():
        return file
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # What is told of a game lies beside it, and has to be there first.
        with TemporaryDirectory(dir=folder) as new:
            made = _compile(Path(new) / file.name, kind, split, seed)
            for name in (file.with_suffix(".json").name, file.name):
                os.replace(made.parent / name, folder / name)
    except OSError as error:
        raise StorageError(f"{file}: the game cannot be made: {error}") from error
    return file


def _compile(file: Path, kind: str, split: str, seed: int) -> Path:
    generator = importlib.import_module("textworld.generator")
    challenges = importlib.import_module("textworld.challenges").CHALLENGES
    settings = dict(KINDS[kind])
    if kind == "tw-simple":
        settings["test"] = split == "test"
    if kind == "tw-cooking":
        settings["split"] = split
    options = generator.GameOptions()
    options.seeds, options.path, options.file_ext = seed, str(file), ".z8"
    _, make, _ = challenges[kind]
    return Path(generator.compile_game(make(settings, options), options))
