"""Executors behind the response store, opened for as long as a run lasts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.executors.endpoint import NO_ENDPOINT, Endpoint, is_endpoint
from jerp.bridge.executor import Executor
from jerp.bridge.remote import RemoteExecutor
from jerp.bridge.remote_models import the_model
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.errors import ConfigError

__all__ = ["OpenExecutor", "check_executor", "local_model", "open_live", "resolved"]

SMOLLM2 = "smollm2"


@dataclass(frozen=True)
class OpenExecutor:
    """An executor and the store behind it.

    Attributes:
      kind: as it was asked for: `recorded`, a model, or an address.
      executor: answers.
      store: keeps what was answered.
      remote: the endpoint's executor, if it is one.
    """

    kind: str
    executor: StoredExecutor
    store: ResponseStore
    remote: RemoteExecutor | None = None

    def spent(self) -> str:
        """What was asked of an endpoint so far, in a line; empty for other models."""
        return "" if self.remote is None else str(self.remote.usage)

    def description(self) -> dict[str, Any]:
        """What a report says of the executor."""
        stats = self.store.stats
        usage = {} if self.remote is None else {"usage": asdict(self.remote.usage)}
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
            **usage,
        }


def check_executor(executor: str, endpoint: Endpoint) -> None:
    """Refuses what cannot be meant before anything is opened.

    Raises:
      ConfigError: options of an endpoint without one, a path that is none, or a
        setting of the endpoint that is out of range.
      InputError: a file of the endpoint's options is not what it should be.
    """
    if is_endpoint(executor):
        _ = endpoint.settings
        return
    if endpoint != NO_ENDPOINT:
        changed = next(
            name
            for name, value in asdict(endpoint).items()
            if value != getattr(NO_ENDPOINT, name)
        )
        raise ConfigError(
            f"{changed}: expected with an address as --executor, such as "
            f"http://localhost:8000/v1, got --executor {executor}"
        )
    if {os.sep, "/"} & {*executor} and not Path(executor).exists():
        raise ConfigError(
            f"executor: {executor}: no such file or folder; an address begins with "
            "http:// or https://"
        )


def resolved(executor: str, endpoint: Endpoint) -> Endpoint:
    """The endpoint with its model's name, which it is asked for if need be.

    Raises:
      ExecutorError: it serves none or several, or does not answer.
    """
    if not is_endpoint(executor) or endpoint.model:
        return endpoint
    model = the_model(executor, settings=replace(endpoint, max_dollars=None).settings)
    return replace(endpoint, model=model)


@contextmanager
def open_live(
    executor: str, endpoint: Endpoint, folder: Path, console: Console
) -> Iterator[OpenExecutor]:
    """Opens a model of this machine or an endpoint; its answers are kept in a folder.

    Args:
      executor: an address, a name of `jerp models list`, or a path to weights.
      endpoint: see `resolved`.
      folder: of the store.
      console: to say what is fetched.

    Raises:
      WeightsError: a model's weights are neither cached nor to be had.
      ExecutorError: the endpoint cannot be used.
    """
    inner, remote = _inner(executor, endpoint, console)
    store = ResponseStore(folder)
    try:
        stored = StoredExecutor(inner, store)
        yield OpenExecutor(executor, stored, store, remote)
    finally:
        store.close()


def _inner(
    executor: str, endpoint: Endpoint, console: Console
) -> tuple[Executor, RemoteExecutor | None]:
    if is_endpoint(executor):
        remote = RemoteExecutor(executor, endpoint.model, settings=endpoint.settings)
        return remote, remote
    return local_model(executor, console), None


def local_model(name: str, console: Console) -> Executor:
    """A model in JAX on this machine, its weights fetched first if need be."""
    from jerp.bridge.local import LocalExecutor
    from jerp.storage.pull import pull
    from jerp.storage.weights import load_weights

    if name == SMOLLM2:
        console.print("executor smollm2: fetching its weights unless they are cached")
        pull(name)
    return LocalExecutor(load_weights(name))
