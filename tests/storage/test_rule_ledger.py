"""A ledger that loses nothing, invents nothing, and tells where each rule came from."""

import dataclasses
import io
import json
import os
from pathlib import Path

import pytest

from jerp.errors import InputError, StorageError, UnknownNameError
from jerp.rules.book import RuleBook
from jerp.storage.rule_documents import PoolDocument, PoolRule
from jerp.storage.rule_ledger import (
    RuleEdit,
    RuleLedger,
    RuleScores,
    histories,
    read_ledger,
    rows_before,
    start_rows,
)


def edit(step, op, rule, text, parents=(), **fields):
    return RuleEdit(step, fields.pop("key", "k"), op, rule, text, parents, **fields)


ROWS = (
    edit(0, "ADD", 0, "a.", source_tasks=("t0",), source_episodes=("0/1",)),
    edit(0, "ADD", 1, "b.", source_tasks=("t1",), source_episodes=("0/2",)),
    edit(1, "EDIT", 2, "c.", (0,), target=0, source_tasks=("t2",)),
    RuleScores(1, "k", {1: 2.0, 2: 3.0}),
    edit(2, "UPVOTE", 2, "c.", target=2, source_tasks=("t3",)),
    edit(2, "MERGE", 3, "d.", (2, 1), source_tasks=("t0", "t4"), reflector="x"),
    edit(2, "ADD", 4, "no room.", applied=False, source_tasks=("t9",)),
    RuleScores(2, "k", {3: 4.0}),
    edit(3, "PRUNE", 3, "d."),
)
SCORES = '{"row": 0, "kind": "scores", "step": 0, "task_key": "k", "scores": '


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run" / "rules.jsonl"


def written(path, rows=ROWS):
    ledger = RuleLedger(path)
    ledger.write(rows)
    return ledger


def test_rows_come_back_as_they_were_written(path):
    ledger = RuleLedger(path)
    ledger.write(ROWS[:3])
    ledger.write(ROWS[3:])
    assert read_ledger(path) == ROWS and ledger.num_rows == len(ROWS)
    lines = path.read_text().splitlines()
    assert json.loads(lines[0]) == {
        "row": 0,
        "kind": "edit",
        "step": 0,
        "task_key": "k",
        "op": "ADD",
        "rule": 0,
        "text": "a.",
        "source_tasks": ["t0"],
        "source_episodes": ["0/1"],
    }
    scores = {"row": 3, "kind": "scores", "step": 1, "task_key": "k"}
    assert json.loads(lines[3]) == scores | {"scores": {"1": 2.0, "2": 3.0}}


def test_there_are_no_rows_where_there_is_no_file(path):
    assert read_ledger(path) == ()
    assert RuleLedger(path, num_rows=0).num_rows == 0


def test_rows_after_the_checkpoint_are_taken_back(path):
    written(path)
    ledger = RuleLedger(path, first=2, num_rows=4)
    assert read_ledger(path) == ROWS[:4] and ledger.num_rows == 4
    assert ("k", 3) not in ledger.histories
    ledger.write(ROWS[4:])
    assert read_ledger(path) == ROWS
    again = RuleLedger(path, first=4)
    assert again.histories.sources == histories(ROWS).sources
    RuleLedger(path)
    assert read_ledger(path) == ()


def test_a_torn_last_line_is_left_out_and_overwritten(path):
    written(path)
    whole = path.read_bytes()
    for size in range(len(whole) - 60, len(whole)):
        path.write_bytes(whole[:size])
        assert read_ledger(path) == ROWS[:-1]
    ledger = RuleLedger(path, first=3, num_rows=8)
    ledger.write(ROWS[8:])
    assert path.read_bytes() == whole


def test_rows_that_are_missing_before_the_checkpoint_are_noticed(path):
    written(path, ROWS[:3])
    with pytest.raises(StorageError, match=r"expected the 4 rows .*, got 3; bring"):
        RuleLedger(path, first=2, num_rows=4)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[2])
    with pytest.raises(StorageError, match=r"line 2 is no row .*expected row 1"):
        read_ledger(path)


