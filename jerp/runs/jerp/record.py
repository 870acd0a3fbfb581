"""What a joint run keeps, and how a policy is never run with another pool than its own.

    <folder>/metrics.jsonl          a row an iteration
    <folder>/rules.jsonl            every edit, and scores over time (the ledger)
    <folder>/checkpoints/           policy and pool, and a document beside them
    <folder>/pool.json              the pool of the newest checkpoint, for people
    <folder>/nan-batch.safetensors  the episodes that made a loss NaN, if one did

A checkpoint's document has the texts of the rules, those that were retired, the
references and the hash of the pool. `pool.json` is written after the checkpoint: a run
that was killed in between leaves the one before, which is known by its hash and
replaced. Any other is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax

from jerp.errors import JerpError, StorageError
from jerp.rules.book import RuleBook
from jerp.rules.pool import RulePool
from jerp.runs.jerp.references import References
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.rule_documents import PoolDocument, pool_document, pool_hash
from jerp.storage.rule_files import read_pool, write_pool
from jerp.storage.rule_ledger import RuleLedger, histories, rows_before
from jerp.training.joint import JointState

__all__ = [
    "LEDGER",
    "POOL",
    "Memory",
    "PolicyAndPool",
    "check_own_pool",
    "known_rows",
    "load_policy_and_pool",
    "recall",
    "save_checkpoint",
    "the_pool",
]

POOL, LEDGER, CHECKPOINTS = "pool.json", "rules.jsonl", "checkpoints"


@dataclass
class Memory:
    """What a run knows beside its arrays.

    Attributes:
      book: the texts of all rules so far.
      references: successes of earlier groups.
      names: of the task keys.
      pool_hash: of the pool at the last checkpoint, or at the start.
      retired: by task key, texts of rules that were retired.
    """

    book: RuleBook
    references: References
    names: tuple[str, ...]
    pool_hash: str
    retired: dict[str, set[str]] = field(default_factory=dict)


def the_pool(pool: RulePool, memory: Memory, ledger: RuleLedger) -> PoolDocument:
    """The pool as a document, with the sources that the ledger knows."""
    known = ledger.histories
    return pool_document(pool, memory.book, memory.names, known.sources, known.notes)


def save_checkpoint(
    folder: Path,
    checkpoints: Checkpoints,
    step: int,
    state: JointState,
    memory: Memory,
    ledger: RuleLedger,
) -> None:
    """Keeps policy, pool and memory, all or nothing, then shows the pool to people.

    Raises:
      StorageError: the disk refuses.
    """
    pool = the_pool(state.pool, memory, ledger)
    found = pool_hash(pool)
    document = {
        "texts": [*memory.book.texts],
        "task_keys": [*memory.names],
        "references": memory.references.document(),
        "retired": {key: sorted(texts) for key, texts in memory.retired.items()},
        "pool_hash": found,
        "pool_hash_before": memory.pool_hash,
        "ledger_rows": ledger.num_rows,
        "ledger_digest": ledger.digest,
    }
    checkpoints.save(step, state, document)
    memory.pool_hash = found
    write_pool(folder / POOL, pool)


def recall(
    memory: Memory, document: Mapping[str, Any], count_tokens: Callable[[str], int]
) -> None:
    """Makes the memory that of a checkpoint.

    Args:
      memory: at the start; changed.
      document: of the checkpoint.
      count_tokens: of the book.
    """
    memory.book = RuleBook(document["texts"], count_tokens=count_tokens)
    memory.references.take(document["references"])
    memory.pool_hash = document["pool_hash"]
    memory.retired = {key: {*texts} for key, texts in document["retired"].items()}


def known_rows(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a checkpoint's document knows of the ledger, see `rows_before`."""
    return {
        "num_rows": document["ledger_rows"],
        # None of checkpoints that were written before there was one.
        "digest": document.get("ledger_digest"),
    }


def check_own_pool(
    folder: Path, step: int, document: Mapping[str, Any], pool: PoolDocument
) -> None:
    """Raises `StorageError` unless the pool is the one that the policy knows.

    Args:
      folder: of the run.
      step: of the newest checkpoint.
      document: of the checkpoint.
      pool: that is in it.
    """
    kept = _check_hash(folder, step, document, pool)
    path = folder / POOL
    try:
        shown = pool_hash(read_pool(path)) if path.exists() else kept
    except JerpError as error:
        raise StorageError(
            f"{error}; remove that file to go on with the pool of checkpoint {step}, "
            "which is written there again"
        ) from error
    if shown not in (kept, document["pool_hash_before"]):
        raise StorageError(
            f"{path}: expected the pool that the policy of checkpoint {step} was "
            f"trained with, {kept}, got {shown}; move the file away to go on with the "
            "policy's own, which is written there again (also if it is of a later "
            "checkpoint, which is gone), and give yours to a new run as start_pool"
        )


def _check_hash(
    folder: Path, step: int, document: Mapping[str, Any], pool: PoolDocument
) -> str:
    kept, found = document["pool_hash"], pool_hash(pool)
    if found != kept:
        raise StorageError(
            f"{folder}: the policy of checkpoint {step} was trained with the pool "
            f"{kept}, and {found} is beside it; remove that checkpoint to go on from "
            "an earlier one"
        )
    return kept


class PolicyAndPool(NamedTuple):
    """A policy and the pool that it was trained with.

    Attributes:
      params: of the policy, those that were trained.
      pool: as arrays, `[N, C]`.
      book: the texts of its ids.
      task_keys: N names.
      document: the pool as a document.
      step: iterations that were done.
    """

    params: Any
    pool: RulePool
    book: RuleBook
    task_keys: tuple[str, ...]
    document: PoolDocument
    step: int


def load_policy_and_pool(folder: Path | str, step: int | None = None) -> PolicyAndPool:
    """A trained policy with its own pool, for evaluation.

    Args:
      folder: of a run of `train_jerp`.
      step: of a checkpoint; the newest without one.

    Raises:
      StorageError: there is no checkpoint, its pool is not the policy's, or the ledger,
        which has the sources of rules, is another than it was.
    """
    folder = Path(folder)
    if not (folder / CHECKPOINTS).is_dir():
        raise StorageError(
            f"{folder}: expected the folder of a run of joint learning, got none with "
            f"{CHECKPOINTS}/ in it; check the path"
        )
    with Checkpoints(folder / CHECKPOINTS) as checkpoints:
        newest = checkpoints.latest
        state = checkpoints.restore(step=step)
        document = checkpoints.document(step)
    number = int(newest if step is None and newest is not None else step or 0)
    pool = RulePool(**state["pool"])
    book, names = RuleBook(document["texts"]), tuple(document["task_keys"])
    rows = rows_before(folder / LEDGER, number, **known_rows(document))
    known = histories(rows)
    found = pool_document(pool, book, names, known.sources, known.notes)
    # The file is that of the newest checkpoint.
    check = check_own_pool if number == newest else _check_hash
    check(folder, number, document, found)
    params = jax.device_get(state["train"]["params"])
    return PolicyAndPool(params, pool, book, names, found, number)
