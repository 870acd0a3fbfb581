"""Checks of a benchmark's adapter, by its own reference solutions.

On every task, or with 1,000 and more on one of each kind and at least `MANY`:

    oracle       the reference solution gets full marks
    dropped      the same without its last move
    wrong        the same with another argument in one call
    nothing      no move at all

and on a few: two episodes side by side do not leak into each other, equal seeds bring
equal replies, malformed moves are answered, and after a crash a new episode is fresh.
What the spoilt solutions get is counted, not judged: some are harmless in truth, such
as a last call that only reads. What an adapter expects of them its tests say.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from jerp.domains.benchmark import Benchmark, BenchmarkSession, Call, Move, Reply, Say
from jerp.errors import ConfigError, UnknownNameError
from jerp.records import Task

__all__ = [
    "Conformance",
    "Fault",
    "check_benchmark",
    "sound_tasks",
    "spoilt",
    "to_check",
]

ALL = 1000
"""Fewer tasks than these are all checked."""

MANY = 100
"""Of more, at least so many."""

CLOSELY = 5
"""Tasks of which episodes side by side, malformed moves and the like are checked."""

MALFORMED: tuple[Move, ...] = (
    Call("no such tool"),
    Call(""),
    Call("no such tool", {"x": None, "": [{"y": float("inf")}]}),
    Say(""),
    Say("\x00\ufffd" + "a" * 10_000),
)


@dataclass(frozen=True)
class Fault:
    """A check that an adapter did not pass.

    Attributes:
      check: its name.
      task: key.
      found: in words.
    """

    check: str
    task: str
    found: str


@dataclass(frozen=True)
class Conformance:
    """What the checks of one split came to.

    Attributes:
      benchmark, version, split: of what.
      tasks: in the split.
      checked: of these, without those that are known to be broken.
      oracle: share of the checked ones of which the reference gets full marks.
      dropped, wrong, nothing: shares that a spoilt solution gets full marks of; None
        where none could be made, such as of calls without arguments.
      moves: of the oracle, in all.
      seconds: that these took.
      faults: every check that failed.
      broken: of the split, those that are known to be broken.
    """

    benchmark: str
    version: str
    split: str
    tasks: int
    checked: int
    oracle: float
    dropped: float | None
    wrong: float | None
    nothing: float | None
    moves: int
    seconds: float
    faults: tuple[Fault, ...]
    broken: int

    @property
    def steps_per_second(self) -> float:
        """Moves of the oracle a second, sessions and scores included."""
        return self.moves / max(self.seconds, 1e-9)


def check_benchmark(
    benchmark: Benchmark,
    split: str,
    *,
    limit: int | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Conformance:
    """Checks a split of a benchmark.

    Args:
      benchmark: adapter.
      split: one of `benchmark.splits`.
      limit: most tasks to check; None checks as the module's first lines say.
      on_progress: called with 1 after each task.

    Raises:
      UnknownNameError: no such split.
      ConfigError: a limit below 1, or a split without tasks.
    """
    if limit is not None and limit < 1:
        raise ConfigError(f"limit: expected at least 1, got {limit}")
    sound = sound_tasks(benchmark, split)
    tasks = benchmark.tasks(split)
    chosen = to_check(sound, limit)
    faults: list[Fault] = []
    marks: dict[str, list[bool]] = {name: [] for name in ("oracle", *_SPOIL)}
    moves, seconds = 0, 0.0
    for task in chosen:
        solution = benchmark.oracle(task)
        began = time.perf_counter()
        won = _full_marks(benchmark, task, solution)
        seconds += time.perf_counter() - began
        moves += len(solution)
        marks["oracle"].append(won)
        if not won:
            faults.append(Fault("oracle", task.key, "no full marks"))
        for name, changed in spoilt(solution).items():
            marks[name].append(_full_marks(benchmark, task, changed))
        on_progress(1)
    for task in chosen[:CLOSELY]:
        faults += _closely(benchmark, task)
    return Conformance(
        benchmark=benchmark.name,
        version=benchmark.version,
        split=split,
        tasks=len(tasks),
        checked=len(chosen),
        **{name: _share(found) for name, found in marks.items()},  # pyright: ignore
        moves=moves,
        seconds=seconds,
        faults=tuple(faults),
        broken=len(tasks) - len(sound),
    )


def sound_tasks(benchmark: Benchmark, split: str) -> list[Task]:
    """Those of a split whose reference is not known to be broken.

    Raises:
      UnknownNameError: no such split.
      ConfigError: a split without tasks.
    """
    if split not in benchmark.splits:
        raise UnknownNameError("split", split, benchmark.splits)
    tasks = benchmark.tasks(split)
    if not tasks:
        raise ConfigError(f"split: expected some tasks in {split!r}, got none")
    return [task for task in tasks if task.key not in benchmark.broken]


def to_check(tasks: Sequence[Task], limit: int | None = None) -> list[Task]:
    """All of fewer than 1,000; else as many of each kind, in all at least 100.

    Args:
      tasks: of a split.
      limit: at most so many of these, evenly over all.
    """
    chosen = list(tasks) if len(tasks) < ALL else _of_each_kind(tasks)
    number = len(chosen) if limit is None else min(limit, len(chosen))
    return [chosen[len(chosen) * i // number] for i in range(number)]


def _of_each_kind(tasks: Sequence[Task]) -> list[Task]:
    kinds: dict[Any, list[Task]] = {}
    for task in tasks:
        kinds.setdefault(task.payload.get("kind"), []).append(task)
    each = 1
    while sum(min(each, len(own)) for own in kinds.values()) < MANY:
        each += 1
    # Evenly over each kind: neighbours are often alike.
    return [
        own[len(own) * i // min(each, len(own))]
        for own in kinds.values()
        for i in range(min(each, len(own)))
    ]


def spoilt(solution: Sequence[Move]) -> dict[str, tuple[Move, ...]]:
    """Solutions that are wrong, by name: `dropped`, `wrong` and `nothing`.

    Args:
      solution: of the benchmark. Of none nothing can be spoilt, and without arguments
        there is no `wrong`.
    """
    found = {}
    for name, change in _SPOIL.items():
        changed = change(tuple(solution))
        if changed is not None and changed != tuple(solution):
            found[name] = changed
    return found


def _dropped(solution: tuple[Move, ...]) -> tuple[Move, ...] | None:
    """Without the last call; what is said stays, because it may end a turn."""
    calls = [i for i, move in enumerate(solution) if isinstance(move, Call)]
    if not calls:
        return None
    return solution[: calls[-1]] + solution[calls[-1] + 1 :]


def _wrong(solution: tuple[Move, ...]) -> tuple[Move, ...] | None:
    """With another value for the first argument of the last call that has any."""
    for i in reversed(range(len(solution))):
        move = solution[i]
        if isinstance(move, Call) and move.arguments:
            name, value = next(iter(move.arguments.items()))
            other = {**move.arguments, name: _other(value)}
            return (*solution[:i], replace(move, arguments=other), *solution[i + 1 :])
    return None


def _other(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case bool():
            return not value
        case int() | float():
            return value + 1
        case str():
            return f"{value} x"
        case list() | tuple():
            return [_other(item) for item in value] or ["x"]
        case Mapping():
            return {key: _other(item) for key, item in value.items()} or {"x": 1}
        case _:
            return "x"


_SPOIL: dict[str, Callable[[tuple[Move, ...]], tuple[Move, ...] | None]] = {
    "dropped": _dropped,
    "wrong": _wrong,
    "nothing": lambda solution: (),
}


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def _full_marks(benchmark: Benchmark, task: Task, moves: Sequence[Move]) -> bool:
    with closing(benchmark.start(task)) as session:
        list(_played(session, moves))
        return session.score().success


def _played(session: BenchmarkSession, moves: Sequence[Move]) -> Iterator[Reply]:
    """Replies to moves, as far as the episode goes."""
    for move in moves:
        reply = session.move(move)
        yield reply
        if reply.ended:
            return


def _closely(benchmark: Benchmark, task: Task) -> Iterator[Fault]:
    """What is wrong with episodes of a task beside and after each other."""
    solution = benchmark.oracle(task)
    with closing(benchmark.start(task)) as session:
        alone = list(_played(session, solution))
        again = session.score()
    with closing(benchmark.start(task)) as session:
        if list(_played(session, solution)) != alone or session.score() != again:
            yield Fault("equal seeds", task.key, "other replies, or another score")
    first, second = benchmark.start(task), benchmark.start(task)
    with closing(first), closing(second):
        both = [[], []]
        for i in range(len(alone)):
            for session, replies in zip((first, second), both, strict=True):
                replies.append(session.move(solution[i]))
        if both != [alone, alone] or first.score() != again:
            yield Fault("side by side", task.key, "episodes change each other")
    with closing(benchmark.start(task)) as session:
        yield from _malformed(session, task)
        # Left where it is, as by a crash; the next one must not see it.
    with closing(benchmark.start(task)) as session:
        if list(_played(session, solution)) != alone or session.score() != again:
            yield Fault("after a crash", task.key, "an episode before is seen")


def _malformed(session: BenchmarkSession, task: Task) -> Iterator[Fault]:
    """Moves that nobody can mean are answered; those with a tool's name as errors."""
    named = [Call(tool.name, {"no such argument": 1}) for tool in session.tools[:3]]
    for move in (*MALFORMED, *named):
        try:
            reply = session.move(move)
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            yield Fault("malformed moves", task.key, f"{move!r:.80} raised {told:.200}")
            return
        if isinstance(move, Call) and not reply.error:
            yield Fault("malformed moves", task.key, f"{move!r:.80} is no error")
        if reply.ended:
            return
