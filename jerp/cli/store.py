"""`jerp store`: the recorded responses."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jerp.errors import ConfigError, StorageError

if TYPE_CHECKING:
    from jerp.bridge.store import ResponseStore

__all__ = ["StoreVerify"]


@dataclass(frozen=True)
class StoreVerify:
    """Generate stored completions again from weights and seeds, and compare tokens.

    Attributes:
      sample: how many completions.
      store: a store's file or folder; the recorded stores that come with jerp if none.
      model: a name of `jerp models list`, or a path to weights.
    """

    sample: int = 50
    store: Path | None = None
    model: str = "smollm2"

    def __call__(self) -> int:
        """Prints what was found; 1 if anything differs."""
        if self.sample < 1:
            raise ConfigError(f"--sample: expected at least 1, got {self.sample}")
        from rich.console import Console
        from rich.progress import Progress

        from jerp.bridge.local import LocalExecutor
        from jerp.runs.store_verify import verify_store
        from jerp.storage.weights import load_weights

        store = _open_store(self.store)
        executor = LocalExecutor(load_weights(self.model))
        with Progress(console=Console(stderr=True), transient=True) as progress:
            bar = progress.add_task("generating", total=self.sample)
            report = verify_store(
                store,
                executor,
                sample=self.sample,
                on_progress=lambda done: progress.update(bar, completed=done),
            )
        for name, value in report.rows():
            print(f"{name}: {value}")
        for problem in store.problems:
            print(problem, file=sys.stderr)
        return 0 if report.agrees else 1


def _open_store(path: Path | None) -> ResponseStore:
    """The store at `path`, which `--store` named, or the recorded ones."""
    from jerp.bridge.store import ResponseStore

    if path is None:
        return ResponseStore(None, mode="replay", read_only=_recorded_stores())
    try:
        store = ResponseStore(None, mode="replay", read_only=[path])
        if not store.entries():
            raise StorageError(f"{path}: no responses are stored here")
    except StorageError as error:
        raise StorageError(
            "--store: expected the store of a run (RUN/store) or a file of one: "
            f"{str(error).rstrip('.')}. Name one, or leave --store out to verify the "
            "recorded stores"
        ) from error
    return store


def _recorded_stores() -> list[Path]:
    """The stores that come with the experiments, as package data."""
    import experiments

    folders = [Path(folder) for folder in experiments.__path__]
    return sorted(path for folder in folders for path in folder.rglob("*.jsonl.xz"))
