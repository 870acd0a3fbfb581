"""Evaluated tasks are recognised wherever they stand, and so is what knows of them."""

import jax
import numpy as np
import pytest

from jerp.errors import InputError, StorageError
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.rule_history import RuleEdit, histories
from jerp.storage.rule_leaks import (
    Leak,
    leaks,
    read_digests,
    task_digests,
    without_leaks,
    write_digests,
)
from tests.envs.homes import some_tasks

DOCUMENT = PoolDocument(
    {
        "k": (PoolRule("a.", 2, sources=("t1", "t2")), PoolRule("b.", 1)),
        "l": (PoolRule("a.", 2, sources=("t3",)),),
    }
)


def test_the_same_task_has_the_same_digest_in_any_split():
    tasks = some_tasks(5)
    digests = task_digests(tasks)
    assert len(set(digests)) == 5 and {len(digest) for digest in digests} == {16}
    other = jax.tree.map(lambda x: np.asarray(x)[[3, 0]], tasks)
    assert task_digests(other) == (digests[3], digests[0])


@pytest.mark.parametrize(
    "changed",
    [
        {"a": np.array([[1, 2]], np.int32), "b": np.array([3.5])},
        {"a": np.array([[1, 2]]), "b": np.array([3.0])},
        {"a": np.array([[2, 1]], np.int32), "b": np.array([3.0])},
        {"a": np.array([[[1, 2]]], np.int32), "b": np.array([3.0])},
        {"a": np.array([[1, 2]], np.int32), "c": np.array([3.0])},
        {"a": np.array([[1, 2]], np.int32)},
    ],
)
def test_another_task_has_another_digest(changed):
    one = {"a": np.array([[1, 2]], np.int32), "b": np.array([3.0])}
    assert task_digests(changed) != task_digests(one)


@pytest.mark.parametrize("params", [{}, {"a": np.int32(1)}, [np.ones(1), np.ones(2)]])
def test_what_has_no_rows_has_no_digests(params):
    with pytest.raises(InputError, match="one row a task"):
        task_digests(params)


def test_rules_of_evaluated_tasks_are_flagged_and_can_be_left_out():
    assert leaks(DOCUMENT, {"t2", "t1", "t9"}) == (Leak("k", "a.", ("t1", "t2")),)
    assert leaks(DOCUMENT, ()) == ()
    left = without_leaks(DOCUMENT, ["t2"])
    assert left.pools == {"k": (PoolRule("b.", 1),), "l": DOCUMENT.pools["l"]}
    assert without_leaks(DOCUMENT, ["t9"]) == DOCUMENT


def test_a_ledger_knows_of_parents_and_votes():
    rows = (
        RuleEdit(0, "k", "ADD", 0, "a.", source_tasks=("t0",)),
        RuleEdit(1, "k", "EDIT", 1, "b.", parents=(0,), source_tasks=("t1",)),
        RuleEdit(1, "k", "ADD", 2, "c.", source_tasks=("t5",)),
        RuleEdit(2, "k", "UPVOTE", 2, "c.", source_tasks=("t2",)),
        RuleEdit(2, "k", "ADD", 3, "d.", source_tasks=("t0",), applied=False),
    )
    assert leaks(histories(rows), ["t0", "t2"]) == (
        Leak("k", "a.", ("t0",)),
        Leak("k", "b.", ("t0",)),
        Leak("k", "c.", (), ("t2",)),
    )


def test_digests_are_kept_in_a_file(tmp_path):
    path = tmp_path / "evaluated.txt"
    write_digests(path, ["b", "a", "b"])
    assert path.read_text() == "b\na\n"
    assert read_digests(path) == {"a", "b"}
    path.write_text("a\r\n\n b \n")
    assert read_digests(path) == {"a", "b"}
    for line in ("not one", "!", "ab", "\N{LATIN SMALL LETTER E WITH ACUTE}"):
        path.write_text(f"a\n\n{line}\n", encoding="utf-8")
        with pytest.raises(StorageError, match=r"evaluated\.txt: line 3: expected the"):
            read_digests(path)
    path.write_bytes(b"")
    assert read_digests(path) == frozenset()
    with pytest.raises(StorageError, match="no such file"):
        read_digests(tmp_path / "none.txt")
