"""The corpus, its ranking and the tasks made of them."""

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from jerp.domains.controlled.research import ResearchDomain
from jerp.domains.controlled.research_corpus import (
    Passage,
    Ranking,
    make_world,
    terms,
    words,
)
from jerp.domains.controlled.research_tasks import BLOCK
from jerp.domains.controlled.research_things import NOUNS
from jerp.errors import ConfigError

DIGEST = """
import hashlib, json
from jerp.domains.controlled.research import ResearchDomain
tasks = ResearchDomain().generate(3, 30)
print(hashlib.sha256(json.dumps([vars(t) for t in tasks]).encode()).hexdigest())
"""


@pytest.fixture(scope="module")
def tasks():
    return ResearchDomain().generate(3, BLOCK)


def _text(task, number):
    return " ".join(task.payload["passages"][number - 1])


def test_another_process_makes_the_same_tasks(tasks):
    here = json.dumps([vars(t) for t in tasks[:30]]).encode()
    there = subprocess.run(
        [sys.executable, "-c", DIGEST],
        env=os.environ | {"PYTHONHASHSEED": "77"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == hashlib.sha256(here).hexdigest()


def test_more_than_a_block_extends_fewer_tasks(tasks):
    more = ResearchDomain().generate(3, BLOCK + 2)
    assert more[:BLOCK] == tasks
    assert len({t.key for t in more}) == len({t.prompt for t in more}) == BLOCK + 2


def test_another_seed_asks_other_questions(tasks):
    other = ResearchDomain().generate(4, BLOCK)
    assert {t.prompt for t in tasks}.isdisjoint(t.prompt for t in other)


def test_no_tasks_is_refused():
    with pytest.raises(ConfigError, match="num_tasks"):
        ResearchDomain().generate(0, 0)


def test_difficulties_take_turns(tasks):
    assert [t.difficulty for t in tasks[:6]] == [0, 1, 2, 0, 1, 2]
    assert Counter(t.difficulty for t in tasks) == {0: 100, 1: 100, 2: 100}


def test_only_the_source_holds_the_answer(tasks):
    for task in tasks:
        hidden = task.payload["hidden"]
        answer = words(hidden["answer"])
        for number in range(1, len(task.payload["passages"]) + 1):
            found = set(answer) & set(words(_text(task, number)))
            assert found == (set(answer) if number == hidden["source"] else set())
        assert not set(answer) & set(words(task.prompt))


def test_the_source_is_in_reach_and_distractors_rank_above_it(tasks):
    rank = Counter()
    for task in tasks:
        source = task.payload["hidden"]["source"]
        rank[task.difficulty, task.payload["ladder"].index(source)] += 1
    assert rank[0, 0] == 100
    for difficulty in (1, 2):
        assert 20 <= rank[difficulty, 1] <= 60


def test_a_rival_is_given_where_another_value_is_stated(tasks):
    for task in tasks:
        if task.difficulty == 0:
            continue
        hidden = task.payload["hidden"]
        assert hidden["rivals"] and hidden["answer"] not in hidden["rivals"]
        pool = " ".join(
            _text(task, n + 1) for n in range(len(task.payload["passages"]))
        )
        assert all(set(words(v)) <= set(words(pool)) for v in hidden["rivals"])


def test_payload_is_json(tasks):
    assert json.loads(json.dumps(dict(tasks[0].payload))) == tasks[0].payload


def test_every_relation_states_its_subject_and_value_once():
    for noun in NOUNS:
        for relation in noun.relations:
            assert "{v}" not in relation.question
            for text in (relation.plain, relation.other):
                assert text.count("{s}") == text.count("{v}") == 1
            shared = set(terms(relation.question)) & set(terms(relation.plain))
            restated = set(terms(relation.question)) & set(terms(relation.other))
            assert len(shared) > len(restated), relation


def test_world_questions_point_at_passages_with_their_answer():
    world = make_world(5, 1, per_difficulty=8)
    assert world == make_world(5, 1, per_difficulty=8)
    assert world != make_world(5, 2, per_difficulty=8)
    for question in world.questions:
        source = world.passages[question.source]
        assert (question.kind, question.answer) in source.values
        assert any(question.answer in sentence for sentence in source.sentences)


def test_ranking_prefers_rare_shared_words_and_breaks_ties_by_position():
    texts = (
        "the mill grinds flour",
        "the mill grinds flour",
        "the bridge spans the river",
        "the mill by the bridge",
    )
    ranking = Ranking([Passage((t,), ()) for t in texts])
    assert ranking.top("Which mill grinds flour?", 3) == (0, 1, 3)
    assert ranking.top("bridge river", 2) == (2, 3)
    assert ranking.top("nothing known", 2) == (0, 1)
