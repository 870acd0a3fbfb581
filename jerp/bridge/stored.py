"""A response store between a session and a model.

Answers come from the store where it has them, from the model where it has not. Failures
(timeout, error) are never stored, and nothing but request and completion goes in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jerp.bridge.executor import (
    FAILED,
    Completion,
    Executor,
    Request,
    complete_checked,
)
from jerp.bridge.request_records import (
    completion_from_record,
    completion_record,
    request_key,
    request_record,
)
from jerp.errors import ConfigError, StoreMissError

if TYPE_CHECKING:
    from jerp.bridge.store import ResponseStore

__all__ = ["COMPLETION", "StoredExecutor"]

COMPLETION = "completion"
"""The kind of a store's entries that hold a request and its completion."""


class StoredExecutor:
    """Answers from a store, and asks `inner` for what the store does not have.

    Args:
      inner: the model; None where there is none: then a miss is an error, and the
        fingerprint is that of the store's files.
      store: where answers are kept. In mode `replay` a miss is an error too.
      remedy: what a user should type after a miss.

    Raises:
      ConfigError: there is neither a model nor a store of one model.
    """

    def __init__(
        self,
        inner: Executor | None,
        store: ResponseStore,
        *,
        remedy: str = "jerp run harness --executor smollm2",
    ):
        self._inner, self.store, self._remedy = inner, store, remedy
        if inner is not None:
            self._fingerprint = inner.fingerprint
        elif len(store.fingerprints) == 1 and store.mode in (
            "replay",
            "replay_then_live",
        ):
            self._fingerprint = store.fingerprints[0]
        else:
            raise ConfigError(
                "inner: expected an executor, or a store to replay that holds the "
                f"answers of one; got None and a store in mode {store.mode!r} with "
                f"answers of {list(store.fingerprints)}"
            )
        store.attach(self._fingerprint)

    @property
    def fingerprint(self) -> str:
        """That of the model whose answers these are."""
        return self._fingerprint

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        """Answers all requests, same length and order; equal ones are asked once.

        Raises:
          StoreMissError: the store has no answer and there is no model to ask; its
            second argument is the request.
        """
        keys = [request_key(self._fingerprint, request) for request in requests]
        answers: dict[str, Completion] = {}
        missing: dict[str, Request] = {}
        for key, request in zip(keys, requests, strict=True):
            record = self.store.get(COMPLETION, key)
            if record is None:
                missing[key] = request
            else:
                answers[key] = completion_from_record(record["completion"])
        if missing:
            answers |= await self._ask(missing)
        return [answers[key] for key in keys]

    def flush(self) -> None:
        """Returns once every answer is on disk."""
        self.store.flush()

    async def _ask(self, missing: dict[str, Request]) -> dict[str, Completion]:
        if self._inner is None or self.store.mode == "replay":
            raise self._miss(next(iter(missing.values())), len(missing))
        asked = list(missing.items())
        answers: dict[str, Completion] = {}

        def keep(index: int, completion: Completion) -> None:
            key, request = asked[index]
            record = completion_record(completion)
            # A live answer is what its replay will be, rounding included.
            answers[key] = completion_from_record(record)
            if completion.status not in FAILED:
                entry = {"request": request_record(request), "completion": record}
                self.store.put(COMPLETION, key, entry)

        try:
            requests = list(missing.values())
            await complete_checked(self._inner, requests, on_answer=keep)
        finally:
            # What was answered before a cap, an error or Ctrl-C is kept.
            self.store.flush()
        return answers

    def _miss(self, request: Request, count: int) -> StoreMissError:
        prompt = request.messages[-1].content if request.messages else ""
        more = f" (and {count - 1} more of this step)" if count > 1 else ""
        return StoreMissError(
            f"the response store has no answer of {self._fingerprint} to sample "
            f"{request.sample_index} of the prompt that ends {prompt[-80:]!r}{more}; "
            f"to ask the model itself: {self._remedy}",
            request,
        )