def test_rows_that_were_changed_before_the_checkpoint_are_noticed(path):
    """By a digest that grows as the file does, and is the same when it is read."""
    ledger = written(path, ROWS[:4])
    known = {"num_rows": 4, "digest": ledger.digest}
    ledger.write(ROWS[4:])
    assert ledger.digest != known["digest"]
    assert RuleLedger(path, first=4).digest == ledger.digest
    assert rows_before(path, 2, **known) == ROWS[:4]
    text = path.read_text()
    for change in (("a.", "A."), ('["t0"]', "[]")):
        path.write_text(text.replace(*change, 1))
        for read in (lambda: rows_before(path, 2, **known), lambda: again(path, known)):
            with pytest.raises(
                StorageError, match="got 4, some of them changed; bring"
            ):
                read()
    path.write_text(text)
    assert again(path, known).digest == known["digest"]


def again(path, known):
    return RuleLedger(path, first=2, **known)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "1",
        "{}",
        '{"row": 0}',
        '{"row": 0, "kind": "vote"}',
        '{"row": 0, "kind": "edit", "step": 0}',
        SCORES + "[1]}",
        SCORES + '{"x": 1}}',
        SCORES + '{"1": NaN}}',
        SCORES + '{}, "x": 1}',
        "\xff\xfe",
    ],
)
def test_a_damaged_line_is_named(path, line):
    path.parent.mkdir()
    path.write_text(f"{line}\n", encoding="latin-1")
    with pytest.raises(
        StorageError, match=r"rules\.jsonl: line 1 is no row of a ledger"
    ):
        read_ledger(path)


def test_steps_never_go_back(path):
    ledger = written(path)
    with pytest.raises(InputError, match="step: expected 3 or later, got 2"):
        ledger.write([edit(3, "ADD", 5, "e."), edit(2, "ADD", 6, "f.")])
    assert read_ledger(path) == ROWS
    first, last = path.read_bytes().splitlines(keepends=True)[:2]
    rows = [json.loads(last) | {"row": 0, "step": 5}, json.loads(first) | {"row": 1}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(StorageError, match=r"line 2 .*step 0 after step 5"):
        read_ledger(path)


@pytest.mark.parametrize("fails", ["write", "fsync"])
def test_a_failed_write_leaves_no_half_line(path, monkeypatch, fails):
    ledger = written(path, ROWS[:3])
    before = path.read_bytes()

    def refuse(_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched, pytest.raises(StorageError, match="space"):
        if fails == "fsync":
            patched.setattr(os, "fsync", refuse)
        else:
            patched.setattr(type(path), "open", half_open(28))
        ledger.write(ROWS[3:])
    assert path.read_bytes() == before and ledger.num_rows == 3
    ledger.write(ROWS[3:])
    assert read_ledger(path) == ROWS


def half_open(code):
    """`Path.open` of files that take half of what is written, and then nothing."""

    class Half(io.FileIO):
        taken = False

        def write(self, data):
            if self.taken:
                raise OSError(code, "No space left on device")
            self.taken = True
            return super().write(data[: len(data) // 2])

    return lambda path, mode, buffering: Half(path, mode)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"op": "VOTE"}, "unknown op 'VOTE'; did you mean"),
        ({"step": -1}, "step: expected a whole number"),
        ({"task_key": ""}, "task key: expected a name"),
        ({"rule": -2}, "rule: expected a whole number >= -1, got -2"),
        ({"parents": (-1,)}, "parents: expected a whole number"),
        ({"target": 1.5}, "target: expected a whole number"),
        ({"text": 5}, "text: expected a text, got 5"),
        ({"source_tasks": ("a b",)}, "sources: expected digests"),
    ],
)
def test_a_row_that_cannot_be_meant_is_refused(fields, message):
    with pytest.raises((InputError, UnknownNameError), match=message):
        dataclasses.replace(ROWS[0], **fields)


