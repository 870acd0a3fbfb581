"""Corpus and questions of the research domain, a function of a seed.

A world is a list of passages of two sentences about invented things, and questions that
one passage each answers. Difficulty 0 has one thing of a name; difficulty 1 a second
thing of nearly the same name with other values; difficulty 2 a second report on the
same thing with an outdated value. The passage with the answer says it in the question's
words or in other words, so that BM25 ranks it first or second.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from jerp.domains.controlled.research_things import NOUNS, Kind, Noun, Relation
from jerp.domains.controlled.research_world import (
    ENDINGS,
    FIRST_NAMES,
    LAST_NAMES,
    MODIFIERS,
    ONSETS,
    WORDS,
)

__all__ = [
    "NUM_DIFFICULTIES",
    "Passage",
    "Question",
    "Ranking",
    "World",
    "make_world",
    "terms",
    "words",
]

NUM_DIFFICULTIES = 3
OTHER_WORDS_SHARE = 0.6
"""How often the answering passage of difficulty 1 and 2 avoids the question's words."""
_STOP = frozenset(
    word
    for line in (
        ("a", "an", "and", "as", "at", "be", "by", "did", "do", "does", "for", "from"),
        ("had", "has", "have", "how", "in", "is", "it", "many", "of", "on", "that"),
        ("says", "the", "to", "until", "was", "were", "what", "when", "which", "who"),
        ("held", "with"),
    )
    for word in line
)


class Passage(NamedTuple):
    """A passage: its sentences, and every value of a kind that it states."""

    sentences: tuple[str, ...]
    values: tuple[tuple[Kind, str], ...]


class Question(NamedTuple):
    """A question; `source` is the index of the passage that answers it."""

    topic: str
    text: str
    kind: Kind
    difficulty: int
    answer: str
    source: int


class World(NamedTuple):
    """A corpus and the questions over it."""

    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]


class Ranking:
    """BM25 over a corpus, built once; equal scores are ordered by passage.

    Lucene's form with k1 = 1.2, b = 0.75. Scores are compared to four decimals, so that
    the order does not hang on the last bit of a float.
    """

    def __init__(self, passages: Sequence[Passage]):
        import bm25s  # slow to import, and replaying an episode does not need it

        self._index = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
        texts = [list(terms(" ".join(p.sentences))) for p in passages]
        self._index.index(texts, show_progress=False)

    def top(self, query: str, count: int) -> tuple[int, ...]:
        """The `count` best passages for `query`, best first."""
        scores = self._index.get_scores(list(terms(query))).tolist()
        rounded = [-round(score, 4) for score in scores]
        # Stable: equal ones stay in the order of passages.
        return tuple(sorted(range(len(scores)), key=rounded.__getitem__)[:count])


def words(text: str) -> tuple[str, ...]:
    """Lower-case words and numbers of `text`, in order."""
    return tuple(re.findall(r"[a-z0-9]+", text.lower()))


def terms(text: str) -> tuple[str, ...]:
    """The words of `text` that carry content."""
    return tuple(w for w in words(text) if w not in _STOP)


def make_world(seed: int, block: int, *, per_difficulty: int) -> World:
    """`per_difficulty` families for each difficulty, one question a family."""
    rng = Random(f"research/{seed}/{block}")
    places = [onset + ending for onset in ONSETS for ending in ENDINGS]
    rng.shuffle(places)
    families = (_single, _near_names, _two_reports)
    passages: list[Passage] = []
    questions: list[Question] = []
    for number, place in enumerate(places[: NUM_DIFFICULTIES * per_difficulty]):
        family = families[number % NUM_DIFFICULTIES]
        found, question = family(rng, place, rng.choice(NOUNS))
        # The passages of a family lie in random order, so that ties favour nobody.
        order = rng.sample(range(len(found)), len(found))
        source = len(passages) + order.index(question.source)
        passages += [found[i] for i in order]
        questions.append(question._replace(source=source))
    return World(tuple(passages), tuple(questions))


