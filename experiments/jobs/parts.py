"""Parts of a run that one process makes, each in a folder, each once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.jobs.job import is_done
from experiments.jobs.process_notes import ProcessNotes
from jerp.storage.documents import write_json
from jerp.storage.locks import lock_folder
from jerp.storage.tensors import save_tree

__all__ = ["Made", "make_parts"]

Made = tuple[dict[str, Any], dict[str, Any]]
"""Arrays and a document: what a part found."""


def make_parts(
    folder: Path, parts: Mapping[str, Callable[[Path], Made]], fingerprint: str
) -> None:
    """Makes what is not there yet.

    Args:
      folder: of the run.
      parts: in order; each is given its folder, and returns what
        `evaluation.safetensors` is to hold.
      fingerprint: of the model, which `process.json` names beside what it took.
    """
    notes = ProcessNotes()
    for part, make in parts.items():
        if is_done(folder / part):
            continue
        where = folder / part
        where.mkdir(parents=True, exist_ok=True)
        # Not even a process whose parent was killed may write here at the same time.
        with lock_folder(where):
            before = time.monotonic()
            found, document = make(where)
            taken = {**notes.taken(), "seconds": time.monotonic() - before}
            write_json(where / "process.json", {**taken, "fingerprint": fingerprint})
            # Last, because it marks the part as done.
            save_tree(where / "evaluation.safetensors", found, document)
