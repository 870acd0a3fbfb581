"""From files of outcomes to aligned arrays: which tasks, which budgets, and why.

One file gives one agent, two files give two on the tasks that both have. Whatever is
left out, cut or worth knowing becomes a note in words; nothing is dropped silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from jerp.errors import ConfigError, InputError
from jerp.readers.log_options import LogOptions
from jerp.readers.logs import TABLE, log_format, read_runs
from jerp.readers.outcomes import OutcomeTable
from jerp.runs.pass_surface.agents import Agent, align, counted, listed
from jerp.runs.pass_surface.budgets import (
    at_horizons,
    chosen_ks,
    nested_horizons,
    rerun_horizons,
)
from jerp.runs.pass_surface.precision import check_float32
from jerp.runs.pass_surface.replicates import split_by_replicate
from jerp.runs.pass_surface.settings import AUTO, PassktSettings

__all__ = ["Inputs", "read_inputs"]


@dataclass(frozen=True)
class Inputs:
    """What the surfaces are made of.

    Attributes:
      agents: one or more; the first is what the others are held against.
      tasks: names of the N tasks, in the order of the first file.
      parts: names and `[N]` masks; one part named None without `--by`.
      protocol: of all agents.
      ks: budgets k, ascending.
      horizons: budgets T, ascending.
      notes: what was chosen, cut or left out, in words.
      pairs: (first, second), numbers of agents: whom to compare, the second against the
        first. None compares every later agent with the first one.
      replicate: `[N]` numbers or texts, the training seed that made the agents of each
        row; None where that is not known. Rows of one seed share whatever luck its
        training had: with two or more seeds there are intervals between them.
      cluster: `[N]` int, equal iff same task, where a task has a row for each of
        several seeds; None takes every row as a task of its own.
    """

    agents: tuple[Agent, ...]
    tasks: tuple[str, ...]
    parts: tuple[tuple[str | None, np.ndarray], ...]
    protocol: Literal["nested", "rerun"]
    ks: tuple[int, ...]
    horizons: tuple[float, ...]
    notes: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...] | None = None
    replicate: np.ndarray | None = None
    cluster: np.ndarray | None = None

    @property
    def compared(self) -> tuple[tuple[int, int], ...]:
        """The pairs that are compared, in order."""
        if self.pairs is None:
            return tuple((0, later) for later in range(1, len(self.agents)))
        return self.pairs


def read_inputs(settings: PassktSettings) -> Inputs:
    """Reads the files and settles what is left to choose.

    Raises:
      InputError, StorageError: a file is not what it should be.
      ConfigError: the settings do not fit the files.
    """
    _check_announced(settings)
    tables = [_read(settings, path) for path in settings.files]
    rows = None
    if settings.replicates is not None:
        rows = split_by_replicate(tables, settings.replicates)
        tables = rows.tables
    protocol = _protocol(settings, tables)
    tasks = _joined_tasks(tables)
    agents = tuple(
        Agent(label, align(table, tasks), _alone(table, tasks))
        for label, table in zip(_labels(settings), tables, strict=True)
    )
    notes = _log_notes(settings, tables) + _alone_notes(agents, tasks)
    notes += _copy_notes(agents)
    if protocol == "rerun":
        horizons = rerun_horizons(settings, agents, notes)
        agents = tuple(at_horizons(agent, horizons) for agent in agents)
    else:
        horizons = nested_horizons(settings, tables, agents, notes)
    check_float32(settings, tables, horizons)
    return Inputs(
        agents=agents,
        tasks=tasks,
        parts=_parts(settings, tables, tasks),
        protocol=protocol,
        ks=chosen_ks(settings, agents, tasks, notes),
        horizons=horizons,
        notes=tuple(notes),
        replicate=None if rows is None else rows.seeds(tasks),
        cluster=None if rows is None else rows.clusters(tasks),
    )


def _log_notes(settings: PassktSettings, tables: Sequence[OutcomeTable]) -> list[str]:
    """What the readers of logs have to say."""
    notes = [
        f"{label}: {note}"
        for label, table in zip(_labels(settings), tables, strict=True)
        for note in table.notes
    ]
    if notes and settings.announced == "unknown":
        notes.append(
            "no log says whether the agent was told its budget; --announced yes or no "
            "records it"
        )
    return notes


def _alone_notes(agents: Sequence[Agent], tasks: Sequence[str]) -> list[str]:
    """Which tasks only one of the files has."""
    notes = [
        f"{counted(len(agent.alone), 'task')} of {agent.label} left out, not in the "
        f"other file: {listed(agent.alone)}"
        for agent in agents
        if agent.alone
    ]
    if notes:
        notes.append(
            f"all numbers are of the {counted(len(tasks), 'task')} that both files have"
        )
    return notes


def _copy_notes(agents: Sequence[Agent]) -> list[str]:
    """Whether two files are one agent's, the same run for run."""
    if len(agents) != 2 or any(agent.alone for agent in agents):
        return []
    one, two = (agent.runs for agent in agents)
    if not (
        one.horizons == two.horizons
        and np.array_equal(one.spent, two.spent, equal_nan=True)
        and np.array_equal(one.outcome, two.outcome)
        and np.array_equal(one.mask, two.mask)
    ):
        return []
    return [
        "both files hold the same runs: every difference is 0; see whether "
        "one is a copy of the other by mistake"
    ]


