"""The progress bar of long runs: how many, how long, how long still, and what spent."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = ["progress_bars"]


class _Bars(Progress):
    """Bars, and below them a line that is made anew whenever they are drawn."""

    below: Callable[[], str] | None = None

    def get_renderables(self) -> Iterable[RenderableType]:
        yield from super().get_renderables()
        if self.below is not None and (line := self.below()):
            yield Text(line, style="dim")


def progress_bars(
    console: Console, *, below: Callable[[], str] | None = None
) -> Progress:
    """Bars with an estimate of the time left; a context manager.

    Args:
      console: to draw on.
      below: gives the line below the bars, such as what was spent; "" gives none. It is
        called from the thread that draws.
    """
    bars = _Bars(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    )
    bars.below = below
    return bars
