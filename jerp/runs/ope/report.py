"""What `jerp ope` prints and writes: a table of estimates, or the reason for none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from jerp.runs.browse import printable

__all__ = ["markdown", "render"]

LABELS = {
    "ordinary": "importance sampling",
    "weighted": "weighted importance sampling",
    "per_decision": "per-decision importance sampling",
    "weighted_per_decision": "weighted per-decision",
    "fitted_q": "fitted Q evaluation",
    "doubly_robust": "doubly robust",
}


def render(results: Mapping[str, Any]) -> RenderableType:
    """The table for a terminal, the log behind it, the notes."""
    table = Table(box=None, pad_edge=False)
    for name in _head(results):
        table.add_column(name, justify="left" if name == "method" else "right")
    for row in _rows(results):
        table.add_row(*row)
    return Group(table, *(printable(line) for line in _lines(results)))


def markdown(results: Mapping[str, Any]) -> str:
    """The same as a page."""
    head = _head(results)
    rows = [head, ["---"] * len(head), *_rows(results)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    lines = "\n".join(f"- {printable(line)}" for line in _lines(results))
    return f"# Off-policy evaluation\n\n{table}\n\n{lines}\n"


def _head(results: Mapping[str, Any]) -> list[str]:
    level = f"{results['level']:.0%}"
    return ["method", "value", f"{level} interval", f"at least ({level})", "gain"]


def _rows(results: Mapping[str, Any]) -> list[list[str]]:
    behaviour = results["behaviour"]
    rows = [["behaviour, as logged", *_interval(behaviour), "", ""]]
    for name, found in results["methods"].items():
        if found["point"] is None:
            rows.append([LABELS[name], "refused", "", "", ""])
            continue
        gain = " ".join(_interval(found["gain"], sign="+"))
        least = _number(found["lower_bound"])
        rows.append([LABELS[name], *_interval(found), least, gain])
    return rows


def _lines(results: Mapping[str, Any]) -> list[str]:
    overlap, size = results["overlap"], results["effective_sample_size"]
    # An estimate of a share: luck alone puts it above 1.
    shared = min(overlap["supported_mass"], 1.0)
    lines = [
        f"{results['episodes']} episodes of {results['tasks']} tasks weigh as much as "
        f"{size:.1f} of the controller's own",
        f"overlap: an estimated {shared:.1%} of its probability on actions the "
        f"behaviour could take; mean weight {overlap['mean_weight']:.3g}, largest "
        f"{overlap['max_weight']:.3g}; {overlap['large_ratio_share']:.1%} of steps "
        "with a ratio above 10",
    ]
    reasons = {m["refused"] for m in results["methods"].values() if m["refused"]}
    lines += [f"refused: {reason}" for reason in sorted(reasons)]
    lines += [f"note: {note}" for note in results["notes"]]
    return [*lines, f"controller: {results['controller']}"]


def _interval(found: Mapping[str, Any], sign: str = "") -> list[str]:
    if found["low"] is None:
        return [_number(found["point"], sign), "none"]
    limits = (_number(found[name], sign) for name in ("low", "high"))
    return [_number(found["point"], sign), f"[{', '.join(limits)}]"]


def _number(x: float | None, sign: str = "") -> str:
    return "none" if x is None else f"{x:{sign}.3f}"