def test_a_history_runs_through_what_a_rule_was_made_of():
    found = histories(ROWS)
    assert sorted(found) == [("k", n) for n in range(4)] and len(found) == 4
    merged = found["k", 3]
    assert [row.text for row in merged.writings] == ["a.", "b.", "c.", "d."]
    assert merged.sources == ("t0", "t1", "t2", "t4")
    assert merged.episodes == ("0/1", "0/2")
    assert merged.voters == ("t3",) and merged.votes == (ROWS[4],)
    assert (merged.text, merged.scores, merged.ended) == ("d.", ((2, 4.0),), ROWS[8])
    assert found["k", 1].sources == ("t1",) and found["k", 2].scores == ((1, 3.0),)
    assert found.sources["k", 3] == merged.sources
    with pytest.raises(InputError, match="none of number 4 in 'k'"):
        _ = found["k", 4]


def test_a_text_that_comes_back_keeps_its_past():
    rows = (
        *(edit(0, "ADD", 0, "a.", source_tasks=("t0",)), edit(1, "PRUNE", 0, "a.")),
        edit(2, "ADD", 0, "a.", source_tasks=("t2",)),
        edit(3, "EDIT", 1, "b.", (0,)),
        edit(4, "EDIT", 0, "a.", target=1),
    )
    found = histories(rows)["k", 0]
    assert found.ended is None and found.sources == ("t0", "t2")
    assert [row.step for row in found.writings] == [0, 2, 3, 4]
    assert histories(rows[:2])["k", 0].ended == rows[1]


def test_a_rule_that_another_replaced_is_gone():
    found = histories(ROWS)
    assert found["k", 0].ended == ROWS[2]
    assert found["k", 1].ended == found["k", 2].ended == ROWS[5]
    # One that a merge kept the text of is there, and so is one that is voted for.
    rows = (*ROWS[:3], edit(4, "MERGE", 2, "c.", (1, 2)), edit(5, "UPVOTE", 2, "c."))
    found = histories(rows)
    assert found["k", 2].ended is None and found["k", 1].ended == rows[3]
    dropped = dataclasses.replace(ROWS[2], applied=False)
    assert histories((*ROWS[:2], dropped))["k", 0].ended is None


def test_the_same_text_of_two_keys_has_two_histories():
    rows = (
        edit(0, "ADD", 0, "a.", source_tasks=("t0",)),
        edit(0, "ADD", 0, "a.", key="l", source_tasks=("t1",)),
    )
    assert histories(rows).sources == {("k", 0): ("t0",), ("l", 0): ("t1",)}


def test_a_vote_may_name_its_rule_as_target_alone():
    rows = (*ROWS[:1], edit(1, "DOWNVOTE", -1, "", target=0, source_tasks=("t5",)))
    assert histories(rows)["k", 0].voters == ("t5",)
    assert histories(rows)["k", 0].text == "a."


def test_rules_of_the_start_bring_their_sources_and_notes():
    rule = PoolRule("a.", 2, sources=("old",), note="of run 1")
    document = PoolDocument({"k": (rule,), "l": (PoolRule("b.", 1),)})
    rows = start_rows(document, RuleBook(["b."]))
    assert [(row.op, row.task_key, row.rule) for row in rows] == [
        ("START", "k", 1),
        ("START", "l", 0),
    ]
    found = histories([*rows, edit(1, "EDIT", 2, "c.", (1,), source_tasks=("new",))])
    assert found["k", 2].sources == ("old", "new")
    assert found.notes == {("k", 1): "of run 1", ("k", 2): "of run 1"}


def test_a_ledger_of_the_first_release_is_read():
    rows = read_ledger(Path(__file__).parent / "version1" / "rules.jsonl")
    assert [getattr(row, "op", "") for row in rows] == [
        *("START", "ADD", "EDIT", "MERGE", "UPVOTE", "", "PRUNE"),
    ]
    assert rows[3].applied is False and rows[5].scores == {0: 1.0, 2: 3.1}
    found = histories(rows)
    assert found["put hot", 2].sources == ("0f3a91c2d4e5b687", "77ab01c2d4e5b687")
    assert found["put hot", 2].episodes == ("0/3", "0/5")
    assert found["put hot", 0].note == "by hand" and found["put hot", 0].ended.step == 3
