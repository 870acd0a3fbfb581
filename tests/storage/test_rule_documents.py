"""Pools as documents: fields in one form or refused, one hash, to arrays and back."""

import hashlib

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import InputError, StorageError
from jerp.rules.book import RuleBook
from jerp.rules.pool import init_pool
from jerp.storage.rule_documents import (
    PoolDocument,
    PoolRule,
    open_document,
    pool_document,
    pool_hash,
)

SEEDED = settings(deadline=None, derandomize=True, max_examples=50)
HOT = PoolRule("Heat it.", 3, born=1, uses=4, wins=2, sources=("a1", "b2"), note="n")
COLD = PoolRule("Cool it.", 2.5)
DOCUMENT = PoolDocument({"put hot": (HOT, COLD), "look": ()})


def test_fields_are_brought_into_one_form():
    rule = PoolRule(
        " Heat  it. ", np.float32(1.1), np.int32(1), sources=["a", "b", "a"]
    )
    assert rule == PoolRule("Heat it.", 1.1, 1, 0, 0, ("a", "b"))
    assert (repr(rule.score), type(rule.born)) == ("1.1", int)
    assert PoolRule("Heat it.", 1 / 3).score == 0.33333334
    assert str(PoolRule("Heat it.", -0.0).score) == "0.0"


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("text", "Heat it", "text: expected a full stop"),
        ("text", "Heat it.\nObey.", "text: expected one line"),
        ("score", float("nan"), "score: expected a finite number of float32, got nan"),
        ("score", float("-inf"), "score: expected a finite"),
        ("score", 1e39, "score: expected a finite"),
        ("score", 10**400, "score: expected a finite"),
        ("score", "2", "score: expected a finite number of float32, got '2'"),
        ("score", True, "score: expected a finite"),
        ("score", None, "score: expected a finite"),
        ("born", -1, "born: expected a whole number >= 0, got -1"),
        ("uses", 1.0, "uses: expected a whole number"),
        ("uses", 2**31, "uses: expected a whole number"),
        ("wins", True, "wins: expected a whole number"),
        ("wins", 5, "wins: expected at most the 4 uses, got 5"),
        ("sources", "a1", "sources: expected a list"),
        ("sources", ("a b",), "sources: expected digests"),
        ("sources", ("a,b",), "sources: expected digests"),
        ("sources", (1,), "sources: expected digests"),
        ("sources", ("",), "sources: expected digests"),
        ("note", "a\nb", "note: expected one line"),
        ("note", "\u202e", "note: expected one line"),
        ("note", "n" * 501, "note: expected at most 500 characters, got 501"),
        ("note", " " * 10 + "n" * 10**6, "note: expected at most 500"),
        ("note", 3, "note: expected a text, got int"),
    ],
)
def test_a_field_that_cannot_be_meant_is_named(field, value, message):
    fields = {"text": "Heat it.", "score": 2, "uses": 4}
    with pytest.raises(InputError, match=message):
        PoolRule(**(fields | {field: value}))


def test_rules_stand_best_first_and_equals_as_they_were():
    rules = [
        PoolRule(f"{c}.", 1, born) for c, born in zip("abc", (5, 4, 4), strict=True)
    ]
    found = PoolDocument({"k": (*rules, PoolRule("d.", 2, 9))})
    assert [rule.text for rule in found.pools["k"]] == ["d.", "b.", "c.", "a."]


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ({"k": (HOT, PoolRule("Heat  it.", 1))}, "each once in 'k', got 'Heat it.'"),
        ({"": ()}, "task key: expected a name"),
        ({" k": ()}, "task key: expected one blank"),
        ({"a\nb": ()}, "task key: expected one line"),
        ({"k" * 101: ()}, "task key: expected at most 100"),
    ],
)
def test_a_document_that_cannot_be_meant_is_refused(pools, message):
    with pytest.raises(InputError, match=message):
        PoolDocument(pools)


@pytest.mark.parametrize("version", [2, 0, "1", None, True])
def test_another_version_is_not_read(version):
    with pytest.raises(StorageError, match="version: expected 1"):
        PoolDocument({}, version)


def test_the_hash_is_of_a_line_that_the_page_gives():
    line = '[["look",[]],["put hot",[["Heat it.",3.0,1],["Cool it.",2.5,0]]]]'
    expected = hashlib.sha256(line.encode()).hexdigest()
    assert pool_hash(DOCUMENT) == f"sha256:{expected}"


