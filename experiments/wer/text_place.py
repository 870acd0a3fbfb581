"""Where skills in words are followed: tasks, and how they are told to who writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from experiments.wer.language_model_config import ReaderSizes
from experiments.wer.language_model_skills import PROGRAM_WORDS, DraftWords
from jerp.bridge.executor import Executor
from jerp.records import Task
from jerp.runs.skills.domain_workplace import DomainWorkplace, told_run
from jerp.runs.skills.draft_prompt import DraftPrompts
from jerp.typing import Outcome

__all__ = ["Secret", "Tasks", "TextPlace", "tasks_of_run"]

Secret = str | int | float
"""What no skill may hold."""


@dataclass(frozen=True)
class Tasks:
    """Tasks of a run, none of them twice.

    Attributes:
      train: that skills are written for.
      validation: that choose between merged skills.
      test: locked.
      cloning: that the optimizer reads of in what it is cloned from.
    """

    train: tuple[Task, ...]
    validation: tuple[Task, ...]
    test: tuple[Task, ...]
    cloning: tuple[Task, ...]


@dataclass(frozen=True, eq=False)
class TextPlace:
    """A domain, and what is said of its tasks.

    Attributes:
      domain: any that an executor plays, with `generate`.
      context: what a task is like, for who writes skills.
      secrets: of a task, what no skill may hold.
      reference: the outcome of a task's reference solution.
      told: a run in words.
      words: what drafts that know nothing are made of.
    """

    domain: Any
    context: Callable[[Task], str]
    secrets: Callable[[Task], Sequence[Secret]]
    reference: Callable[[Task], Outcome]
    told: Callable[[Any], str] = told_run
    words: DraftWords = PROGRAM_WORDS

    @property
    def name(self) -> str:
        """Of the domain."""
        return self.domain.name

    def workplace(
        self, executor: Executor, tasks: Sequence[Task], prompts: DraftPrompts
    ) -> DomainWorkplace:
        """Where skills for some tasks are drafted and executed."""
        return DomainWorkplace(
            *(self.domain, executor, tasks, prompts),
            context=self.context,
            secrets=self.secrets,
            told=self.told,
            reference=self.reference,
        )


def tasks_of_run(domain: Any, sizes: ReaderSizes, seed: int) -> Tasks:
    """The tasks of a seed: those to learn with first, the locked ones last.

    Raises:
      ConfigError: the domain has not so many.
    """
    numbers = (sizes.train_tasks, sizes.validation, sizes.demonstrations, sizes.test)
    found, parts = domain.generate(seed, sum(numbers)), []
    for number in numbers:
        parts.append(found[:number])
        found = found[number:]
    train, validation, cloning, test = parts
    return Tasks(train, validation, test, cloning)
