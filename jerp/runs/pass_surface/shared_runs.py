"""Runs of one agent that stand under several training seeds of another.

A frozen agent is sampled once and held against every seed of a trained one. Its luck at
a task is then the luck of all rows of the task: a task that it missed is gained by any
seed that solves it. A vote of the rows would count that as so many trainings' doing.
"""

from __future__ import annotations

import numpy as np

from jerp.runs.pass_surface.agents import Agent
from jerp.runs.pass_surface.inputs import Inputs

__all__ = ["rows_to_test"]


def rows_to_test(
    inputs: Inputs, pair: tuple[int, int], kept: np.ndarray
) -> tuple[np.ndarray, bool]:
    """The rows of which gains and losses may be counted.

    Where either agent has the same runs in all rows of every task, one row of each task
    is dealt out, the seeds in turn: its two agents are as independent as those of two
    tasks. Which row does not depend on what came of any.

    Args:
      inputs: tasks, seeds and runs.
      pair: numbers of the two agents.
      kept: `[N]` bool, the rows that count.

    Returns:
      `[N]` bool, and whether runs are shared.
    """
    if inputs.cluster is None:
        return kept, False
    tasks = [
        np.flatnonzero(kept & (inputs.cluster == task))
        for task in np.unique(inputs.cluster[kept])
    ]
    if all(len(rows) == 1 for rows in tasks):
        return kept, False
    if not any(_shares(inputs.agents[number], tasks) for number in pair):
        return kept, False
    dealt = np.zeros_like(kept)
    dealt[[rows[turn % len(rows)] for turn, rows in enumerate(tasks)]] = True
    return dealt, True


def _shares(agent: Agent, tasks: list[np.ndarray]) -> bool:
    """Whether all rows of every task have the same runs."""
    runs = agent.runs
    return all(
        (values[..., rows, :] == values[..., rows[:1], :]).all()
        for values in (runs.mask, runs.outcome, np.nan_to_num(runs.spent))
        for rows in tasks
    )
