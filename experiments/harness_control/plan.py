"""What a run of controllers would ask of its executor, part by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from experiments.executors.spending import Asks, prompt_tokens, user_asks
from experiments.harness_control.config import HarnessConfig
from experiments.harness_control.domains import TAU2
from jerp.domains.base import ControlledDomain
from jerp.domains.tool_use import ToolUseDomain
from jerp.harness.actions import Action
from jerp.records import Task
from jerp.runs.harness.arms import LEARNED_ARMS
from jerp.runs.harness.collection import split_tasks

__all__ = ["domain_plan"]

SHOWN = 10
"""Tasks whose first prompts are measured."""

ONCE = ("base", "forced-check", "conditional")
"""Arms that nothing is drawn for: they play once, not once a seed."""

EACH_SEED = ("random", "perturbed", *LEARNED_ARMS)


def domain_plan(
    config: HarnessConfig, domain: ControlledDomain, tasks: Sequence[Task]
) -> Iterator[Asks]:
    """The parts that collect episodes, in the order of the run.

    Args:
      config: of the run.
      domain: that is played.
      tasks: all of it.
    """
    sizes = config.sizes
    train, test = split_tasks(tasks, num_tasks=sizes.num_tasks, held_out=sizes.held_out)
    samples = sizes.eval_samples or sizes.samples
    arms = len(ONCE) + config.seeds * len(EACH_SEED)
    episodes = {
        "buffer": len(train) * sizes.rollouts,
        "base on training tasks": len(train) * samples,
        f"{arms} arms": len(test) * samples * arms,
    }
    some = [tasks[i] for i in np.linspace(0, len(tasks) - 1, SHOWN).astype(int)]
    requests = [_first(domain, task) for task in some]
    written = requests[0].sampling.max_tokens
    calls, read = _an_episode(domain, prompt_tokens(requests), written)
    for part, number in episodes.items():
        yield Asks(
            f"{domain.name}: {part}",
            *(number, number * calls, number * read, number * calls * written),
        )
    if domain.name in TAU2 and config.user == "executor":
        total = sum(episodes.values())
        yield user_asks(f"{domain.name}: the user", total, total * calls)


def _first(domain: ControlledDomain, task: Task) -> Any:
    """The first draft's request, after what the base sequence does before it."""
    workspace = domain.begin(task, 0)
    if domain.legal(workspace)[Action.OBSERVE]:
        workspace = domain.advance(workspace, Action.OBSERVE, None)
    return domain.request(workspace, Action.DRAFT)


def _an_episode(domain: ControlledDomain, prompt: int, written: int) -> tuple[int, int]:
    """Calls and tokens read of an episode: a draft and its revisions, or a talk.

    In a talk every second step may be a call, and reads what was written before.
    """
    if not isinstance(domain, ToolUseDomain):
        calls = 1 + domain.max_revisions
        return calls, calls * prompt
    calls = domain.max_steps // 2
    return calls, calls * (prompt + (calls - 1) * written // 2)
