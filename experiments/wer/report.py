"""The report of the experiment, from its numbers alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from experiments.wer.config import DOMAINS
from jerp.runs.cells import interval

__all__ = ["standing_lines"]

Numbers = Mapping[str, Any]


def standing_lines(base: Numbers) -> Iterator[str]:
    """Where the clones stand, in lines for the terminal."""
    for told, found in base["success"].items():
        cells = (f"{name} {interval(found[name])}" for name in DOMAINS)
        yield f"executor, {told} skill: {', '.join(cells)}"
    parsed, mixed = (
        ", ".join(f"{x:.0%}" for x in base[name]) for name in ("parsed", "mixed")
    )
    yield f"seed drafts of the clone, by seed: {parsed} parse, {mixed} mixed"
    for text in base["warnings"]:
        yield f"warning: {text}"
