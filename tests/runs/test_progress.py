"""What is drawn below the bars."""

import io

from rich.console import Console

from jerp.runs.progress import progress_bars


def drawn(below):
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=90)
    with progress_bars(console, below=below) as bars:
        bars.add_task("play", total=2)
        bars.refresh()
    return file.getvalue()


def test_a_line_below_the_bars_is_made_anew_each_time():
    lines = iter(["", *(f"{n} requests" for n in range(1, 100))])
    text = drawn(lambda: next(lines))
    assert "play" in text and "1 requests" in text and "2 requests" in text


def test_without_one_there_are_the_bars_alone():
    assert "requests" not in drawn(None) and "play" in drawn(lambda: "")
