"""The two executors of the experiment, each behind the response store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from experiments.harness_control.domains import DOMAINS
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import StorageError

__all__ = ["RECORDED", "OpenExecutor", "open_executor", "recorded_reach"]

RECORDED = Path(__file__).parent / "recorded"
"""SmolLM2-135M's responses to every request that a controller can reach."""


@dataclass(frozen=True)
class OpenExecutor:
    """An executor and the store behind it."""

    kind: Literal["recorded", "smollm2"]
    executor: StoredExecutor
    store: ResponseStore

    def description(self) -> dict[str, Any]:
        """What a report says of the executor."""
        stats = self.store.stats
        return {
            "kind": self.kind,
            "fingerprint": self.executor.fingerprint,
            "store": {
                kind: {
                    "hits": stats.hits.get(kind, 0),
                    "misses": stats.misses.get(kind, 0),
                    "distinct": stats.distinct.get(kind, 0),
                }
                for kind in ("completion", "verdict")
            },
            "diversity": asdict(stats.diversity),
            "problems": list(self.store.problems),
        }


def recorded_reach(domain: str) -> dict[str, Any]:
    """What recording found reachable: tasks, requests, requests a task."""
    return json.loads((RECORDED / f"{domain}.json").read_text(encoding="utf-8"))


@contextmanager
def open_executor(
    kind: Literal["recorded", "smollm2"],
    folder: Path,
    console: Console,
    *,
    domains: Sequence[str] = DOMAINS,
) -> Iterator[OpenExecutor]:
    """Opens the executor called `kind`; what it answers is kept in `folder/store`.

    Of recorded responses those of `domains` are read.

    Raises:
      StorageError: the recorded responses are not installed.
      WeightsError: the model's weights are neither cached nor to be had.
    """
    if kind == "recorded":
        files = [RECORDED / f"{name}.jsonl.xz" for name in domains]
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise StorageError(
                f"no {', '.join(missing)} in {RECORDED}; reinstall jerp, or run the "
                "model itself: jerp run harness --executor smollm2"
            )
        store = ResponseStore(None, mode="replay", read_only=files)
        inner = None
    else:
        store = ResponseStore(folder / "store")
        inner = _smollm2(console)
    try:
        yield OpenExecutor(kind, StoredExecutor(inner, store), store)
    finally:
        store.close()


def _smollm2(console: Console) -> Any:
    """SmolLM2-135M-Instruct in JAX, its weights fetched first if need be."""
    from jerp.bridge.local import LocalExecutor
    from jerp.storage.pull import pull
    from jerp.storage.weights import load_weights

    console.print("executor smollm2: fetching its weights unless they are cached")
    pull("smollm2")
    return LocalExecutor(load_weights("smollm2"))
