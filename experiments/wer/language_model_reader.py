"""Who writes skills, who follows them, and on which tasks: one language model, twice.

The model as it is follows skills, in its system prompt, when it writes small programs;
with adapters beside its matrices it writes them. An episode is a single draft of code:
the least that can be judged. The public tests are run on it for the sake of the
evidence, and no revision follows, which would mend by the test what the skill left
wrong, at twice the price. All that the model answers is kept in a store.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.wer.language_model_config import ReaderSizes, reader_policy
from jerp.bridge.batching import BatchShape
from jerp.bridge.executor import Executor
from jerp.bridge.local import LocalExecutor
from jerp.bridge.sandbox import Sandbox
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.domains.controlled.coding import CodingDomain
from jerp.models.draft_policy import DraftPolicy
from jerp.records import Task
from jerp.runs.skills.domain_workplace import DomainWorkplace
from jerp.runs.skills.draft_prompt import DraftPrompts
from jerp.storage.weights import Weights
from jerp.typing import Outcome

__all__ = ["AT_ONCE", "Reader", "Tasks", "open_reader", "reference_code", "secrets_of"]

SHAPE = BatchShape(rows=8, capacity=512)
"""Of the executor; its fingerprint has it."""

AT_ONCE = 8
"""Runs that are written down together."""


@dataclass(frozen=True)
class Tasks:
    """Programs to be written, none of them twice.

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
class Reader:
    """All that does not change in a run.

    Attributes:
      weights: of the model.
      sizes: numbers of everything.
      seed: root of all random numbers.
      policy: the optimizer.
      prompts: its prompts and answers.
      executor: the model without adapters, behind the store.
      domain: whose tasks these are.
      tasks: of it.
    """

    weights: Weights
    sizes: ReaderSizes
    seed: int
    policy: DraftPolicy
    prompts: DraftPrompts
    executor: Executor
    domain: CodingDomain
    tasks: Tasks

    @property
    def decoder(self) -> Any:
        """The model's own matrices."""
        return self.weights.params["params"]  # pyright: ignore

    def workplace(self, tasks: Sequence[Task]) -> DomainWorkplace:
        """Where skills for some tasks are drafted and executed."""
        return DomainWorkplace(
            *(self.domain, self.executor, tasks, self.prompts),
            context=_context,
            secrets=secrets_of,
            told=told_program,
            reference=_judged_reference,
        )


@contextmanager
def open_reader(
    weights: Weights, sizes: ReaderSizes, folder: Path, seed: int
) -> Iterator[Reader]:
    """Opens model, store and sandbox of a run's folder.

    Raises:
      ConfigError: a model that cannot be asked, or whose context is too short.
    """
    prompts = DraftPrompts(
        weights,
        num_prompt_tokens=sizes.prompt_tokens,
        max_chars=sizes.evidence_chars,
        max_skill_tokens=sizes.skill_tokens,
    )
    store = ResponseStore(folder / "store")
    try:
        with Sandbox(store=store) as sandbox:
            domain = CodingDomain(sandbox)
            yield Reader(
                *(weights, sizes, seed),
                reader_policy(sizes, weights.config, prompts.stop_tokens),
                prompts,
                StoredExecutor(LocalExecutor(weights, shape=SHAPE), store),
                domain,
                tasks_of_run(domain, sizes, seed),
            )
    finally:
        store.close()


def tasks_of_run(domain: CodingDomain, sizes: ReaderSizes, seed: int) -> Tasks:
    """The tasks of a seed: those to learn with first, the locked ones last."""
    numbers = (sizes.train_tasks, sizes.validation, sizes.demonstrations, sizes.test)
    found, parts = domain.generate(seed, sum(numbers)), []
    for number in numbers:
        parts.append(found[:number])
        found = found[number:]
    train, validation, cloning, test = parts
    return Tasks(train, validation, test, cloning)


def reference_code(task: Task) -> str:
    """A program that passes all tests of a task, for it has looked them up."""
    name, rows = task.payload["name"], task.payload["hidden"]
    arguments = task.prompt.partition("(")[2].rpartition(")")[0]
    table = ", ".join(f"{call!r}: {expected}" for call, expected in rows)
    called = f"'{name}(' + ', '.join(map(repr, [{arguments}])) + ')'"
    return f"{task.prompt}\n    return {{{table}}}[{called}]"


def told_program(content: Any) -> str:
    """A run in words: the program and what its public tests said."""
    shown = [step for step in content if step["action"] in ("draft", "call-tool")]
    lines = (step["observation"] or step.get("error", "") for step in shown)
    return "\n".join(lines)


def _context(task: Task) -> str:
    return (
        "To complete a Python function by one expression, such as:\n"
        f"# {task.payload['statement']}\n{task.prompt}"
    )


def secrets_of(task: Task) -> list[str | int | float]:
    """What a skill for others may not name: the function, and numbers and letters."""
    values = task.payload["parameters"].values()
    told = [v for v in values if any(c.isalnum() for c in str(v))]
    return [task.payload["name"], *told]


def _judged_reference(task: Task) -> Outcome:
    """Judged anew each time: no stored verdict tells whether the tests are steady."""
    with Sandbox() as sandbox:
        domain = CodingDomain(sandbox)
        workspace = domain.begin(task, 0)
        verdict = domain.verify(task, reference_code(task), workspace)
    return Outcome.SUCCESS if verdict.success else Outcome.FAILURE
