"""Cells of the report's tables, from `results.json` alone: a header and rows of text.

Every function here returns `(header, rows)`; terminal, Markdown and HTML draw them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jerp.runs.cells import interval, number
from jerp.runs.harness.arms import ARM_LABELS

__all__ = [
    "comparison",
    "difficulty_note",
    "events",
    "holm",
    "macro",
    "overview",
    "predictions",
    "sensitivity",
    "simulation",
    "support",
    "winners",
]

Cells = tuple[tuple[str, ...], list[tuple[str, ...]]]


def comparison(domain: Mapping[str, Any]) -> Cells:
    """A row an arm; intervals are 95%, tasks resampled."""
    header = ("arm", "Q", "Q - base", "HMS", "HMS - base", "steps", "calls", "tokens")
    rows = []
    for name, arm in domain["arms"].items():
        difference = arm.get("difference")
        rows.append(
            (
                ARM_LABELS[name],
                interval(arm["q"]),
                interval(difference["q"], sign=True) if difference else "",
                interval(arm["hms"]),
                interval(difference["hms"], sign=True) if difference else "",
                number(arm["steps"]["point"], 2),
                number(arm["calls"]["point"], 2),
                number(arm["tokens"]["point"], 0),
                str(arm["invalid"]),
            )
        )
    return (*header, "invalid"), rows


def events(domain: Mapping[str, Any]) -> Cells:
    """Share of the episodes in which an event applied where it fired."""
    names = tuple(next(iter(domain["arms"].values()))["events"])
    rows = [
        (
            ARM_LABELS[name],
            *(number(event["rate"], 2) for event in arm["events"].values()),
        )
        for name, arm in domain["arms"].items()
    ]
    return ("arm", *names), rows


def macro(results: Mapping[str, Any], *, digits: int = 3) -> Cells:
    """A row an arm over all domains: macro averages and the sign test."""
    header = ("arm", "Q", "Q - base", "HMS - base", "+ / -", "p", "least")
    rows = []
    for name, arm in results["overall"].items():
        cells = (ARM_LABELS[name], interval(arm["q"], digits=digits))
        if "difference" in arm:
            change, sign = arm["difference"], arm["sign"]
            cells += (
                interval(change["q"], digits=digits, sign=True),
                number(change["hms"]["point"], digits, sign=True),
                f"{sign['positive']} / {sign['negative']}",
                number(sign["p"], 3),
                number(sign["smallest_p"], 3),
            )
        rows.append(cells + ("",) * (len(header) - len(cells)))
    return header, rows


def overview(results: Mapping[str, Any]) -> Cells:
    """Q of base and its change by the other arms, a column a domain, and the average.

    * marks a p-value below .05, adjusted over the domains of an arm.
    """
    domains = results["domains"]
    rows = []
    for name, arm in results["overall"].items():
        is_base = "difference" not in arm
        cells = [
            number(part["arms"][name]["q"]["point"], 2)
            if is_base
            else number(part["arms"][name]["difference"]["q"]["point"], 2, sign=True)
            + _star(arm["holm"][domain])
            for domain, part in domains.items()
        ]
        mean = arm["q"] if is_base else arm["difference"]["q"]
        average = interval(mean, digits=2, sign=not is_base)
        rows.append((ARM_LABELS[name], *cells, average))
    return ("arm", *domains, "macro average"), rows


def _star(p: float | None) -> str:
    """Of a p-value; a single task gives none."""
    return "*" if p is not None and p < 0.05 else ""


def holm(results: Mapping[str, Any]) -> Cells:
    """Q against base by domain, with p-values adjusted over the domains of an arm."""
    domains = results["domains"]
    rows = []
    for name, arm in results["overall"].items():
        if name == "base":
            continue
        cells = [
            f"{number(part['arms'][name]['difference']['q']['point'], 3, sign=True)} "
            f"(p {number(arm['holm'][domain], 3)})"
            for domain, part in domains.items()
        ]
        rows.append((ARM_LABELS[name], *cells))
    return ("Q - base", *domains), rows


def winners(results: Mapping[str, Any]) -> Cells:
    """The best arm of each domain, of all and of the learned ones."""
    rows = []
    for name, domain in results["domains"].items():
        arms = domain["arms"]
        best = max(arms, key=lambda arm: arms[arm]["q"]["point"])
        learned = max(("bc", "awr", "awr-step"), key=lambda a: arms[a]["q"]["point"])
        rows.append(
            (
                name,
                f"{ARM_LABELS[best]} {number(arms[best]['q']['point'], 3)}",
                f"{ARM_LABELS[learned]} {number(arms[learned]['q']['point'], 3)}",
                interval(arms[learned]["difference"]["q"], sign=True),
                number(domain["buffer"]["best_return_per_task"], 3),
            )
        )
    header = ("domain", "best arm, Q", "best learned arm, Q", "its Q - base")
    return (*header, "best buffered return a task"), rows


def sensitivity(domain: Mapping[str, Any]) -> Cells:
    """HMS against base while one threshold moves; * marks the default."""
    rows = domain["sensitivity"]
    arms = list(rows[0]["change"])
    cells = [
        (
            row["threshold"],
            f"{row['value']:g}" + "*" * (row["value"] == row["default"]),
            *(number(row["change"][arm], 3, sign=True) for arm in arms),
        )
        for row in rows
    ]
    return ("threshold", "value", *(ARM_LABELS[arm] for arm in arms)), cells


def support(results: Mapping[str, Any]) -> Cells:
    """Rank correlation of what a buffer supports with what was gained from it."""
    rows = []
    for arm, measures in results["support"]["correlation"].items():
        for measure, found in measures.items():
            rows.append(
                (
                    ARM_LABELS[arm],
                    measure,
                    number(found["coefficient"], 2, sign=True),
                    number(found["p"], 3),
                    str(found["n"]),
                )
            )
    return ("arm", "support of the buffer", "rank", "p", "n"), rows


def predictions(results: Mapping[str, Any]) -> Cells:
    """What was predicted before against what was seen after, by method."""
    header = ("method", "judged", "refused", "bias", "error", "rank", "within")
    header += ("coverage", "meet")
    rows = []
    for method, found in results["prediction_check"].items():
        cells = (method.replace("_", " "), str(found["judged"]), str(found["refused"]))
        if found["judged"]:
            cells += (
                number(found["bias"], 3, sign=True),
                number(found["mean_error"], 3),
                number(found["correlation"]["coefficient"], 2, sign=True),
                number(found["correlation_within"], 2, sign=True),
                number(found["coverage"], 2),
                number(found["overlap"], 2),
            )
        rows.append(cells + ("-",) * (len(header) - len(cells)))
    return header, rows


def simulation(domain: Mapping[str, Any]) -> Cells:
    """Simulated against real held-out episodes, an arm a row."""
    header = ("arm", "Q simulated", "Q real", "steps simulated", "steps real")
    rows = [
        (
            ARM_LABELS[name],
            number(found["q"], 3),
            interval(domain["arms"][name]["q"]),
            number(found["steps"], 2),
            number(domain["arms"][name]["steps"]["point"], 2),
            number(found["steps_distance"], 2),
            number(found["unsupported"], 3),
        )
        for name, found in domain["simulator"]["arms"].items()
    ]
    return (*header, "distance", "unsupported"), rows


def difficulty_note(results: Mapping[str, Any]) -> str:
    """How many points the test of support rests on, in words."""
    points = len(results["support"]["points"])
    domains = len(results["domains"])
    return f"{points} points of {domains} domains, a domain, difficulty and arm each"
