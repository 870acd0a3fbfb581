"""One self-contained HTML page of a run's episodes: `jerp view`.

The page opens from a file without a network: data, style and script are inside, its
content policy lets nothing else run or load, and whatever a model wrote is inserted as
text. Rows and steps are drawn only when they are looked at; texts that arms share are
stored once.

    index     JSON: folders, and a column for each property of an episode
    texts     JSON: every distinct text
    steps-N   JSON: the steps of folder N; texts by their number
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from jerp.errors import StorageError, TrajectoryError
from jerp.runs.browse import entry_text
from jerp.storage.atomic import write_bytes
from jerp.storage.documents import read_json
from jerp.storage.trajectories import TrajectoryFolder
from jerp.trajectory import Trajectory
from jerp.typing import USAGE_KINDS, Outcome

__all__ = ["write_view"]


def write_view(
    run_folder: Path | str, *, on_note: Callable[[str], None] = lambda note: None
) -> Path:
    """Writes `view.html` into a run folder, of all episodes found below it.

    A shard that cannot be read is named on the page; the others are shown.

    Args:
      run_folder: any folder with trajectory folders in it, or one itself.
      on_note: called with each note of the page, such as on shards left out.

    Returns:
      Path of the page.

    Raises:
      StorageError: there are no episodes, or the page cannot be written.
    """
    run_folder = Path(run_folder)
    if not run_folder.is_dir():
        found = "found a file" if run_folder.exists() else "there is nothing"
        raise StorageError(
            f"{run_folder}: expected the folder of a run, {found}; name a folder that "
            "`jerp run harness` wrote"
        )
    texts = _Texts()
    index: dict[str, Any] = {
        "title": run_folder.resolve().name,
        "about": _about(run_folder),
        "outcomes": [o.name.lower() for o in Outcome],
        "usage": USAGE_KINDS,
        "notes": [],
        "folders": [],
        "episodes": [],
    }
    steps = []
    for meta in sorted(run_folder.rglob("meta.json")):
        part = _read_folder(meta.parent, index["notes"], texts)
        if part is not None:
            folder, episodes, folder_steps = part
            folder["path"] = str(meta.parent.relative_to(run_folder))
            number = len(index["folders"])
            index["folders"].append(folder)
            index["episodes"] += [[number, *episode] for episode in episodes]
            steps.append(folder_steps)
    if not index["episodes"]:
        reasons = "".join(f"; {note}" for note in index["notes"])
        raise StorageError(
            f"{run_folder}: no episodes below this folder{reasons}; name the folder of "
            "a harness run that has collected some"
        )
    blocks = {"index": index, "texts": texts.values}
    blocks |= {f"steps-{number}": part for number, part in enumerate(steps)}
    path = run_folder / "view.html"
    write_bytes(path, _page(index["title"], blocks).encode())
    for note in index["notes"]:
        on_note(note)
    return path


class _Texts:
    """Distinct texts, numbered in the order of their first use."""

    def __init__(self) -> None:
        self.values: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        if text not in self._numbers:
            self._numbers[text] = len(self.values)
            self.values.append(text)
        return self._numbers[text]


def _about(run_folder: Path) -> dict[str, Any]:
    """What the manifest says of the run; nothing without one."""
    path = run_folder / "manifest.json"
    if not path.exists():
        return {}
    manifest = read_json(path)
    names = ("config", "started", "versions", "backend", "devices", "git")
    return {name: manifest[name] for name in names if name in manifest}


def _read_folder(
    path: Path, notes: list[str], texts: _Texts
) -> tuple[dict[str, Any], list[list[Any]], list[Any]] | None:
    """A folder's description, its episodes and their steps; None if it has none."""
    episodes: list[list[Any]] = []
    steps: list[Any] = []
    try:
        folder = TrajectoryFolder.open(path)
        columns = folder.annotations()
    except StorageError as error:
        notes.append(str(error))
        return None
    names = sorted({*folder.shards(), *folder.incomplete()})
    left_out: list[str] = []
    for name in names:
        try:
            data, shard_texts = folder.load([name]), folder.transcripts([name])
        except (StorageError, TrajectoryError) as error:
            left_out.append(str(error))
            continue
        episodes += _episode_rows(folder, data)
        steps += _step_rows(data, shard_texts, texts)
    if left_out:
        reasons = "; ".join(left_out)
        notes.append(f"{len(left_out)} of {len(names)} shards left out: {reasons}")
    if not episodes:
        return None
    for name in [n for n, column in columns.items() if len(column) != len(episodes)]:
        notes.append(f"{path}: {name} does not match the episodes shown; left out")
        del columns[name]
    for row, episode in enumerate(episodes):
        episode.append({name: column[row] for name, column in columns.items()})
    meta = folder.meta
    description = {
        "domain": meta.extra.get("domain", path.parent.name),
        "arm": meta.extra.get("arm", path.name),
        "features": meta.feature_names,
        "actions": meta.action_names,
        "model": meta.model_fingerprint,
    }
    return description, episodes, steps


