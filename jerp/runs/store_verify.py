"""Does a recorded store hold what the model really says?

Stored completions are generated again from weights and seeds and compared token by
token. A completion's tokens depend on its request and the model alone, so any
difference is a finding: another numerics, an edited store, a bug.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from jerp.bridge.blocking import wait_for
from jerp.bridge.executor import (
    FAILED,
    Completion,
    Executor,
    Request,
    complete_checked,
)
from jerp.bridge.request_records import (
    completion_from_record,
    request_from_record,
    request_key,
)
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import COMPLETION
from jerp.errors import ConfigError, StorageError

__all__ = ["Difference", "StoreReport", "verify_store"]


@dataclass(frozen=True)
class Difference:
    """A stored completion that the model does not repeat.

    Attributes:
      key: of the entry.
      prompt: end of the request's last message.
      position: first token that differs; None where texts or statuses alone do.
      stored: text and status, as recorded.
      regenerated: text and status, as just generated.
    """

    key: str
    prompt: str
    position: int | None
    stored: str
    regenerated: str


@dataclass(frozen=True)
class StoreReport:
    """What a verification found.

    Attributes:
      fingerprint: of store and executor.
      stored: completions in the store.
      sampled: how many were generated again.
      failed: of these, how many the executor failed to answer: they prove nothing.
      differences: completions that came out otherwise.
      log_prob_gap: largest difference of a token's log-probability where the tokens
        agree; the store keeps five decimals.
    """

    fingerprint: str
    stored: int
    sampled: int
    failed: int
    differences: tuple[Difference, ...]
    log_prob_gap: float

    @property
    def agrees(self) -> bool:
        """Every sampled completion was repeated token by token."""
        return not self.differences and not self.failed

    def rows(self) -> list[tuple[str, str]]:
        """Name and value of each finding, for a table."""
        same = self.sampled - self.failed - len(self.differences)
        rows = [
            ("model", self.fingerprint),
            ("completions in the store", str(self.stored)),
            ("generated again", str(self.sampled)),
            ("the same, token by token", str(same)),
            ("different", str(len(self.differences))),
            ("executor failed", str(self.failed)),
            ("largest gap in log-probability", f"{self.log_prob_gap:.1e}"),
        ]
        for d in self.differences[:5]:
            where = "" if d.position is None else f" from token {d.position}"
            rows.append(
                (f"{d.key[:12]}{where}", f"{d.stored} -> {d.regenerated} ({d.prompt})")
            )
        return rows


def verify_store(
    store: ResponseStore,
    executor: Executor,
    *,
    sample: int = 50,
    seed: int = 0,
    batch_size: int = 16,
    on_progress: Callable[[int], None] = lambda done: None,
) -> StoreReport:
    """Generates `sample` stored completions again and compares them.

    Args:
      store: any mode but `off`; it is not changed.
      executor: the model itself, not a `StoredExecutor`.
      sample: how many completions, or all if there are fewer.
      seed: which ones.
      batch_size: requests an executor call.
      on_progress: called with the number of completions compared so far.

    Raises:
      ConfigError: `sample` or `batch_size` is below 1.
      StorageError: the store has no completions of this executor, or an entry's key is
        not that of its request.
    """
    for name, size in (("sample", sample), ("batch_size", batch_size)):
        if size < 1:
            raise ConfigError(f"{name}: expected at least 1, got {size}")
    stored = _completions(store, executor.fingerprint)
    keys = random.Random(seed).sample(sorted(stored), min(sample, len(stored)))
    failed, gap = 0, 0.0
    differences: list[Difference] = []
    for start in range(0, len(keys), batch_size):
        part = keys[start : start + batch_size]
        answers = wait_for(complete_checked(executor, [stored[k][0] for k in part]))
        for key, new in zip(part, answers, strict=True):
            request, old = stored[key]
            if new.status in FAILED:
                failed += 1
            elif (old.tokens, old.text, old.status) != (
                new.tokens,
                new.text,
                new.status,
            ):
                differences.append(_difference(key, request, old, new))
            else:
                pairs = zip(old.log_probs, new.log_probs, strict=False)
                gap = max([gap, *(abs(a - b) for a, b in pairs)])
        on_progress(start + len(part))
    return StoreReport(
        fingerprint=executor.fingerprint,
        stored=len(stored),
        sampled=len(keys),
        failed=failed,
        differences=tuple(differences),
        log_prob_gap=gap,
    )


def _completions(
    store: ResponseStore, fingerprint: str
) -> dict[str, tuple[Request, Completion]]:
    found: dict[str, tuple[Request, Completion]] = {}
    of_others = 0
    for entry in store.entries():
        if entry.kind != COMPLETION:
            continue
        request = request_from_record(entry.record["request"])
        names = {request_key(f, request): f for f in (*store.fingerprints, fingerprint)}
        if entry.key not in names:
            raise StorageError(
                f"store entry {entry.key}: its key is not that of its request under "
                f"{', '.join(store.fingerprints)}; the store was edited, record it anew"
            )
        if names[entry.key] != fingerprint:
            of_others += 1
            continue
        completion = completion_from_record(entry.record["completion"])
        found[entry.key] = (request, completion)
    if not found:
        raise StorageError(
            f"the store has no completions of {fingerprint}, but {of_others} of "
            f"{', '.join(store.fingerprints) or 'no model'}: verify with that model"
        )
    return found


def _difference(
    key: str, request: Request, old: Completion, new: Completion
) -> Difference:
    position = None
    if old.tokens != new.tokens:
        pairs = zip(old.tokens, new.tokens, strict=False)
        shorter = min(len(old.tokens), len(new.tokens))
        position = next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)
    return Difference(
        key=key,
        prompt=request.messages[-1].content[-60:] if request.messages else "",
        position=position,
        stored=f"{old.text!r} [{old.status}]",
        regenerated=f"{new.text!r} [{new.status}]",
    )
