"""Sessions that go on, behind episodes that are values.

An episode is its task, its seed and its moves; a session that has made just these moves
is kept for the next one. Where there is none, because an episode was taken up again at
an earlier state, a fresh session makes the moves once more.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence

from jerp.domains.benchmark import Benchmark, BenchmarkSession, Call, Move
from jerp.domains.tool_use.conversation import call_text
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["LiveSessions"]

_Key = tuple[str, int, tuple[str, ...]]


class LiveSessions:
    """Takes and keeps sessions, from any thread.

    Args:
      benchmark: starts them.
      most: that are kept; of more those go that were kept longest.
    """

    def __init__(self, benchmark: Benchmark, *, most: int = 512):
        if most < 0:
            raise ConfigError(f"most: expected at least 0, got {most}")
        self._benchmark, self._most = benchmark, most
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, list[BenchmarkSession]] = OrderedDict()

    def take(self, task: Task, seed: int, moves: Sequence[Move]) -> BenchmarkSession:
        """A session after these moves, which nobody else has; close it or keep it."""
        key = _key(task, seed, moves)
        with self._lock:
            if found := self._kept.pop(key, None):
                session = found.pop()
                if found:
                    self._kept[key] = found
                return session
        session = self._benchmark.start(task, seed=seed)
        for move in moves:
            session.move(move)
        return session

    def keep(
        self, task: Task, seed: int, moves: Sequence[Move], session: BenchmarkSession
    ) -> None:
        """Keeps a session for whoever goes on from these moves."""
        key = _key(task, seed, moves)
        old: list[BenchmarkSession] = []
        with self._lock:
            self._kept.setdefault(key, []).append(session)
            self._kept.move_to_end(key)
            while sum(map(len, self._kept.values())) > self._most:
                first = next(iter(self._kept.values()))
                old.append(first.pop(0))
                if not first:
                    self._kept.popitem(last=False)
        for session in old:
            session.close()

    def close(self) -> None:
        """Closes all that are kept."""
        with self._lock:
            kept, self._kept = self._kept, OrderedDict()
        for sessions in kept.values():
            for session in sessions:
                session.close()


def _key(task: Task, seed: int, moves: Sequence[Move]) -> _Key:
    return task.key, seed, tuple(map(_move_text, moves))


def _move_text(move: Move) -> str:
    return f"call {call_text(move)}" if isinstance(move, Call) else f"say {move.text}"
