"""What a run of a language model's skills would ask of who follows them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

from experiments.executors.spending import Asks, prompt_tokens, user_asks
from experiments.wer.benchmark_place import open_benchmark
from experiments.wer.language_model_cloning import RUNS
from experiments.wer.language_model_config import ReaderSizes
from experiments.wer.language_model_evaluation import WAYS
from experiments.wer.setting import TextSetting
from jerp.domains.controlled.coding import CodingDomain
from jerp.domains.tool_use import ToolUseDomain
from jerp.harness.actions import Action
from jerp.runs.skills.domain_workplace import DRAFT_ONCE

__all__ = ["skill_plan"]

SHOWN = 10
"""Tasks whose first prompts are measured."""


def skill_plan(setting: TextSetting, sizes: ReaderSizes, seed: int) -> Iterator[Asks]:
    """The parts that execute skills, in the order of the run.

    Drafts that do not parse are not executed, so that fewer runs may be played.

    Args:
      setting: which tasks.
      sizes: of the run.
      seed: of the order of tasks.
    """
    revised = sizes.demonstrations - -(-sizes.demonstrations // 3)
    drafts = sizes.states * sizes.num_drafts * sizes.num_runs
    writing = sizes.train_tasks * (sizes.rounds + 1) * sizes.num_runs
    # By vote in each length, and by a model.
    merged = len(sizes.lengths) + 1
    episodes = {
        "what the optimizer is cloned from": revised * RUNS,
        "first drafts": sizes.train_tasks * sizes.num_drafts * sizes.num_runs,
        "training": sizes.total * drafts,
        "writing in three ways": len(WAYS) * writing,
        "validation": len(WAYS) * merged * sizes.validation * sizes.validation_runs,
        "test": (len(WAYS) + 1) * sizes.test * sizes.test_runs,
    }
    domain: Any = open_benchmark(setting)[1] if setting.env else CodingDomain(None)  # pyright: ignore
    with closing(domain):
        calls, read, written = _an_episode(domain, sizes, seed)
    for part, number in episodes.items():
        yield Asks(
            *(part, number, number * calls, number * read, number * calls * written)
        )
    if setting.env.startswith("tau2") and setting.user == "executor":
        total = sum(episodes.values())
        yield user_asks("the user, in all parts", total, total * calls)


def _an_episode(domain: Any, sizes: ReaderSizes, seed: int) -> tuple[int, int, int]:
    """Calls, tokens read, and tokens written in a call."""
    requests = []
    for task in domain.generate(seed, SHOWN):
        workspace = domain.begin(task, 0)
        if domain.legal(workspace)[DRAFT_ONCE[0]]:
            workspace = domain.advance(workspace, DRAFT_ONCE[0], None)
        requests.append(domain.request(workspace, Action.DRAFT))
    written = requests[0].sampling.max_tokens
    prompt = prompt_tokens(requests) + sizes.skill_tokens
    if not isinstance(domain, ToolUseDomain):
        return 1, prompt, written
    calls = domain.max_steps // 2
    return calls, calls * (prompt + (calls - 1) * written // 2), written
