"""What an executor in another process has spent, for the bars of this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from jerp.storage.atomic import write_bytes

__all__ = ["read_usage", "usage_written"]

SECONDS = 2.0
"""Between two writings."""


@contextmanager
def usage_written(path: Path, spent: Callable[[], str]) -> Iterator[None]:
    """Writes a line to a file, over and over and at the end.

    Args:
      path: of the file.
      spent: gives the line; "" of an executor that spends nothing writes no file.
    """
    over = Event()

    def write() -> None:
        if line := spent():
            write_bytes(path, line.encode())

    def keep_on() -> None:
        while not over.wait(SECONDS):
            write()

    thread = Thread(target=keep_on, name="jerp-usage", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        write()


def read_usage(path: Path) -> str:
    """The line, or "" where there is none yet."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
