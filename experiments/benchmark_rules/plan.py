"""What a run of rules in a benchmark would ask of its executor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

from experiments.benchmark_rules.place import Place
from experiments.benchmark_rules.sizes import BenchmarkSizes
from experiments.executors.spending import CHARACTERS, Asks

__all__ = ["rules_plan"]

SHOWN = 5
"""Tasks whose openings are measured."""

ASKED = 600
"""Characters of a prompt beside the task, what was seen, and rules."""

RULE = 120
"""Characters of a rule."""


def rules_plan(place: Place, sizes: BenchmarkSizes) -> Iterator[Asks]:
    """The parts of the run, in order.

    A step reads half of the steps that an episode may have, each as long as an opening.
    """
    some = place.train[:SHOWN]
    seen = sum(_opening(place, i) for i in range(len(some))) // len(some)
    history = min(sizes.history, sizes.num_steps) // 2
    prompt = (seen * (1 + history) + ASKED + RULE * sizes.num_rules) // CHARACTERS
    held_out = len(place.held_out) * sizes.samples
    learning = sizes.iterations * sizes.num_groups * sizes.group_size
    reflections = sizes.iterations * sizes.num_groups
    for part, episodes, tokens in (
        ("held out: plain", held_out, min(32, sizes.answer_tokens)),
        ("held out: react", held_out, sizes.answer_tokens),
        ("learning", learning, sizes.answer_tokens),
        ("held out: rules", held_out, sizes.answer_tokens),
    ):
        calls = episodes * sizes.num_steps
        yield Asks(part, episodes, calls, calls * prompt, calls * tokens)
    read = reflections * sizes.reflection_chars // CHARACTERS
    written = reflections * sizes.reflection_tokens
    yield Asks("reflection", 0, reflections, read, written)


def _opening(place: Place, number: int) -> int:
    with closing(place.benchmark.start(place.train[number])) as session:
        return len(session.opening)
