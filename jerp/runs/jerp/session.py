"""A run between two checkpoints: what it holds, and when it writes it.

Metrics and the ledger are appended first, then the checkpoint, then `pool.json`. What
is killed, or fails, anywhere goes on from the last checkpoint: rows after it are taken
back and made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jerp.rules.book import RuleBook
from jerp.runs.jerp.learner import Learner
from jerp.runs.jerp.record import (
    LEDGER,
    POOL,
    Memory,
    check_own_pool,
    known_rows,
    recall,
    save_checkpoint,
    the_pool,
)
from jerp.runs.jerp.references import References
from jerp.runs.jerp.settings import check_readable
from jerp.runs.policy.checks import placed
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.metrics import MetricsLog, Mirror
from jerp.storage.rule_documents import (
    PoolDocument,
    check_capacity,
    open_document,
    pool_document,
    pool_hash,
)
from jerp.storage.rule_files import write_pool
from jerp.storage.rule_ledger import RuleLedger, start_rows
from jerp.training.joint import JointState
from jerp.training.state import TrainState

__all__ = ["Session", "open_session"]


@dataclass
class Session:
    """A run as far as it came.

    Attributes:
      learner: what an iteration does.
      checkpoints: of the run.
      log: of metrics.
      ledger: of edits.
      memory: beside the arrays.
      state: policy and pool; consumed by the next iteration.
      done: iterations.
    """

    learner: Learner
    checkpoints: Checkpoints
    log: MetricsLog
    ledger: RuleLedger
    memory: Memory
    state: JointState
    done: int

    def advance(self, size: int) -> None:
        """Does `size` iterations and a checkpoint."""
        metrics, edits = [], []
        for number in range(self.done, self.done + size):
            found = self.learner.iterate(self.state, self.memory, number)
            self.state = found.state
            metrics.append({"step": number, **found.metrics})
            edits += found.rows
        self.done += size
        if (retirement := self.learner.retirement) is not None:
            self.state, rows = retirement.retired(self.state, self.memory, self.done)
            edits += rows
        self.log.write(metrics)
        self.ledger.write(edits)
        save_checkpoint(
            *(self.learner.folder, self.checkpoints, self.done),
            *(self.state, self.memory, self.ledger),
        )

    @property
    def document(self) -> PoolDocument:
        """The pool, with the sources of its rules."""
        return the_pool(self.state.pool, self.memory, self.ledger)


def open_session(
    learner: Learner,
    checkpoints: Checkpoints,
    train: TrainState,
    start: PoolDocument,
    *,
    count_tokens: Callable[[str], int],
    mirrors: Sequence[Mirror] = (),
) -> Session:
    """Begins a run, or takes it up at its newest checkpoint.

    Args:
      learner: of the run.
      checkpoints: of the run, perhaps none yet.
      train: the policy's part at the start.
      start: the rules at the start.
      count_tokens: how long a rule is.
      mirrors: of the metrics.

    Raises:
      InputError: more rules in `start` than a pool may hold, in words that the policy
        cannot read, or of other task keys.
      StorageError: see `train_jerp`.
    """
    folder, names = learner.folder, learner.tasks.names
    check_capacity(start, learner.plan.rules.capacity)
    check_readable(start, learner.language_read)
    slots = learner.plan.rules.slots(learner.plan.task.config.num_groups)
    book = RuleBook(count_tokens=count_tokens)
    pool, book, _ = open_document(start, slots, task_keys=names, book=book)
    found = pool_hash(pool_document(pool, book, names))
    kept = learner.settings
    references = References(limit=kept.references, a_group=kept.references_a_group)
    memory = Memory(book, references, names, found)
    state, done = placed(JointState(train, pool)), checkpoints.latest or 0
    # A file of the start pool may name fewer task keys than the run has.
    begun = {"pool_hash": found, "pool_hash_before": pool_hash(start)}
    document = {**begun, "ledger_rows": None}
    if done:
        state = checkpoints.restore(state, done)
        document = checkpoints.document(done)
        recall(memory, document, count_tokens)
    pool = pool_document(state.pool, memory.book, names)
    check_own_pool(folder, done, document, pool)
    log = MetricsLog(folder / "metrics.jsonl", first=done, mirrors=mirrors)
    ledger = RuleLedger(folder / LEDGER, first=done, **known_rows(document))
    if not done and (rows := start_rows(start, memory.book)):
        ledger.write(rows)
    session = Session(learner, checkpoints, log, ledger, memory, state, done)
    write_pool(folder / POOL, session.document)
    return session