def test_the_hash_is_of_what_a_prompt_may_hold():
    kept = pool_hash(DOCUMENT)
    counted = PoolRule("Heat it.", 3, born=1)
    alike = PoolDocument({"look": (), "put hot": (COLD, counted)})
    assert pool_hash(alike) == kept
    others = (
        {"put hot": (HOT, COLD)},
        {"put hot": (HOT, COLD), "look": (), "clean": ()},
        {"put hot": (HOT, COLD), "Look": ()},
        {"put hot": (HOT,), "look": (COLD,)},
        {"put hot": (HOT, PoolRule("Chill it.", 2.5)), "look": ()},
        {"put hot": (HOT, PoolRule("Cool it.", 2.5000002)), "look": ()},
        {"put hot": (HOT, PoolRule("Cool it.", 2.5, born=1)), "look": ()},
    )
    hashes = {pool_hash(PoolDocument(pools)) for pools in others}
    assert len(hashes) == len(others) and kept not in hashes
    one, two = PoolRule("a.", 1), PoolRule("b.", 1)
    ties = [PoolDocument({"k": rules}) for rules in ((one, two), (two, one))]
    assert pool_hash(ties[0]) != pool_hash(ties[1])


def test_a_document_opens_to_arrays():
    pool, book, keys = open_document(DOCUMENT, 3)
    assert keys == ("put hot", "look") and book.texts == ("Heat it.", "Cool it.")
    assert pool.rule_id.tolist() == [[0, 1, -1], [-1, -1, -1]]
    assert pool.score.tolist() == [[3, 2.5, 0], [0, 0, 0]]
    assert pool.active.tolist() == [[True, True, False], [False, False, False]]
    assert pool.born.tolist()[0] == [1, 0, 0] and pool.tokens.tolist()[0] == [2, 2, 0]
    assert pool.uses.tolist()[0] == [4, 0, 0] and pool.wins.tolist()[0] == [2, 0, 0]
    empty = init_pool(2, 3)
    assert jax.tree.map(lambda x: x.dtype, pool) == jax.tree.map(
        lambda x: x.dtype, empty
    )


def test_rows_and_ids_of_an_earlier_run_are_kept():
    earlier = RuleBook(["Cool it."], count_tokens=len)
    pool, book, keys = open_document(
        DOCUMENT, 2, task_keys=("clean", "look", "put hot"), book=earlier
    )
    assert keys == ("clean", "look", "put hot") and book is earlier
    assert pool.rule_id.tolist() == [[-1, -1], [-1, -1], [1, 0]]
    assert pool.tokens.tolist()[2] == [8, 8]
    assert open_document(DOCUMENT, 2, count_tokens=len)[0].tokens.tolist()[0] == [8, 8]


def test_what_does_not_fit_is_refused_by_its_key():
    with pytest.raises(InputError, match="'put hot': expected at most 1 rules"):
        open_document(DOCUMENT, 1)
    with pytest.raises(InputError, match="got rules of 'put hot' too"):
        open_document(DOCUMENT, 2, task_keys=("look",))
    with pytest.raises(InputError, match="num_tasks"):
        open_document(PoolDocument({}), 2)


@st.composite
def documents(draw):
    texts = st.sampled_from([f"Do {c}." for c in "abcdefgh"])
    number = st.integers(0, 2**31 - 1)
    scores = st.floats(width=32, allow_nan=False, allow_infinity=False)
    pools = {}
    for key in draw(st.lists(st.sampled_from("xyz"), unique=True, min_size=1)):
        names = draw(st.lists(texts, unique=True, max_size=4))
        pools[key] = tuple(
            PoolRule(name, draw(scores), draw(number), draw(number)) for name in names
        )
    return PoolDocument(pools)


@SEEDED
@given(documents())
def test_arrays_and_documents_say_the_same(document):
    found = pool_document(*open_document(document, 4))
    assert found == document and pool_hash(found) == pool_hash(document)


def test_sources_and_notes_are_of_a_key_and_a_number():
    pool, book, keys = open_document(DOCUMENT, 3)
    found = pool_document(
        pool, book, keys, {("put hot", 0): ("a1", "b2")}, {("put hot", 0): "n"}
    )
    assert found == DOCUMENT


def test_arrays_without_a_meaning_make_no_document():
    pool, book, keys = open_document(DOCUMENT, 3)
    for names in (("put hot",), ("k", "k"), ("a", "b", "c")):
        with pytest.raises(InputError, match="task_keys: expected 2 names"):
            pool_document(pool, book, names)
    with pytest.raises(InputError, match="rule_id: expected 0 to 0, got 1"):
        pool_document(pool, RuleBook(["Heat it."]), keys)
    with pytest.raises(InputError, match="finite scores"):
        pool_document(pool.replace(score=pool.score + np.nan), book, keys)
