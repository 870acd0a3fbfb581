"""The seeded generator of coding tasks: families of problems times parameters.

Every task has two public examples and a further public test, and six hidden tests on
other inputs, whose expected values are spread so that no constant answers more than
half of them by luck alone where that can be had.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product, zip_longest
from random import Random
from typing import Any

from jerp.domains.controlled.coding_families import FAMILIES
from jerp.domains.controlled.coding_family import Family, draw
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["NUM_HIDDEN", "NUM_PUBLIC", "generate_tasks"]

NUM_PUBLIC = 3
NUM_HIDDEN = 6
_CANDIDATES = 200
DIFFICULTIES = 3


def generate_tasks(seed: int, num_tasks: int) -> tuple[Task, ...]:
    """`num_tasks` tasks, difficulties in turn; a function of the arguments alone.

    A longer list begins with the shorter one of the same seed. No statement occurs
    twice.

    Raises:
      ConfigError: more tasks than the families have parameters.
    """
    rngs = [Random(f"coding/{seed}/{d}") for d in range(DIFFICULTIES)]
    decks = [_deck(rng, d) for d, rng in enumerate(rngs)]
    most = DIFFICULTIES * min(len(deck) for deck in decks)
    if not 0 < num_tasks <= most:
        raise ConfigError(f"num_tasks: expected 1 to {most}, got {num_tasks}")
    tasks = []
    for index in range(num_tasks):
        difficulty = index % DIFFICULTIES
        family, values = decks[difficulty][index // DIFFICULTIES]
        key = f"coding/{seed}/{index:04d}"
        tasks.append(_task(key, family, values, Random(key)))
    return tuple(tasks)


def _deck(rng: Random, difficulty: int) -> list[tuple[Family, Mapping[str, Any]]]:
    """All problems of a difficulty, shuffled, families taking turns."""
    columns = []
    for family in FAMILIES:
        if family.difficulty == difficulty:
            names, grid = family.grid.keys(), family.grid.values()
            column = [
                (family, dict(zip(names, values, strict=True)))
                for values in product(*grid)
            ]
            rng.shuffle(column)
            columns.append(column)
    rng.shuffle(columns)
    return [item for row in zip_longest(*columns) for item in row if item is not None]


def _task(key: str, family: Family, values: Mapping[str, Any], rng: Random) -> Task:
    edges = [_test(family, values, arguments) for arguments in family.edges]
    tests = [test for test in _drawn(family, values, rng) if test not in edges]
    public = _varied([], tests, NUM_PUBLIC)
    hidden = _varied(edges, [t for t in tests if t not in public], NUM_HIDDEN)
    return Task(
        key=key,
        domain="coding",
        difficulty=family.difficulty,
        prompt=f"def {family.name}({', '.join(family.arguments)}):",
        payload={
            "name": family.name,
            "arity": len(family.arguments),
            "statement": family.statement(values),
            "parameters": dict(values),
            "public": public,
            "hidden": hidden,
        },
    )


def _drawn(family: Family, values: Mapping[str, Any], rng: Random) -> list[list[str]]:
    """Distinct tests on drawn arguments."""
    tests = {}
    for _ in range(_CANDIDATES):
        arguments = [draw(rng, argument) for argument in family.arguments]
        call, expected = _test(family, values, arguments)
        tests[call] = [call, expected]
    return list(tests.values())


def _varied(
    chosen: list[list[str]], tests: list[list[str]], count: int
) -> list[list[str]]:
    """`chosen` filled up to `count`, each time by the rarest expected value so far."""
    chosen = chosen.copy()
    seen = Counter(expected for _, expected in chosen)
    while len(chosen) < count:
        call, expected = min(
            (test for test in tests if test not in chosen), key=lambda t: seen[t[1]]
        )
        seen[expected] += 1
        chosen.append([call, expected])
    return chosen


def _test(
    family: Family, values: Mapping[str, Any], arguments: Sequence[Any]
) -> list[str]:
    """A call and the literal that it should equal."""
    call = f"{family.name}({', '.join(map(repr, arguments))})"
    return [call, repr(family.solve(*arguments, **values))]
