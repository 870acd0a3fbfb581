"""What removals say of made-up rules: needed, useless, and in each other's stead."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from experiments.joint_rules import removal
from experiments.joint_rules.evaluation import Held
from experiments.joint_rules.places import NUM_RULES
from experiments.joint_rules.training import Stage
from jerp.envs.rule_language import sentence
from jerp.rules.book import RuleBook
from jerp.storage.rule_documents import PoolDocument, PoolRule, open_document

PLACE = SimpleNamespace(
    types=("one", "two", "none"),
    env=SimpleNamespace(
        language=SimpleNamespace(
            situations=("", "it rains"),
            moves=("", "do it", "do nothing", "take left", "take right"),
        )
    ),
)
NEEDED, USELESS, LEFT, RIGHT = range(4)
"""Rules by their numbers: the first two of the first type."""

TEXTS = tuple(sentence(PLACE.env.language, 1, move) for move in (1, 2, 3, 4))


def stage(*pools):
    document = PoolDocument(
        {
            kind: tuple(PoolRule(TEXTS[i], 9 - i) for i in rules)
            for kind, rules in zip(PLACE.types, pools, strict=True)
        }
    )
    book = RuleBook(TEXTS)
    pool, book, _ = open_document(document, NUM_RULES, book=book)
    state = SimpleNamespace(pool=pool)
    return Stage(4, {}, SimpleNamespace(state=state, book=book))  # pyright: ignore


def held(number=600):
    """A third of each type."""
    tasks = {"number": np.arange(number)}
    return Held(jax.random.key(0), tasks, np.arange(number, dtype=np.int32) % 3)


def done(place, held, params, rules, working_set, *, samples):
    """Success of who is told what is needed; of the third type always."""
    del place, params, rules
    told = [set(row[row >= 0].tolist()) for row in np.asarray(working_set)]
    wanted = ({NEEDED}, {LEFT, RIGHT}, set())
    success = [
        kind == 2 or bool(wanted[kind] & rules)
        for kind, rules in zip(held.kinds, told, strict=True)
    ]
    return {"success": np.tile(np.asarray(success)[:, None], (1, samples))}


@pytest.fixture
def found(monkeypatch):
    monkeypatch.setattr(removal, "played", done)
    splits = {"seen": held(), "unseen": held(300)}
    trained = stage((NEEDED, USELESS), (LEFT, RIGHT), ())
    return removal.removals(
        jax.random.key(1),
        PLACE,
        splits,
        trained,
        samples=1,  # pyright: ignore
    )


def test_what_is_needed_is_not_absorbed(found):
    assert found["rule"][:, :3].tolist() == [[0, 1, -1], [2, 3, -1], [-1, -1, -1]]
    assert found["absorbed"][:, :2].tolist() == [[0, 1], [1, 1], [0, 0]]
    np.testing.assert_array_equal(found["loss"][0, :2, :2], [[1, 0], [0, 0]])
    assert np.isnan(found["loss"][:, 2]).all() and np.isnan(found["loss"][..., 2]).all()


def test_rules_in_each_others_stead_go_in_turn_only_but_one(found):
    """Alone each is dispensable; without both all of their type is lost."""
    kinds = held(300).kinds
    by_kind = [found["retired"][kinds == kind].mean() for kind in range(3)]
    assert by_kind == [1, 0, 1]
    assert found["in_turn"][:, :2].tolist() == [[0, 1], [1, 0], [0, 0]]
    assert found["retired_in_turn"].all()


def test_few_tasks_show_nothing(monkeypatch):
    monkeypatch.setattr(removal, "played", done)
    splits = {"seen": held(90), "unseen": held(30)}
    trained = stage((NEEDED, USELESS), (LEFT, RIGHT), ())
    found = removal.removals(
        jax.random.key(1),
        PLACE,
        splits,
        trained,
        samples=4,  # pyright: ignore
    )
    assert not found["absorbed"].any() and not found["in_turn"].any()


def test_what_is_next_in_the_pool_takes_the_place(monkeypatch):
    """A rule that was never shown comes up when another goes."""
    seen = []

    def note(*args, **keywords):
        seen.append(np.asarray(args[4])[0])
        return done(*args, **keywords)

    monkeypatch.setattr(removal, "played", note)
    monkeypatch.setattr(removal, "NUM_RULES", 1)
    trained = stage((NEEDED, USELESS), (), ())
    monkeypatch.setattr(
        Stage, "working_set", lambda self, keys: np.asarray([[0], [-1], [-1]])
    )
    splits = {"seen": held(), "unseen": held(300)}
    removal.removals(
        jax.random.key(1),
        PLACE,
        splits,
        trained,
        samples=1,  # pyright: ignore
    )
    assert [row.tolist() for row in seen[:2]] == [[NEEDED], [USELESS]]


def test_without_rules_there_is_nothing_to_remove():
    splits = {"seen": held(30), "unseen": held(30)}
    found = removal.removals(
        jax.random.key(1),
        PLACE,
        splits,
        stage((), (), ()),
        samples=1,  # pyright: ignore
    )
    assert set(found) == {"rule"} and (found["rule"] == -1).all()
