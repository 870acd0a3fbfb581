"""Printing tables and text for people and for pipes, and progress for the patient."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["progress_if_slow", "show"]

SLOW_SECONDS = 2.0


def show(renderable: Any) -> None:
    """Prints to the terminal; to a file or pipe in full width, without colours."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal:
        console.print(renderable)
        return
    console.width = 10_000
    with console.capture() as capture:
        console.print(renderable)
    # Tables pad every row to the longest, which may name a long problem.
    for line in capture.get().removesuffix("\n").split("\n"):
        print(line.rstrip())


@contextmanager
def progress_if_slow() -> Iterator[Callable[[str], None]]:
    """A spinner on the terminal, once the block takes longer than two seconds.

    Yields a function that takes what is being done; it is gone when the block ends.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task("starting", total=None)
    if not progress.console.is_terminal:
        yield lambda _: None
        return
    timer = threading.Timer(SLOW_SECONDS, progress.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda stage: progress.update(task, description=stage)
    finally:
        timer.cancel()
        timer.join()
        if progress.live.is_started:
            progress.stop()
