"""What the tables of a report hold, from `results.json` alone, in text cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jerp.runs.cells import interval, number
from jerp.runs.pass_surface.agents import counted
from jerp.runs.pass_surface.settings import number_text

__all__ = [
    "UNDEFINED",
    "Table",
    "caption",
    "counted_tasks",
    "p_value",
    "surface_table",
    "tables",
]

UNDEFINED = "-"


class Table(NamedTuple):
    """A title, the names of the columns, and rows of as many cells."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def caption(results: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """What every number of a part rests on, in a sentence or two."""
    settings = results["settings"]
    samples = " and ".join(dict.fromkeys(_samples(agent) for agent in part["agents"]))
    told = {True: "announced", False: "not announced", None: "announced: unknown"}
    return (
        f"{_tasks(results, part)} x {samples} samples; "
        f"protocol {settings['protocol']}, T in {settings['unit']}, "
        f"{told[settings['announced']]}; tasks with a coverage of at least "
        f"{number_text(settings['min_coverage'])} at every T; "
        f"{number_text(100 * settings['level'])}% simultaneous bands, "
        f"{settings['resamples']} resamples of tasks, seed {settings['seed']}."
    )


def _tasks(results: Mapping[str, Any], part: Mapping[str, Any]) -> str:
    """How many count; a task has a row for each training seed that it has runs of."""
    kept, every = part["num_kept"], part["num_tasks"]
    if results["replicate"] is None:
        return f"{kept} of {every} tasks"
    seeds = len({results["replicate"][task] for task in part["tasks"]})
    if part["num_distinct"] == kept:
        return f"{kept} of {every} tasks by training seed ({seeds})"
    return (
        f"{part['num_distinct']} tasks under {seeds} training seeds ({kept} of {every} "
        "pairs)"
    )


def counted_tasks(part: Mapping[str, Any]) -> str:
    """How many tasks count: each once, and how often with its seeds if that is more."""
    kept, distinct = part["num_kept"], part["num_distinct"]
    more = "" if distinct == kept else f" ({kept} with their training seeds)"
    return f"{counted(distinct, 'task')}{more}"


def _samples(agent: Mapping[str, Any]) -> str:
    least, most = agent["samples"]["least"], agent["samples"]["most"]
    return str(most) if least == most else f"{least} to {most}"


def tables(results: Mapping[str, Any], part: Mapping[str, Any]) -> Iterator[Table]:
    """All tables of a part, in the order of reading."""
    for agent in part["agents"]:
        yield surface_table(f"Pass@(k, T), {agent['label']}", results, agent["surface"])
        yield _basis(results, agent)
        if agent["marginal_k"]["ks"]:
            yield _marginal_k(results, agent)
        yield _marginal_horizon(results, agent)
    for comparison in part["comparisons"]:
        first, second = comparison["first_label"], comparison["second_label"]
        yield surface_table(
            f"Difference, {second} - {first}, paired by task",
            results,
            comparison["difference"],
            sign=True,
        )
        yield _capability(part, comparison, first, second)


def surface_table(
    title: str,
    results: Mapping[str, Any],
    band: Mapping[str, Any],
    *,
    sign: bool = False,
) -> Table:
    """A row a k and a column a T: values with their limits."""
    rows = [
        (str(k), *(_cell(band, i, j, sign=sign) for j in _columns(results)))
        for i, k in enumerate(results["ks"])
    ]
    return Table(title, ("k", *_horizon_names(results)), rows)


def _basis(results: Mapping[str, Any], agent: Mapping[str, Any]) -> Table:
    """What the infrastructure took, what it could hide, and what was never solved."""
    bounds, last = agent["bounds"], len(results["ks"]) - 1
    unsolved = agent["unsolved"]
    rows = [
        ("coverage", *(_share(value) for value in agent["coverage"])),
        ("infrastructure runs", *map(str, agent["num_infrastructure"])),
        (
            f"bounds, k={results['ks'][last]}",
            *(
                f"{_share(low)} to {_share(high)}"
                for low, high in zip(
                    bounds["low"][last], bounds["high"][last], strict=True
                )
            ),
        ),
        ("never solved", *map(str, unsolved["num_tasks"])),
        ("their rate <=", *(_share(v) for v in unsolved["bound"])),
    ]
    title = f"What it rests on, {agent['label']} (bounds: {bounds['num_tasks']} tasks)"
    return Table(title, ("", *_horizon_names(results)), rows)


def _marginal_k(results: Mapping[str, Any], agent: Mapping[str, Any]) -> Table:
    gain = agent["marginal_k"]
    rows = [
        (f"{k} to {2 * k}", *(_cell(gain, i, j, sign=True) for j in _columns(results)))
        for i, k in enumerate(gain["ks"])
    ]
    title = f"What doubling k adds, {agent['label']}"
    return Table(title, ("k", *_horizon_names(results)), rows)


def _marginal_horizon(results: Mapping[str, Any], agent: Mapping[str, Any]) -> Table:
    gain, names = agent["marginal_horizon"], list(map(number_text, results["horizons"]))
    steps = [f"T {a} to {b}" for a, b in itertools.pairwise(names)]
    rows = [
        (
            str(k),
            *(_cell(gain, i, j, sign=True) for j in range(len(steps))),
            _horizon(agent["saturation_horizon"][i]),
        )
        for i, k in enumerate(results["ks"])
    ]
    near = number(results["settings"]["tolerance"], 2)
    title = (
        f"What the next T adds, {agent['label']} (T*: from there on within {near} of "
        "the last)"
    )
    return Table(title, ("k", *steps, "T*"), rows)


def _capability(
    part: Mapping[str, Any], comparison: Mapping[str, Any], first: str, second: str
) -> Table:
    header = (
        "T",
        "both",
        "gains",
        "losses",
        "neither",
        "p, McNemar",
        "p, Holm",
        "curves cross at k",
    )
    rows = [
        (
            number_text(row["horizon"]),
            *(str(row[name]) for name in ("both", "gains", "losses", "neither")),
            p_value(row["p_value"]),
            p_value(row["p_holm"]),
            _crossing(row["crossing_k"]),
        )
        for row in comparison["boundary"]
    ]
    title = f"Tasks solved at least once (gains: {second} alone, losses: {first} alone"
    if part["num_distinct"] != part["num_kept"]:
        title += "; a task counts once a seed, and p is too small: see the verdict"
    return Table(f"{title})", header, rows)


def _cell(band: Mapping[str, Any], i: int, j: int, *, sign: bool = False) -> str:
    values = {name: band[name][i][j] for name in ("point", "low", "high")}
    if values["point"] is None:
        return UNDEFINED
    if None in values.values():
        return number(values["point"], 2, sign=sign)
    return interval(values, digits=2, sign=sign)


def _columns(results: Mapping[str, Any]) -> range:
    return range(len(results["horizons"]))


def _horizon_names(results: Mapping[str, Any]) -> list[str]:
    return [f"T = {number_text(t)}" for t in results["horizons"]]


def _horizon(value: float | None) -> str:
    return UNDEFINED if value is None else number_text(value)


def _share(value: float | None) -> str:
    return UNDEFINED if value is None else number(value, 2)


def p_value(value: float | None) -> str:
    """Three digits, and a dash where nothing is tested."""
    if value is None:
        return UNDEFINED
    return number(value, 3) if value >= 0.0005 else "< .001"


def _crossing(value: Mapping[str, Any] | None) -> str:
    """Where the second agent overtakes, or falls behind; how sure that it crosses."""
    if value is None or value["point"] is None:
        return UNDEFINED
    text = f"{value['point']:.1f}"
    if value["low"] is not None and value["high"] is not None:
        text += f" [{value['low']:.1f}, {value['high']:.1f}]"
    way = "up" if value["direction"] > 0 else "down"
    share = UNDEFINED if value["share"] is None else f"{100 * value['share']:.0f}%"
    return f"{text} {way}, {share}"
