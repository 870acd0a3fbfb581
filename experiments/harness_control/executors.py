"""The executors of the experiment, each behind the response store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.executors.endpoint import NO_ENDPOINT, Endpoint
from experiments.executors.opened import OpenExecutor, open_live
from experiments.harness_control.domains import DOMAINS
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import StorageError

__all__ = ["RECORDED", "open_executor", "recorded_reach"]

RECORDED = Path(__file__).parent / "recorded"
"""SmolLM2-135M's responses to every request that a controller can reach."""


def recorded_reach(domain: str) -> dict[str, Any]:
    """What recording found reachable: tasks, requests, requests a task."""
    return json.loads((RECORDED / f"{domain}.json").read_text(encoding="utf-8"))


@contextmanager
def open_executor(
    kind: str,
    folder: Path,
    console: Console,
    *,
    domains: Sequence[str] = DOMAINS,
    endpoint: Endpoint = NO_ENDPOINT,
) -> Iterator[OpenExecutor]:
    """Opens the executor called `kind`; what it answers is kept in `folder/store`.

    Of recorded responses those of `domains` are read.

    Raises:
      StorageError: the recorded responses are not installed.
      WeightsError: the model's weights are neither cached nor to be had.
      ExecutorError: the endpoint cannot be used.
    """
    if kind != "recorded":
        store = folder / "store"
        with open_live(kind, endpoint, store, console) as opened:
            yield opened
        return
    files = [RECORDED / f"{name}.jsonl.xz" for name in domains]
    missing = [file.name for file in files if not file.exists()]
    if missing:
        raise StorageError(
            f"no {', '.join(missing)} in {RECORDED}; reinstall jerp, or run the "
            "model itself: jerp run harness --executor smollm2"
        )
    with_answers = ResponseStore(None, mode="replay", read_only=files)
    try:
        executor = StoredExecutor(None, with_answers)
        yield OpenExecutor(kind, executor, with_answers)
    finally:
        with_answers.close()