def _episode_rows(folder: TrajectoryFolder, data: Trajectory) -> list[list[Any]]:
    """`[task, version, seed, outcome, score, return, steps]` of each episode."""
    mask = np.asarray(data.mask)
    returns = np.where(mask, data.reward, 0).sum(1)
    keys = folder.meta.task_keys
    return [
        [
            keys.get(str(data.task_id[row]), str(data.task_id[row])),
            int(data.version[row]),
            int(data.seed[row]),
            int(data.outcome[row]),
            _number(data.score[row]),
            _number(returns[row]),
            int(mask[row].sum()),
        ]
        for row in range(len(mask))
    ]


def _step_rows(
    data: Trajectory, transcripts: list[list[dict[str, Any]]], texts: _Texts
) -> list[list[Any]]:
    """`[action, features, legal, probability, reward, usage, entry]` of each step."""
    features = _features(data)
    legal = np.asarray(data.legal) if data.legal is not None else None
    log_prob = np.asarray(data.log_prob) if data.log_prob is not None else None
    episodes = []
    for row, entries in enumerate(transcripts):
        steps = []
        for t in range(int(np.asarray(data.mask)[row].sum())):
            entry = entries[t] if t < len(entries) else {}
            steps.append(
                [
                    int(data.action[row, t]),
                    [_number(v) for v in features[row, t]],
                    None if legal is None else [int(v) for v in legal[row, t]],
                    None if log_prob is None else _number(np.exp(log_prob[row, t])),
                    _number(data.reward[row, t]),
                    [_number(v) for v in np.asarray(data.usage)[row, t]],
                    {name: _entry(name, v, texts) for name, v in entry.items()},
                ]
            )
        episodes.append(steps)
    return episodes


def _features(data: Trajectory) -> np.ndarray:
    """`[B, T, F]`; nothing for observations that are not one vector a step."""
    observation = data.observation
    if isinstance(observation, np.ndarray) and observation.ndim == 3:
        return observation
    return np.zeros((*np.shape(data.mask), 0))


def _entry(name: str, value: Any, texts: _Texts) -> Any:
    """What the page draws itself stays as it is; all else becomes a numbered text."""
    if name in ("probabilities", "verdict"):
        return value
    return texts.number(entry_text(value))


def _number(value: Any) -> float | None:
    """A float short enough to ship; None for NaN, which JSON cannot hold."""
    return round(float(value), 4) if np.isfinite(value) else None


def _page(title: str, blocks: Mapping[str, Any]) -> str:
    template = resources.files("jerp.runs").joinpath("viewer.html").read_text("utf-8")
    hashes = {
        tag: _sha256(template.split(f"<{tag}>")[1].split(f"</{tag}>")[0])
        for tag in ("script", "style")
    }
    policy = f"default-src 'none'; script-src {hashes['script']}; style-src "
    policy += hashes["style"]
    data = "\n".join(
        f'<script type="application/json" id="{name}">{_json(value)}</script>'
        for name, value in blocks.items()
    )
    head, body = template.split("<!-- data -->")
    head = head.replace("{policy}", policy).replace("{title}", html.escape(title))
    return f"{head}{data}{body}"


def _json(value: Any) -> str:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _sha256(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
