"""Who writes skills, who follows them, and on which tasks.

A language model with adapters beside its matrices writes skills. Who follows them, in
its system prompt, is the same model without adapters, or another one behind an
endpoint. All that it answers is kept in a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.executors.opened import open_live
from experiments.executors.usage_file import usage_written
from experiments.jobs.language_model_run import USAGE
from experiments.wer.benchmark_place import benchmark_place
from experiments.wer.coding_place import coding_place
from experiments.wer.language_model_config import ReaderSizes, reader_policy
from experiments.wer.setting import CODING, TextSetting
from experiments.wer.text_place import Tasks, TextPlace, tasks_of_run
from jerp.bridge.batching import BatchShape
from jerp.bridge.executor import Executor
from jerp.bridge.local import LocalExecutor
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.models.draft_policy import DraftPolicy
from jerp.records import Task
from jerp.runs.skills.domain_workplace import DomainWorkplace
from jerp.runs.skills.draft_prompt import DraftPrompts
from jerp.storage.weights import Weights

__all__ = ["AT_ONCE", "Reader", "open_reader"]

SHAPE = BatchShape(rows=8, capacity=512)
"""Of the executor in this process; its fingerprint has it."""

AT_ONCE = 8
"""Runs that are written down together."""


@dataclass(frozen=True, eq=False)
class Reader:
    """All that does not change in a run.

    Attributes:
      weights: of the model that writes.
      sizes: numbers of everything.
      seed: root of all random numbers.
      policy: the optimizer.
      prompts: its prompts and answers.
      executor: who follows skills, behind the store.
      place: whose tasks these are.
      tasks: of it.
    """

    weights: Weights
    sizes: ReaderSizes
    seed: int
    policy: DraftPolicy
    prompts: DraftPrompts
    executor: Executor
    place: TextPlace
    tasks: Tasks

    @property
    def decoder(self) -> Any:
        """The model's own matrices."""
        return self.weights.params["params"]  # pyright: ignore

    def workplace(self, tasks: Sequence[Task]) -> DomainWorkplace:
        """Where skills for some tasks are drafted and executed."""
        return self.place.workplace(self.executor, tasks, self.prompts)


@contextmanager
def open_reader(
    weights: Weights,
    sizes: ReaderSizes,
    folder: Path,
    seed: int,
    setting: TextSetting = CODING,
) -> Iterator[Reader]:
    """Opens models, store and place of a run's folder.

    Raises:
      ConfigError: a model that cannot be asked, or whose context is too short; more
        tasks than a benchmark has.
      ExecutorError: an endpoint that cannot be used.
    """
    prompts = DraftPrompts(
        weights,
        num_prompt_tokens=sizes.prompt_tokens,
        max_chars=sizes.evidence_chars,
        max_skill_tokens=sizes.skill_tokens,
    )
    with ExitStack() as stack:
        executor, store = stack.enter_context(
            _follower(weights, folder / "store", setting)
        )
        place = stack.enter_context(
            benchmark_place(setting, sizes, executor)
            if setting.env
            else coding_place(store)
        )
        yield Reader(
            *(weights, sizes, seed),
            reader_policy(sizes, weights.config, prompts.stop_tokens),
            *(prompts, executor, place),
            tasks_of_run(place.domain, sizes, seed),
        )


@contextmanager
def _follower(
    weights: Weights, folder: Path, setting: TextSetting
) -> Iterator[tuple[StoredExecutor, ResponseStore]]:
    if setting.executor:
        quiet = Console(stderr=True)
        with (
            open_live(setting.executor, setting.endpoint, folder, quiet) as opened,
            usage_written(folder.parent / USAGE, opened.spent),
        ):
            yield opened.executor, opened.store
        return
    store = ResponseStore(folder)
    try:
        yield StoredExecutor(LocalExecutor(weights, shape=SHAPE), store), store
    finally:
        store.close()
