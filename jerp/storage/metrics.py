"""Metrics of training as JSON lines, and mirrors of them elsewhere.

The file is the record: a row a step, complete or absent, in order. A run that resumes
takes back the rows after its checkpoint, so that no step is there twice. A mirror may
fail, or be absent, without harm: it is told off once and left alone.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jerp.errors import MissingExtraError, StorageError, UnknownNameError
from jerp.storage.atomic import make_folder, write_bytes
from jerp.storage.documents import defined

__all__ = ["MetricsLog", "Mirror", "open_mirror", "read_metrics"]

Mirror = Callable[[int, Mapping[str, float]], None]
"""Shows a step's metrics somewhere else."""


class MetricsLog:
    """Appends rows to `metrics.jsonl`.

    Args:
      path: of the file.
      first: the next step to be written; rows from it on, of a session that went
        further than its checkpoint, are taken back.
      mirrors: see `open_mirror`.

    Raises:
      StorageError: the file is damaged before its last line, or lacks steps.
    """

    def __init__(self, path: Path, *, first: int = 0, mirrors: Sequence[Mirror] = ()):
        self.path = path
        self._mirrors = list(mirrors)
        make_folder(path.parent)
        found = read_metrics(path)
        kept = [row for row in found if row["step"] < first]
        steps = [row["step"] for row in kept]
        if steps != [*range(first)]:
            raise StorageError(
                f"{path}: expected the {first} steps before the checkpoint, in order, "
                f"got {len(kept)}{' others' if len(kept) == first else ''}; remove the "
                "newest checkpoints to go on from an earlier one, or the run folder to "
                "begin anew"
            )
        if len(found) > first:
            warnings.warn(
                f"{path}: {len(found) - first} steps after the last checkpoint are "
                "taken back, and made again",
                stacklevel=2,
            )
        write_bytes(path, b"".join(map(_line, kept)))

    def write(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows with a `step` each.

        Raises:
          StorageError: the disk refuses.
        """
        rows = [defined(dict(row)) for row in rows]
        try:
            with self.path.open("ab") as file:
                file.write(b"".join(map(_line, rows)))
        except OSError as error:
            raise StorageError(f"{self.path}: {error}") from error
        for row in rows:
            self._show(row)

    def _show(self, row: Mapping[str, Any]) -> None:
        numbers = {k: v for k, v in row.items() if k != "step" and v is not None}
        for mirror in [*self._mirrors]:
            try:
                mirror(row["step"], numbers)
            except Exception as error:  # whatever it is, training goes on
                self._mirrors.remove(mirror)
                warnings.warn(
                    f"a mirror of the metrics failed and is left out from step "
                    f"{row['step']} on: {type(error).__name__}: {error}",
                    stacklevel=2,
                )


def read_metrics(path: Path | str) -> list[dict[str, Any]]:
    """The complete rows of a file, none where there is no file.

    A last line that a kill cut off is left out.

    Raises:
      StorageError: another line is no JSON object with a step.
    """
    path = Path(path)
    try:
        lines = path.read_bytes().split(b"\n") if path.exists() else []
    except OSError as error:
        raise StorageError(f"{path}: {error}") from error
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(lines[:-1]):
        try:
            row = json.loads(line)
            row["step"] = int(row["step"])
        except (ValueError, TypeError, KeyError) as error:
            raise StorageError(
                f"{path}: line {number + 1} is no row of metrics ({error}); remove the "
                "lines from it on, and checkpoints of later steps"
            ) from error
        rows.append(row)
    return rows


def open_mirror(name: str, folder: Path, config: Mapping[str, Any]) -> Mirror:
    """TensorBoard or Weights & Biases, if they are installed.

    Args:
      name: "tensorboard" or "wandb".
      folder: of the run; TensorBoard's files go to `tensorboard/` in it.
      config: shown beside the curves.

    Raises:
      UnknownNameError: another name.
      MissingExtraError: the package is missing; it says what installs it.
    """
    if name == "tensorboard":
        try:
            from tensorboardX import SummaryWriter  # pyright: ignore
        except ImportError as error:
            raise MissingExtraError("tensorboardX", "mirrors") from error
        writer = SummaryWriter(str(folder / "tensorboard"))

        def show(step: int, numbers: Mapping[str, float]) -> None:
            for key, value in numbers.items():
                writer.add_scalar(key, value, step)

        return show
    if name == "wandb":
        try:
            import wandb  # pyright: ignore
        except ImportError as error:
            raise MissingExtraError("wandb", "mirrors") from error
        run = wandb.init(dir=str(folder), config=dict(config), resume="allow")
        return lambda step, numbers: run.log(dict(numbers), step=step)
    raise UnknownNameError("mirror", name, ("tensorboard", "wandb"))


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, allow_nan=False).encode() + b"\n"
