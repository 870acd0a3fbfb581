"""Rules that leave the pool though their scores are good: the policy has them.

Whoever starts a run says which, from what was measured (`jerp.rules.absorption`), now
and then; here is what follows for the pool, its ledger, and what may be added later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jerp.rules.book import RuleBook
from jerp.rules.pruning import retire
from jerp.runs.jerp.record import Memory
from jerp.storage.rule_history import RuleEdit
from jerp.training.joint import JointState

__all__ = ["Retire", "Retirement"]

Retire = Callable[[JointState, RuleBook, int], Any]
"""`(state, book, done)` to rule ids `[N, Q]` to retire, by task key; -1 for none."""


@dataclass(frozen=True)
class Retirement:
    """Which rules go, and when.

    Attributes:
      choose: see `Retire`; it depends on nothing else, so that a run that resumes
        retires the same, and keeps nothing of the state, which is consumed later.
      every: iterations between two times.
    """

    choose: Retire
    every: int

    def retired(
        self, state: JointState, memory: Memory, done: int
    ) -> tuple[JointState, list[RuleEdit]]:
        """The state after `done` iterations without them, and rows for the ledger.

        Args:
          state: policy and pool.
          memory: of the run; told which texts are retired.
          done: iterations.
        """
        if done % self.every:
            return state, []
        pool = retire(state.pool, self.choose(state, memory.book, done))
        gone, ids = jax.device_get(
            (state.pool.active & ~pool.active, state.pool.rule_id)
        )
        rows = [
            RuleEdit(done - 1, name, "RETIRE", int(rule), memory.book[int(rule)])
            for key, name in enumerate(memory.names)
            for rule in np.sort(ids[key][gone[key]])
        ]
        for row in rows:
            memory.retired.setdefault(row.task_key, set()).add(row.text)
        return state.replace(pool=pool), rows
