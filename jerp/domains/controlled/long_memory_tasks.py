"""Tasks of the long-memory domain: past conversations, and a question about one fact.

A task has its own memory of 24 sessions of two remarks each, numbered in the order in
which they took place. At difficulty 0 the fact was told once; at difficulty 1 the same
thing was told of a person of nearly the same name; at difficulty 2 a later session
corrects it, about every other time in other words, so that a search for the question
ranks the outdated session before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

from jerp.domains.controlled.research_corpus import Passage, Ranking, words
from jerp.domains.controlled.research_things import Kind
from jerp.domains.controlled.research_world import FIRST_NAMES, LAST_NAMES
from jerp.errors import ConfigError
from jerp.records import Task

__all__ = ["NUM_SESSIONS", "THINGS", "Thing", "generate"]

NUM_SESSIONS = 24
NUM_DIFFICULTIES = 3
TRIES = 100
"""Memories drawn for one task until one is fair; three in four are."""

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TEAS = ("mint", "ginger", "jasmine", "rooibos", "chamomile", "nettle", "fennel", "sage")
COLOURS = ("red", "green", "silver", "white", "blue", "yellow", "brown", "purple")
CATS = ("Pixel", "Bramble", "Cricket", "Waffle", "Domino", "Marble", "Tango", "Biscuit")


class Thing(NamedTuple):
    """Something told of a person `{p}`; `{v}` is its value.

    Attributes:
      kind: of the value, as the rubric knows them.
      values: what it may be; empty for a number.
      question, told, corrected: sentences. A correction shares a word with the question
        but not all of them.
    """

    kind: Kind
    values: tuple[str, ...]
    question: str
    told: str
    corrected: str


THINGS = (
    Thing(
        "number",
        (),
        "What is {p}'s locker code?",
        "{p}'s locker code is {v}.",
        "{p} got another locker, it opens with {v}.",
    ),
    Thing(
        "number",
        (),
        "Which bus line does {p} take to work?",
        "{p} takes bus line {v} to work.",
        "{p} moved house and rides the {v} bus these days.",
    ),
    Thing(
        "number",
        (),
        "What is the number of {p}'s flat?",
        "The number of {p}'s flat is {v}.",
        "{p} swapped the flat for {v}, one floor up.",
    ),
    Thing(
        "number",
        (),
        "Which seat does {p} have at the opera?",
        "{p} has seat {v} at the opera.",
        "{p} traded the opera ticket and sits in {v}.",
    ),
    Thing(
        "word",
        DAYS,
        "On which day does {p} see the dentist?",
        "{p} will see the dentist on {v}.",
        "The dentist rang {p} back, it will be {v}.",
    ),
    Thing(
        "word",
        DAYS,
        "On which day is {p}'s piano lesson?",
        "{p}'s piano lesson is on {v}.",
        "{p}'s piano teacher has fallen ill and comes {v} instead.",
    ),
    Thing(
        "word",
        TEAS,
        "What is {p}'s favourite tea?",
        "{p}'s favourite tea is {v}.",
        "{p} has gone off that tea and drinks {v}.",
    ),
    Thing(
        "word",
        COLOURS,
        "What colour is {p}'s car?",
        "The colour of {p}'s car is {v}.",
        "{p} sold the car and drives a {v} one.",
    ),
    Thing(
        "name",
        CATS,
        "What is {p}'s cat called?",
        "{p}'s cat is called {v}.",
        "{p} gave the cat another name, it listens to {v}.",
    ),
    Thing(
        "name",
        LAST_NAMES,
        "Who is {p}'s doctor?",
        "{p}'s doctor is {v}.",
        "{p} was not happy there and sees a new doctor, {v}.",
    ),
)


class Remark(NamedTuple):
    """One sentence of a session, and the value that it states."""

    text: str
    kind: Kind
    value: str


class Memory(NamedTuple):
    """Sessions in the order in which they took place, and the question over them.

    Attributes:
      sessions: two remarks each.
      person, thing: what is asked about.
      answer: the value that holds by the last session.
      outdated: the value it had before, or None.
      source: number of the session that tells the answer, from 1.
    """

    sessions: tuple[tuple[Remark, ...], ...]
    person: str
    thing: Thing
    answer: str
    outdated: str | None
    source: int


def generate(seed: int, num_tasks: int, *, ladder: int) -> tuple[Task, ...]:
    """Tasks in turns of difficulty 0, 1, 2; fewer tasks are a prefix of more."""
    if num_tasks < 1:
        raise ConfigError(f"num_tasks: expected >= 1, got {num_tasks}")
    return tuple(_task(seed, number, ladder) for number in range(num_tasks))


def _task(seed: int, number: int, ladder: int) -> Task:
    difficulty = number % NUM_DIFFICULTIES
    for turn in range(TRIES):
        rng = Random(f"long-memory/{seed}/{number}/{turn}")
        memory = _memory(rng, difficulty)
        payload = _payload(memory, ladder, difficulty)
        if payload is not None:
            return Task(
                key=f"long-memory/{seed}/{number:04d}",
                domain="long-memory",
                difficulty=difficulty,
                prompt=memory.thing.question.format(p=memory.person),
                payload=payload,
            )
    raise AssertionError(f"no fair memory for task {number} of seed {seed}")


def _memory(rng: Random, difficulty: int) -> Memory:
    last, other_last = rng.sample(LAST_NAMES, 2)
    first, other_first, *friends = rng.sample(FIRST_NAMES, 8)
    person = f"{first} {last}"
    sibling = rng.choice((f"{first} {other_last}", f"{other_first} {last}"))
    asked, *others = rng.sample(THINGS, len(THINGS))
    answer, outdated, *rest = _values(rng, asked, 4)
    told = [_remark(asked.told, person, asked, answer)]
    if difficulty == 1:
        told.append(_remark(asked.told, sibling, asked, outdated))
        rng.shuffle(told)
    elif difficulty == 2:
        # The correction is told after what it corrects.
        correction = rng.choice(("Correction: " + asked.told, asked.corrected))
        told = [
            _remark(asked.told, person, asked, outdated),
            _remark(correction, person, asked, answer),
        ]
    noise = [_remark(t.told, person, t, _values(rng, t, 1)[0]) for t in others[:5]]
    noise += [
        _remark(asked.told, f"{friend} {rng.choice(LAST_NAMES)}", asked, value)
        for friend, value in zip(friends, rest, strict=False)
    ]
    noise += _small_talk(rng, friends, others, 2 * NUM_SESSIONS - len(told + noise))
    sessions, places = _sessions(rng, told, noise)
    stated = [remark.value == answer for remark in told].index(True)
    return Memory(
        sessions=sessions,
        person=person,
        thing=asked,
        answer=answer,
        outdated=outdated if difficulty == 2 else None,
        source=places[stated] + 1,
    )


def _sessions(
    rng: Random, told: list[Remark], noise: list[Remark]
) -> tuple[tuple[tuple[Remark, ...], ...], list[int]]:
    """Sessions of two remarks, those `told` in order, and where each of them went."""
    rng.shuffle(noise)
    places = sorted(rng.sample(range(NUM_SESSIONS), len(told)))
    remarks = iter(noise)
    sessions = []
    for number in range(NUM_SESSIONS):
        pair = [next(remarks)]
        pair.append(told[places.index(number)] if number in places else next(remarks))
        sessions.append(tuple(rng.sample(pair, 2)))
    return tuple(sessions), places


def _small_talk(
    rng: Random, friends: list[str], things: list[Thing], count: int
) -> Iterator[Remark]:
    """Remarks on other things of other people."""
    for _ in range(count):
        person = f"{rng.choice(friends)} {rng.choice(LAST_NAMES)}"
        thing = rng.choice(things)
        sentence = rng.choice((thing.told, thing.corrected))
        yield _remark(sentence, person, thing, _values(rng, thing, 1)[0])


def _remark(sentence: str, person: str, thing: Thing, value: str) -> Remark:
    return Remark(sentence.format(p=person, v=value), thing.kind, value)


def _values(rng: Random, thing: Thing, count: int) -> list[str]:
    if thing.values:
        return rng.sample(thing.values, count)
    return [str(number) for number in rng.sample(range(112, 980), count)]


def _payload(memory: Memory, ladder: int, difficulty: int) -> dict[str, Any] | None:
    """What a task needs, or None where the search is not fair to the question.

    Fair: the session that first tells of the thing comes into hand, at difficulty 0 as
    the first; at difficulty 1 so does the one about the other person; and no other
    session that can come into hand has a word of the answer.
    """
    question = memory.thing.question.format(p=memory.person)
    texts = [tuple(r.text for r in session) for session in memory.sessions]
    ranking = Ranking([Passage(text, ()) for text in texts])
    rungs = [index + 1 for index in ranking.top(question, ladder)]
    reach = {*rungs, memory.source}
    stated = [remark for n in reach for remark in memory.sessions[n - 1]]
    values = {r.value for r in stated if r.kind == memory.thing.kind}
    rivals = sorted(values - {memory.answer})
    others = " ".join(s for n in reach - {memory.source} for s in texts[n - 1])
    if not set(words(memory.answer)).isdisjoint(words(others)):
        return None
    fair = {
        0: rungs[0] == memory.source,
        1: memory.source in rungs and bool(rivals),
        2: memory.outdated in rivals,
    }
    if not fair[difficulty]:
        return None
    return {
        "kind": memory.thing.kind,
        "opening": memory.thing.told.split("{v}")[0].format(p=memory.person).strip(),
        "passages": [list(text) for text in texts],
        "ladder": rungs,
        "hidden": {"answer": memory.answer, "rivals": rivals, "source": memory.source},
    }
