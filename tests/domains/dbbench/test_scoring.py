"""Hashes and labels: literals, the rules written a second time, limits."""

import hashlib

import pytest

from jerp.domains.dbbench.scoring import labels_match, table_hash


def test_the_hash_of_one_row_by_hand():
    # md5sum says 9c33a… of "a,1", and this of "9c33a".
    assert table_hash([[("a", "1")]]) == "d6e541b432246b89e4109f7c9303d06a"


def test_the_hash_knows_no_order_of_rows_or_tables_and_no_null():
    rows = [("a", "1"), ("b", None), ("c", "2")]
    hashes = [hashlib.md5(t).hexdigest()[:5] for t in (b"a,1", b"b", b"c,2")]
    wanted = hashlib.md5(",".join(sorted(hashes)).encode()).hexdigest()
    assert table_hash([rows]) == table_hash([rows[::-1]]) == wanted
    assert table_hash([rows, rows[:1]]) == table_hash([rows[:1], rows])
    assert table_hash([rows, []]) == "_".join(sorted((wanted, "None")))
    assert table_hash([[("1", "a")]]) != table_hash([[("a", "1")]])
    assert table_hash([rows, rows]) != table_hash([rows])


@pytest.mark.parametrize(
    ("answers", "label"),
    [
        (["7"], ["7.0"]),
        ([7], ["7"]),
        (["7.005"], ["7"]),
        (["1,200"], ["1200"]),
        (["5 %"], ["5"]),
        ([" 'Kiel' "], ["Kiel"]),
        ([("Kiel",)], ["Kiel"]),
        (["None"], ["none"]),
        ([None], ["0"]),
        (["undefined"], [""]),
        (["b", "a", "a"], ["a", "b"]),
        (["2", "1.0"], ["1", "2"]),
        ([], []),
        (["[1,2]"], ["[1,2]"]),
    ],
)
def test_what_the_official_comparison_forgives(answers, label):
    assert labels_match(answers, label) and labels_match(label, answers)


@pytest.mark.parametrize(
    ("answers", "label"),
    [
        (["7.02"], ["7"]),
        (["kiel"], ["Kiel"]),
        (["Kiel", "Bergen"], ["Kiel"]),
        (["1", "1"], ["1"]),
        (["1", "1", "2"], ["1", "2", "2"]),
        ([], ["none"]),
        ([], ["Kiel"]),
        (["Kiel"], ["7"]),
        (["[1,2]"], ["12"]),
        (["1e999"], ["1e999"]),
    ],
)
def test_what_it_does_not(answers, label):
    assert not labels_match(answers, label) and not labels_match(label, answers)
