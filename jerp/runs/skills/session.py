"""A run between two checkpoints: what it holds, and when it writes it.

    <folder>/metrics.jsonl     a row a batch
    <folder>/tree.jsonl        a node a draft
    <folder>/runs.jsonl        every run of a skill, with its evidence
    <folder>/checkpoints/      the optimizer, and a document of the states beside it

Runs are written as soon as they are executed, the rest after a batch. What is killed
goes on from the last checkpoint: nodes and rows after it are taken back and made again,
from runs that are there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jerp.runs.policy.checks import placed
from jerp.runs.policy.iterations import whole_params
from jerp.runs.skills.batch import Learner, seeds
from jerp.runs.skills.sources import Source, order_of, state_of
from jerp.runs.skills.work import RefinementState, workplace_name
from jerp.storage.checkpoints import Checkpoints
from jerp.storage.metrics import MetricsLog, Mirror
from jerp.storage.skill_runs import SkillRunFile
from jerp.storage.skill_tree import SkillTreeFile
from jerp.training.state import TrainState

__all__ = ["CHECKPOINTS", "METRICS", "RUNS", "TREE", "Session", "open_session"]

METRICS, TREE, RUNS = "metrics.jsonl", "tree.jsonl", "runs.jsonl"
CHECKPOINTS = "checkpoints"

SOURCES = ("seeds", "current", "kept")
"""Of a session, in a checkpoint's document."""


@dataclass
class Session:
    """A run as far as it came.

    Attributes:
      learner: what a batch does.
      checkpoints: of the run.
      log: of metrics.
      tree: of all drafts.
      runs: of all skills.
      state: of the optimizer; consumed by the next batch.
      done: batches.
      seeds: of the first phase.
      current: of this phase.
      kept: so far in this phase.
    """

    learner: Learner
    checkpoints: Checkpoints
    log: MetricsLog
    tree: SkillTreeFile
    runs: SkillRunFile
    state: TrainState
    done: int
    seeds: list[Source] = field(default_factory=list)
    current: list[Source] = field(default_factory=list)
    kept: list[Source] = field(default_factory=list)

    def advance(self, size: int) -> None:
        """Does `size` batches and a checkpoint."""
        for number in range(self.done, self.done + size):
            found = self.learner.learn(
                *(self.state, self._states(number), number),
                *(self.runs, self.tree.tree.next_id),
            )
            self.state = found.state
            self.kept += found.kept
            self.tree.extend(found.nodes)
            self.log.write([{"step": number, **found.metrics}])
            if (number + 1) % self.learner.settings.batches == 0:
                # Nothing to revise: the next phase begins where the first one did.
                self.current, self.kept = self.kept or self.seeds, []
        self.done += size
        self.checkpoints.save(self.done, self.state, self._document())

    def begin(self, tasks: Sequence[str]) -> None:
        """Drafts and executes the seeds."""
        params = whole_params(self.state, self.learner.frozen)
        nodes, self.seeds = seeds(self.learner, params, tasks, self.runs)
        self.tree.extend(nodes)
        self.current = self.seeds

    def recall(self, document: Mapping[str, Any]) -> None:
        """Takes up the states of a checkpoint."""
        for name in SOURCES:
            setattr(self, name, [Source(*row) for row in document[name]])

    def _states(self, number: int) -> list[RefinementState]:
        """Of a batch: those of the phase in random order, as often as it takes."""
        settings, groups = self.learner.settings, self.learner.config.num_groups
        phase, before = divmod(number, settings.batches)
        size = len(self.current)
        drawn = order_of(self.learner.key, phase, before * groups, groups, size)
        return [
            state_of(self.current[i], self.tree.tree, self.runs, settings.evidence)
            for i in drawn
        ]

    def _document(self) -> dict[str, Any]:
        found = {name: [s.row for s in getattr(self, name)] for name in SOURCES}
        return {**found, "num_nodes": len(self.tree.tree)}


@contextlib.contextmanager
def open_session(
    learner: Learner,
    checkpoints: Checkpoints,
    begun: TrainState,
    tasks: Sequence[str],
    *,
    mirrors: Sequence[Mirror] = (),
) -> Iterator[Session]:
    """Begins a run, or takes it up at its newest checkpoint.

    Args:
      learner: of the run.
      checkpoints: of the run, perhaps none yet.
      begun: the optimizer at the start.
      tasks: keys.
      mirrors: of the metrics.

    Raises:
      StorageError: see `train_skills`.
    """
    folder, done = learner.folder, checkpoints.latest or 0
    state, document = placed(begun), {"num_nodes": 0}
    if done:
        # First of all: it refuses another run, whose files stay as they are.
        state = checkpoints.restore(state, done)
        document = checkpoints.document(done)
    name = workplace_name(learner.workplace)
    with (
        SkillRunFile(folder / RUNS, workplace=name) as runs,
        SkillTreeFile(folder / TREE, num_nodes=document["num_nodes"]) as tree,
    ):
        log = MetricsLog(folder / METRICS, first=done, mirrors=mirrors)
        session = Session(learner, checkpoints, log, tree, runs, state, done)
        if done:
            session.recall(document)
        else:
            session.begin(tasks)
        yield session
