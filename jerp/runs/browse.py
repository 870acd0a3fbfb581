"""Trajectory folders as terminal tables: `jerp trajectories check` and `show`.

Text that a model wrote is printed without its control characters, which a terminal
would obey, and never read as markup.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from jerp.errors import ConfigError, StorageError
from jerp.storage.atomic import temporaries
from jerp.storage.trajectories import ShardReport, TrajectoryFolder
from jerp.trajectory import Trajectory, select
from jerp.typing import USAGE_KINDS, Outcome

__all__ = [
    "check",
    "check_run",
    "check_table",
    "entry_text",
    "episode_steps",
    "episode_table",
    "printable",
]


def check(path: Path) -> tuple[RenderableType, bool]:
    """`check_table` of a trajectory folder, `check_run` of a folder above some.

    Raises:
      StorageError: it is neither, or its meta is corrupt.
    """
    if not (path / "meta.json").exists() and any(path.rglob("meta.json")):
        return check_run(path)
    return check_table(TrajectoryFolder.open(path))


def check_run(run_folder: Path) -> tuple[RenderableType, bool]:
    """A row for each trajectory folder below `run_folder`, and whether all is whole."""
    table = _table("folder", "episodes", "state")
    whole = True
    for meta in sorted(run_folder.rglob("meta.json")):
        try:
            reports = TrajectoryFolder.open(meta.parent).check()
        except StorageError as error:
            episodes, problems = "", [str(error)]
        else:
            episodes = str(sum(report.episodes for report in reports))
            problems = [f"{r.name}: {r.problem}" for r in reports if r.problem]
        whole &= not problems
        name = str(meta.parent.relative_to(run_folder))
        state = "; ".join(problems) or "whole"
        table.add_row(printable(name), episodes, printable(state))
    return table, whole


def check_table(folder: TrajectoryFolder) -> tuple[RenderableType, bool]:
    """A row for each shard and half-written file, and whether all is whole."""
    table = _table("shard", "episodes", "steps", "state")
    reports = folder.check()
    for report in reports:
        state = printable(report.problem or "whole")
        table.add_row(report.name, str(report.episodes), str(report.steps), state)
    for path in temporaries(folder.folder):
        state = (
            "half-written: in the making, or of a killed run, which then starts anew"
        )
        table.add_row(printable(path.name), "", "", state)
    whole = not any(report.problem for report in reports)
    return Group(table, _present(reports)), whole


def episode_table(folder: TrajectoryFolder) -> Table:
    """A row for each episode, in the order of `TrajectoryFolder.load`."""
    data = folder.load()
    columns = folder.annotations()
    table = _table("episode", "task", "version", "seed", "outcome", "score", "return")
    for name in ("steps", "actions", *columns):
        table.add_column(printable(name))
    for row in range(len(data.mask)):
        mask = data.mask[row]
        actions = [_action(folder, a) for a in data.action[row][mask]]
        table.add_row(
            str(row),
            printable(folder.meta.task_keys.get(str(data.task_id[row]), "")),
            str(data.version[row]),
            str(data.seed[row]),
            Outcome(int(data.outcome[row])).name.lower(),
            f"{data.score[row]:.3f}",
            f"{data.reward[row][mask].sum():.3f}",
            str(mask.sum()),
            printable(" ".join(actions)),
            *(printable(str(values[row])) for values in columns.values()),
        )
    return table


def episode_steps(folder: TrajectoryFolder, episode: int) -> RenderableType:
    """Every step of one episode: what the policy saw and did, and the text of it.

    Raises:
      ConfigError: there is no such episode.
    """
    data = folder.load()
    count = len(data.mask)
    if not 0 <= episode < count:
        raise ConfigError(f"episode: expected 0 to {count - 1}, got {episode}")
    steps = folder.transcripts()[episode]
    one = select(data, np.array([episode]))
    parts: list[RenderableType] = []
    for step in range(int(one.mask.sum())):
        action = _action(folder, one.action[0, step])
        parts.append(_heading(f"step {step}: {action}"))
        entry = steps[step] if step < len(steps) else {}
        parts += [_field(*field) for field in _numbers(folder, one, step)]
        parts += [_field(name, value) for name, value in entry.items()]
    outcome = Outcome(int(one.outcome[0])).name.lower()
    parts.append(_heading(f"{outcome}, score {one.score[0]:.3f}"))
    return Group(*parts)


def entry_text(value: Any) -> str:
    """A transcript's entry as text: itself, or JSON without what is empty."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        empty = (None, "", [])
        value = {k: v for k, v in value.items() if v is not False and v not in empty}
    return json.dumps(value)


def printable(text: str) -> Text:
    """`text` with control characters shown as escapes, and no markup."""
    shown = (c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
    return Text("".join(shown))


def _present(reports: Sequence[ShardReport]) -> Text:
    """How many episodes there are, and which shards cannot be counted on."""
    damaged = [report.name for report in reports if report.problem]
    episodes = sum(report.episodes for report in reports)
    whole = len(reports) - len(damaged)
    text = f"{episodes} episodes present, in {whole} of {len(reports)} shards"
    return printable(text + (f"; damaged: {', '.join(damaged)}" if damaged else ""))


def _numbers(
    folder: TrajectoryFolder, one: Trajectory, step: int
) -> list[tuple[str, Any]]:
    fields: list[tuple[str, Any]] = []
    names = folder.meta.feature_names
    if names:
        values = np.asarray(one.observation)[0, step]
        shown = (f"{n}={v:.3g}" for n, v in zip(names, values, strict=True))
        fields.append(("features", " ".join(shown)))
    if one.legal is not None:
        legal = np.flatnonzero(np.asarray(one.legal)[0, step])
        fields.append(("legal", " ".join(_action(folder, a) for a in legal)))
    if one.log_prob is not None:
        probability = float(np.exp(np.asarray(one.log_prob)[0, step]))
        fields.append(("probability", f"{probability:.3f}"))
    fields.append(("reward", f"{np.asarray(one.reward)[0, step]:.3f}"))
    usage = zip(USAGE_KINDS, np.asarray(one.usage)[0, step], strict=True)
    fields.append(("usage", " ".join(f"{k}={v:.4g}" for k, v in usage)))
    return fields


def _heading(text: str) -> Text:
    return Text.assemble(("── ", "bold"), printable(text))


def _field(name: str, value: Any) -> Text:
    return Text.assemble((f"{name}: ", "bold"), printable(entry_text(value)))


def _action(folder: TrajectoryFolder, action: Any) -> str:
    names = folder.meta.action_names
    return names[int(action)] if names else str(int(action))


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name)
    return table