def _single(rng: Random, place: str, noun: Noun) -> tuple[list[Passage], Question]:
    subject = f"{place} {noun.noun}"
    order = rng.sample(noun.relations, 4)
    value = {r: _value(rng, r) for r in order}
    passages = [
        _passage(rng, [(r, r.plain, value[r]) for r in pair], subject)
        for pair in (order[:2], order[2:])
    ]
    asked = order[0]
    text = asked.question.format(s=subject)
    return passages, Question(subject, text, asked.kind, 0, value[asked], 0)


def _near_names(rng: Random, place: str, noun: Noun) -> tuple[list[Passage], Question]:
    topic = f"{place} {noun.noun}"
    first, second = rng.sample(MODIFIERS, 2)
    subject, sibling = rng.sample([topic, f"{first} {topic}", f"{second} {topic}"], 2)
    order = rng.sample(noun.relations, 3)
    asked = order[0]
    answer, rival = _two_values(rng, asked)
    passages = [
        _passage(rng, [_stated(rng, asked, answer), _plain(rng, order[1])], subject),
        _passage(rng, [(asked, asked.plain, rival), _plain(rng, order[2])], sibling),
    ]
    text = asked.question.format(s=subject)
    return passages, Question(topic, text, asked.kind, 1, answer, 0)


def _two_reports(rng: Random, place: str, noun: Noun) -> tuple[list[Passage], Question]:
    subject = f"{place} {noun.noun}"
    order = rng.sample([r for r in noun.relations if r.kind != "year"], 3)
    asked = order[0]
    answer, outdated = _two_values(rng, asked)
    before, year = sorted(rng.sample(range(1860, 1950), 2))
    decoy = rng.choice(
        (
            f"The report of {before} says that ",
            f"Until the report of {year} it was held that ",
        )
    )
    relation, template, _ = _stated(rng, asked, answer)
    passages = [
        _passage(
            rng,
            [
                (
                    relation,
                    _after(f"The report of {year} says that ", template),
                    answer,
                ),
                _plain(rng, order[1]),
            ],
            subject,
        ),
        _passage(
            rng,
            [(asked, _after(decoy, asked.plain), outdated), _plain(rng, order[2])],
            subject,
        ),
    ]
    text = _after(f"By the report of {year}, ", asked.question).format(s=subject)
    return passages, Question(subject, text, asked.kind, 2, answer, 0)


def _passage(
    rng: Random, stated: Sequence[tuple[Relation, str, str]], subject: str
) -> Passage:
    shuffled = rng.sample(stated, len(stated))
    return Passage(
        tuple(template.format(s=subject, v=value) for _, template, value in shuffled),
        tuple((relation.kind, value) for relation, _, value in shuffled),
    )


def _plain(rng: Random, relation: Relation) -> tuple[Relation, str, str]:
    return relation, relation.plain, _value(rng, relation)


def _stated(rng: Random, relation: Relation, value: str) -> tuple[Relation, str, str]:
    other = rng.random() < OTHER_WORDS_SHARE
    return relation, relation.other if other else relation.plain, value


def _after(opening: str, sentence: str) -> str:
    """`sentence` behind `opening`; only a name keeps its capital letter."""
    if sentence.startswith("{"):
        return opening + sentence
    return opening + sentence[0].lower() + sentence[1:]


def _value(rng: Random, relation: Relation) -> str:
    if relation.kind == "year":
        return str(rng.randrange(1600, 1850))
    if relation.kind == "number":
        return str(rng.randrange(3, 98))
    if relation.kind == "name":
        return f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"
    return rng.choice(WORDS[relation.values])


def _two_values(rng: Random, relation: Relation) -> tuple[str, str]:
    value = other = _value(rng, relation)
    while not set(words(value)).isdisjoint(words(other)):
        other = _value(rng, relation)
    return value, other
