"""Numbers, intervals and tables as text, and intervals as JSON has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jerp.records import Interval

__all__ = ["interval", "markdown_table", "number", "plain_interval"]


def number(value: float | None, digits: int, *, sign: bool = False) -> str:
    """Fixed point without the zero before the point, as tables of shares write it.

    None, as JSON has a number that is not defined, is a dash.
    """
    if value is None:
        return "-"
    text = f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def interval(
    value: Mapping[str, float | None], *, digits: int = 3, sign: bool = False
) -> str:
    """`point [low, high]` of a mapping with these three."""
    point, low, high = (
        number(value[k], digits, sign=sign) for k in ("point", "low", "high")
    )
    return f"{point} [{low}, {high}]"


def markdown_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table in Markdown, the header and a line a row; bars in cells are escaped."""
    header = list(header)
    lines = [header, ["---"] * len(header), *rows]
    escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def plain_interval(interval: Interval) -> dict[str, float]:
    """`point`, `low` and `high` of an interval of one number, as JSON has it."""
    return {name: float(getattr(interval, name)) for name in ("point", "low", "high")}