def _check_announced(settings: PassktSettings) -> None:
    """Asks what no log says, before the logs are read."""
    for path in settings.files:
        if settings.announced != AUTO or not path.is_file():
            continue
        found = settings.format
        if (log_format(path) if found == AUTO else found) != TABLE:
            raise InputError(
                f"{path}: a log does not say whether the agent was told its budget T; "
                "say it: --announced yes, no or unknown"
            )


def _read(settings: PassktSettings, path: Path) -> OutcomeTable:
    asked = (settings.by, settings.replicates)
    extra = tuple(dict.fromkeys(name for name in asked if name is not None))
    options = LogOptions(
        unit=settings.unit,
        score=settings.score,
        success_at=settings.success_at,
        spent=settings.spent,
        task=settings.task,
        agent=settings.agent,
        errors=settings.errors,
        truncated=settings.truncated,
    )
    return read_runs(
        path,
        format=settings.format,
        options=options,
        extra=extra,
        apart=settings.replicates,
    )


def _labels(settings: PassktSettings) -> list[str]:
    """Names of the files; their paths, or numbers too, where that tells them apart."""
    paths = settings.file_names
    numbered = [f"{path} ({i})" for i, path in enumerate(paths, 1)]
    for labels in ([Path(path).name for path in paths], paths):
        if len(set(labels)) == len(labels):
            return labels
    return numbered


def _protocol(
    settings: PassktSettings, tables: Sequence[OutcomeTable]
) -> Literal["nested", "rerun"]:
    """The protocol that the files speak, which the settings must not contradict."""
    found = {"nested" if t.horizon is None else "rerun" for t in tables}
    if len(found) > 1:
        raise InputError(
            "one file has the column horizon and the other has not: two protocols "
            "cannot be compared; give both files of one protocol"
        )
    if found == {"rerun"}:
        if settings.protocol == "nested":
            raise ConfigError(
                f"--protocol nested: {tables[0].path} has the column horizon, runs of "
                "its own for each T; keep the rows of one horizon and drop the column, "
                "or take --protocol rerun"
            )
        return "rerun"
    if settings.protocol == "rerun":
        raise ConfigError(
            f"--protocol rerun: {tables[0].path} lacks the column horizon, the budget "
            "that each run was given; add it, or take --protocol nested"
        )
    return "nested"


def _joined_tasks(tables: Sequence[OutcomeTable]) -> tuple[str, ...]:
    common = set(tables[0].tasks).intersection(*(table.tasks for table in tables[1:]))
    if not common:
        raise InputError(
            f"no task is in both files: {tables[0].path} has "
            f"{listed(tables[0].tasks, 3)}, {tables[1].path} has "
            f"{listed(tables[1].tasks, 3)}; the column task must name the same things"
        )
    return tuple(task for task in tables[0].tasks if task in common)


def _alone(table: OutcomeTable, tasks: Sequence[str]) -> tuple[str, ...]:
    common = set(tasks)
    return tuple(task for task in table.tasks if task not in common)


def _parts(
    settings: PassktSettings, tables: Sequence[OutcomeTable], tasks: Sequence[str]
) -> tuple[tuple[str | None, np.ndarray], ...]:
    if settings.by is None:
        return ((None, np.ones(len(tasks), bool)),)
    values = []
    for table in tables:
        own = dict(zip(table.tasks, table.task_values(settings.by), strict=True))
        values.append([own[task] for task in tasks])
    for task, *pair in zip(tasks, *values, strict=True):
        if len(set(pair)) > 1:
            raise InputError(
                f"--by {settings.by}: expected one value for a task in both files, got "
                f"{pair[0]!r} and {pair[1]!r} for task {task!r}"
            )
    names = dict.fromkeys(values[0])
    return tuple((name, np.array([v == name for v in values[0]])) for name in names)
