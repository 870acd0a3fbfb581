"""One iteration of a joint run, in the order of Algorithm 1.

What is compiled is in `iteration`; here is what the host does in between: it asks the
reflector, turns its words into edits, and extends the references after all else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from jerp.bridge.reflection import Reflector
from jerp.envs.rule_language import RuleLanguage
from jerp.rules.book import RuleBook
from jerp.rules.edits import EditCounts, EditOp
from jerp.rules.pool import RulePool
from jerp.runs.jerp.answers import checked_answers
from jerp.runs.jerp.iteration import (
    Given,
    Plan,
    play_and_learn,
    revise,
    rule_table,
    shown_rules_of,
    working_sets,
)
from jerp.runs.jerp.occasions import Group, groups_of, occasion_of, shown_rules
from jerp.runs.jerp.record import Memory
from jerp.runs.jerp.retirement import Retirement
from jerp.runs.jerp.revision import (
    Proposal,
    edit_arrays,
    edit_metrics,
    ledger_rows,
    proposed,
)
from jerp.runs.jerp.settings import Learns, RuleSettings, Tasks
from jerp.runs.policy.groups import Play
from jerp.runs.policy.soundness import check_sound
from jerp.storage.rule_history import LedgerRow, RuleEdit, RuleScores
from jerp.training.joint import JointState
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import Array

__all__ = ["Iteration", "Learner", "Retrieve"]

Retrieve = Callable[[RulePool, RuleBook], Array]
"""Working sets `[N, R]` of all tasks, chosen otherwise than by score."""


class Iteration(NamedTuple):
    """What came of an iteration.

    Attributes:
      state: after it.
      metrics: by name.
      rows: for the ledger.
    """

    state: JointState
    metrics: dict[str, float]
    rows: list[LedgerRow]


@dataclass(frozen=True, eq=False)
class Learner:
    """What all iterations of a run share.

    Attributes:
      plan, given: see `iteration`.
      tasks: see `Tasks`.
      settings: see `RuleSettings`.
      learns: see `Learns`.
      reflector: None only where no rules are learned.
      play: plays episodes from the host, or None.
      retrieve: chooses working sets; None takes the best by score.
      retirement: takes rules out before a checkpoint; None for never.
      folder: for the episodes of a loss that is no number.
    """

    plan: Plan
    given: Given
    tasks: Tasks
    settings: RuleSettings
    learns: Learns
    reflector: Reflector | None
    play: Play | None
    retrieve: Retrieve | None
    retirement: Retirement | None
    folder: Path

    @property
    def language_read(self) -> RuleLanguage | None:
        """The one that rules have to be in: of a policy that reads them in fields."""
        fields = getattr(self.plan.task.policy, "rule_sizes", ())
        return self.tasks.language if fields and self.plan.rules.num_rules else None

    def iterate(self, state: JointState, memory: Memory, number: int) -> Iteration:
        """Plays, learns and revises; `state` is consumed, `memory` extended."""
        shown = self._working_sets(state.pool, memory.book, number)
        play, given = self._reading(memory.book)
        state, metrics, data = play_and_learn(
            play, self.plan, given, state, shown, number
        )
        metrics, data = jax.device_get((metrics, data))
        found = {name: float(x) for name, x in metrics.items()}
        if self.learns.policy:
            check_sound(self.folder, number, found, data)
        proposal, counts, rows = _NOTHING
        if self.learns.rules_at(number):
            groups = self._groups(data, number)
            proposal = self._reflected(groups, state.pool, memory)
            pool, counts, rows = self._revised(
                proposal, state.pool, memory, data, number
            )
            state = state.replace(pool=pool)
            for group in groups:
                memory.references.extend(self._key_of(group), group.trials)
        found |= edit_metrics(proposal, counts)
        found |= self._counted(data, state.pool, memory)
        return Iteration(state, found, rows)

    def _working_sets(
        self, pool: RulePool, book: RuleBook, number: int
    ) -> Array | None:
        """Fixed before the episodes, for all tasks."""
        rules, given = self.plan.rules, self.given
        if self.retrieve is None or not rules.num_rules:
            found = working_sets(self.plan, pool, given.task_key)
        else:
            found = self.retrieve(pool, book)
        if found is None or not rules.rule_dropout:
            return found
        return shown_rules_of(self.plan, given.key, np.int32(number), found)

    def _reading(self, book: RuleBook) -> tuple[Play | None, Given]:
        """How the policy reads the rules of its working set: as text, or in fields."""
        language, given = self.language_read, self.given
        if sizes := getattr(self.plan.task.policy, "rule_sizes", ()):
            told = np.zeros((1, len(sizes)), np.int32)
            told = told if language is None else rule_table(language, book)
            frozen = {**(given.frozen or {}), "rules": told}
            return self.play, given._replace(frozen=frozen)
        if self.play is None or not self.plan.rules.num_rules:
            return self.play, given
        return partial(self.play, rule_texts=book.texts), self.given

    def _groups(self, data: Trajectory, number: int) -> list[Group]:
        """Those that somebody answered."""
        task = self.plan.task
        groups = groups_of(
            *(task.env, self.tasks, data),
            num_groups=task.config.num_groups,
            iteration=number,
        )
        return [group for group in groups if group.trials]

    def _key_of(self, group: Group) -> str:
        return self.tasks.names[int(self.tasks.key[group.task])]

    def _reflected(
        self, groups: list[Group], pool: RulePool, memory: Memory
    ) -> Proposal:
        """On the pool as it was, with successes of earlier groups."""
        assert self.reflector is not None
        occasion = partial(
            occasion_of,
            tasks=self.tasks,
            pool=jax.device_get(pool),
            book=memory.book,
            references=memory.references if self.learns.references else None,
            capacity=self.plan.rules.capacity,
        )
        occasions = [occasion(group) for group in groups]
        answers = self.reflector.reflect(occasions) if occasions else []
        reflections = checked_answers(
            answers, len(occasions), reflector=self.reflector.name
        )
        return proposed(
            *(groups, occasions, reflections, memory.book, self.plan.rules),
            language=self.language_read,
            retired={} if self.settings.retired_may_return else memory.retired,
        )

    def _revised(
        self,
        proposal: Proposal,
        pool: RulePool,
        memory: Memory,
        data: Trajectory,
        number: int,
    ) -> tuple[RulePool, EditCounts, list[LedgerRow]]:
        rules, book = self.plan.rules, memory.book
        groups = self.plan.task.config.num_groups
        edits = edit_arrays(proposal.edits, book, rules, num_groups=groups)
        revised = revise(
            *(self.plan, pool, self.given.task_key, data, edits, np.int32(number))
        )
        pool, counts, pruned = jax.device_get(revised)
        assert self.reflector is not None
        said = {"step": number, "reflector": self.reflector.name, "order": rules.order}
        rows: list[LedgerRow] = [*ledger_rows(proposal, counts, book, **said)]
        names = self.tasks.names
        rows += [
            RuleEdit(number, names[key], "PRUNE", int(rule), book[int(rule)])
            for key, row in enumerate(pruned)
            for rule in row[row >= 0]
        ]
        last = number + 1 == self.learns.rules_until
        if last or (number + 1) % self.settings.scores_every == 0:
            rows += self._scores(pool, book, number)
        return revised.pool, counts, rows

    def _scores(self, pool: RulePool, book: RuleBook, number: int) -> list[RuleScores]:
        shown = [shown_rules(pool, book, key) for key in range(len(self.tasks.names))]
        return [
            RuleScores(number, name, {rule.rule_id: rule.score for rule in rules})
            for name, rules in zip(self.tasks.names, shown, strict=True)
            if rules
        ]

    def _counted(
        self, data: Trajectory, pool: RulePool, memory: Memory
    ) -> dict[str, float]:
        groups = self.plan.task.config.num_groups
        answered = np.asarray(valid_episodes(data)).reshape(-1, groups).any(axis=0)
        return {
            "rules": float(np.sum(np.asarray(pool.active))),
            "references": float(len(memory.references)),
            "lost_groups": float(np.sum(~answered)),
        }


_NO_COUNTS: Any = (
    *(np.zeros((1, len(EditOp)), np.int32),) * 2,
    *(np.zeros((1, 1), bool),) * 2,
)
_NOTHING: tuple[Proposal, EditCounts, list[LedgerRow]] = (
    Proposal((), {}, {}),
    EditCounts(*_NO_COUNTS),
    [],
)
"""Of an iteration that revises nothing."""
