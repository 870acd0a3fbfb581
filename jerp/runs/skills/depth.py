"""One round of refinement: every task's skill is revised once, executed, and decided.

All of it depends on the key and the depth, and on what came before. What the tree holds
of a depth is taken from there, so that a refinement that goes on decides as it did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import numpy as np

from jerp.estimators.sequential import SequentialVerdict
from jerp.models.draft_policy import DraftPolicy
from jerp.runs.skills.acceptance import Acceptance, Challenge, PairedTest, decide
from jerp.runs.skills.drafting import draft_node, drafted
from jerp.runs.skills.settings import EvidenceShown
from jerp.runs.skills.sources import Source, source_of, state_of
from jerp.runs.skills.work import SkillRun, Trial, Workplace, executed
from jerp.skills.node import SkillNode
from jerp.skills.retention import evidence_pair
from jerp.storage.skill_runs import SkillRunFile
from jerp.storage.skill_tree import SkillTreeFile
from jerp.typing import Key, Outcome

__all__ = ["Depth", "Refinement"]


class Depth(NamedTuple):
    """What a depth came to, and what it cost.

    Attributes:
      skills: of each task after it, as Markdown; None where there is none.
      success: of each task, share of the answered runs of that skill, of the executor
        alone where there is none; NaN if nobody answered.
      executor_calls: of this depth, tests included.
      executor_tokens: likewise.
      draft_tokens: that the optimizer wrote.
      parsed: share of the drafts that had a skill.
      tests: that were begun.
      accepted: of those.
      seconds: that it took, in the session that finished it.
    """

    skills: dict[str, str | None]
    success: dict[str, float]
    executor_calls: int
    executor_tokens: int
    draft_tokens: int
    parsed: float
    tests: int = 0
    accepted: int = 0
    seconds: float = 0.0

    @property
    def metrics(self) -> dict[str, float]:
        """A row of them."""
        found = {k: float(v) for k, v in self._asdict().items() if k not in _BY_TASK}
        shares = [share for share in self.success.values() if not np.isnan(share)]
        return {"success": float(np.mean(shares)) if shares else np.nan, **found}


_BY_TASK = ("skills", "success")


@dataclass
class Refinement:
    """A refinement as far as it came.

    Attributes:
      key: of it.
      workplace, policy, params: see `refine_skills`.
      tasks: N keys.
      tree: of all drafts.
      runs: of all skills.
      num_drafts, num_runs, evidence, acceptance, block, at_once: see `refine_skills`.
      current: node of each task's skill; None where there is none.
      num_tests: that were begun, or would have been.
    """

    key: Key
    workplace: Workplace
    policy: DraftPolicy
    params: Any
    tasks: Sequence[str]
    tree: SkillTreeFile
    runs: SkillRunFile
    num_drafts: int
    num_runs: int
    evidence: EvidenceShown
    acceptance: Acceptance | None
    block: int
    at_once: int
    current: dict[str, SkillNode | None] = field(default_factory=dict)
    num_tests: int = 0

    def __post_init__(self) -> None:
        self.current = dict.fromkeys(self.tasks)

    def advance(self, number: int) -> Depth:
        """Drafts, executes and decides depth `number`; those before are done."""
        nodes = self._nodes(number)
        best = {
            task: self._best(nodes[i :: len(self.tasks)])
            for i, task in enumerate(self.tasks)
        }
        tests = self._tests(number, best)
        rejected = {
            test.challenge.task
            for test in tests
            if test.verdict != SequentialVerdict.ACCEPTED
        }
        for task, node in best.items():
            if node is not None and task not in rejected:
                self.current[task] = node
        alone = self._alone(number)
        trials = [t for node in nodes for t in self._trials(node)]
        paid = [self.runs[trial] for trial in dict.fromkeys(trials)]
        paid += [run for runs in alone.values() for run in runs]
        paid += [run for test in tests for run in test.runs]
        verdicts = [test.verdict for test in tests if test.cap is not None]
        return Depth(
            skills={t: None if n is None else n.skill for t, n in self.current.items()},
            success={task: self._success(task, alone) for task in self.tasks},
            executor_calls=sum(run.executor_calls for run in paid),
            executor_tokens=sum(run.tokens for run in paid),
            draft_tokens=sum(node.tokens for node in nodes),
            parsed=float(np.mean([node.skill is not None for node in nodes])),
            tests=len(verdicts),
            accepted=verdicts.count(SequentialVerdict.ACCEPTED),
        )

    def _nodes(self, number: int) -> list[SkillNode]:
        """The drafts of a depth; row `b` is for task `b % N`."""
        kept = [node for node in self.tree.tree.nodes if node.phase == number]
        if kept:
            return kept
        drafts = drafted(
            *(self.workplace, self.policy, self.params),
            jax.random.fold_in(self.key, number),
            [self._state(task) for task in self.tasks],
            num_drafts=self.num_drafts,
            block=self.block,
        )
        trials = drafts.trials(self._samples(number))
        flat = [trial for row in trials.values() for trial in row]
        found = iter(executed(self.workplace, self.runs, flat, at_once=self.at_once))
        first = len(self.tree.tree)
        nodes = [
            draft_node(
                *(drafts, row, [next(found) for _ in trials.get(row, ())]),
                id=first + row,
                phase=number,
            )
            for row in range(len(drafts.read))
        ]
        self.tree.extend(nodes)
        return nodes

    def _state(self, task: str) -> Any:
        """What a task's next draft is written from."""
        node = self.current[task]
        if node is None:
            return state_of(Source(task), self.tree.tree, self.runs, self.evidence)
        pair = evidence_pair(np.array([node.outcomes], np.int32))
        source = source_of(
            *(task, node.id, self._samples(node.phase)),
            *(int(kind[0]) for kind in pair),
        )
        return state_of(source, self.tree.tree, self.runs, self.evidence)

    def _tests(
        self, number: int, best: dict[str, SkillNode | None]
    ) -> list[PairedTest]:
        """Of the revisions that have a parent, and say something else."""
        if self.acceptance is None:
            return []
        challenges = []
        for task, node in best.items():
            parent = self.current[task]
            if node is None or parent is None or node.skill == parent.skill:
                continue
            assert node.skill is not None and parent.skill is not None
            challenges.append(Challenge(task, node.skill, parent.skill))
        found = decide(
            *(self.workplace, self.runs, challenges, self.acceptance),
            first_number=self.num_tests + 1,
            first_sample=self._samples(number).stop,
            at_once=self.at_once,
        )
        self.num_tests += len(found)
        return found

    def _alone(self, number: int) -> dict[str, list[SkillRun]]:
        """Runs of the executor alone, of tasks that have no skill yet."""
        samples = self._samples(number)
        without = [task for task in self.tasks if self.current[task] is None]
        trials = [Trial(task, None, sample) for task in without for sample in samples]
        found = iter(executed(self.workplace, self.runs, trials, at_once=self.at_once))
        return {task: [next(found) for _ in samples] for task in without}

    def _success(self, task: str, alone: dict[str, list[SkillRun]]) -> float:
        node = self.current[task]
        if node is not None:
            return np.nan if node.success is None else node.success
        outcomes = [run.outcome for run in alone[task]]
        answered = [o for o in outcomes if o != Outcome.INFRASTRUCTURE]
        return answered.count(Outcome.SUCCESS) / len(answered) if answered else np.nan

    def _samples(self, number: int) -> range:
        """Of a depth's runs; those of its tests come behind them."""
        tests = 0 if self.acceptance is None else self.acceptance.max_pairs
        first = number * (self.num_runs + tests)
        return range(first, first + self.num_runs)

    def _trials(self, node: SkillNode) -> list[Trial]:
        if node.skill is None:
            return []
        return [Trial(node.task, node.skill, s) for s in self._samples(node.phase)]

    @staticmethod
    def _best(nodes: Sequence[SkillNode]) -> SkillNode | None:
        """Of a task's drafts the one that did best; the first of equals."""
        found = [node for node in nodes if node.skill is not None]
        return max(found, key=lambda n: n.success or 0.0, default=None)
