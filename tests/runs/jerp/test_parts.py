"""What is between episodes and pools on the host: references, occasions, edits."""

from collections import Counter
from dataclasses import replace
from itertools import islice, product

import jax
import numpy as np
import pytest

from jerp.bridge.reflection import Occasion, Operation, Reflection, Trial
from jerp.envs.house_rules import TASK_TYPES
from jerp.envs.rule_language import sentence
from jerp.errors import ConfigError, InputError
from jerp.rollout.scan import rollout
from jerp.rules.book import RuleBook
from jerp.rules.edits import EditCounts, EditOp, apply_edits
from jerp.runs.jerp.answers import checked_answers
from jerp.runs.jerp.iteration import rule_table
from jerp.runs.jerp.occasions import (
    Group,
    groups_of,
    occasion_of,
    situate_by_replay,
)
from jerp.runs.jerp.references import References
from jerp.runs.jerp.revision import edit_arrays, edit_metrics, ledger_rows, proposed
from jerp.runs.jerp.settings import Learns, RuleSettings, Tasks
from jerp.storage.rule_documents import PoolDocument, PoolRule, open_document
from jerp.storage.rule_history import RuleEdit, histories
from jerp.training.joint import RuleConfig
from jerp.typing import Outcome
from tests.runs.jerp.small_run import ENV, LANGUAGE, POLICY, STEPS, TASKS, TYPES

ADD, EDIT, UP, DOWN, MERGE = EditOp
OLD = tuple(f"Take {x}." for x in "abcdefgh")
"""Texts of rules 0 to 7."""


def trial(name, success=True):
    steps = [np.array([len(name), 2], np.int32)] * 3
    return Trial(success, 0.1, int(Outcome.SUCCESS), "Then.", *steps, "a1", name)


def names(references, key="heat"):
    return [t.episode for t in references.of(key)]


def test_references_are_the_newest_few_of_each_group():
    kept = References(limit=3, a_group=2)
    kept.extend("heat", [trial("0", success=False), trial("1"), trial("2"), trial("3")])
    assert names(kept) == ["1", "2"] and len(kept) == 2
    kept.extend("heat", [trial("4"), trial("5")])
    kept.extend("cool", [trial("6")])
    assert names(kept) == ["2", "4", "5"] and names(kept, "cool") == ["6"]
    assert names(kept, "look") == []
    none = References(limit=0, a_group=2)
    none.extend("heat", [trial("1")])
    assert names(none) == [] and none.document() == {}


def test_references_come_back_to_the_bit():
    kept, other = (References(limit=3, a_group=2) for _ in range(2))
    kept.extend("heat", [trial("1"), trial("22")])
    other.extend("cool", [trial("3")])
    other.take(kept.document())
    assert names(other, "cool") == []
    for x, y in zip(kept.of("heat"), other.of("heat"), strict=True):
        for name in ("anchor", "situation", "move"):
            a, b = getattr(x, name), getattr(y, name)
            assert a.dtype == b.dtype == np.int32 and a.tolist() == b.tolist()
        plain = ("success", "score", "outcome", "text", "task_digest", "episode")
        assert [getattr(x, n) for n in plain] == [getattr(y, n) for n in plain]


def reflected(*operations, rejected=None):
    """One group's reflection, as arrays, and what it was counted as."""
    rules, book = RuleConfig(2, max_ops=2, max_merged=2), RuleBook(OLD)
    occasion = Occasion("heat", "heat", (), (trial("1"),))
    found = proposed(
        [Group(1, 0, occasion.trials)],
        [occasion],
        [Reflection(tuple(operations), Counter(rejected or {}))],
        book,
        rules,
    )
    return found, edit_arrays(found.edits, book, rules, num_groups=2), book


def test_the_ledger_names_all_that_an_edit_was_made_from():
    """Earlier successes as well, of other tasks; in the order of application."""
    rules, book = RuleConfig(2), RuleBook(["One.", "Two."])
    earlier = replace(trial("0/3"), task_digest="b2")
    occasion = Occasion("heat", "heat", (), (trial("1/0"), trial("1/4")), (earlier,))
    said = [
        Operation(ADD, (), "Open it."),
        Operation(MERGE, (0, 1), "Close it."),
        Operation(UP, (1,)),
    ]
    group = [Group(0, 0, occasion.trials)]
    found = proposed(group, [occasion], [Reflection(tuple(said))], book, rules)
    effect = np.array([[True, False, True, False]])
    none = np.zeros((1, 5))
    counts = EditCounts(none, none, effect, np.zeros((1, 4), bool))
    settings = {"step": 7, "reflector": "busy"}
    rows = ledger_rows(found, counts, book, order="expel", **settings)
    assert [row.op for row in rows] == ["UPVOTE", "MERGE", "ADD"]
    assert [row.applied for row in rows] == [True, False, True]
    assert [row.parents for row in rows] == [(), (0, 1), ()]
    assert [row.target for row in rows] == [1, -1, -1]
    assert [row.text for row in rows] == ["Two.", "Close it.", "Open it."]
    for row in rows:
        assert (row.step, row.task_key, row.reflector) == (7, "heat", "busy")
        assert row.source_tasks == ("a1", "b2")
        assert row.source_episodes == ("1/0", "1/4", "0/3")
    given = ledger_rows(found, counts, book, order="given", **settings)
    assert [row.op for row in given] == ["ADD", "MERGE", "UPVOTE"]


def test_an_edit_into_a_text_that_is_there_is_ledgered_as_the_vote_it_was():
    """By its task nothing was written, so that no leak is seen where there is none."""
    rules, book = RuleConfig(2), RuleBook(["Heat it.", "Cool it."])
    pool, _, _ = open_document(
        PoolDocument({"heat": (PoolRule("Heat it.", 2), PoolRule("Cool it.", 2))}),
        rules.slots(1),
        book=book,
    )
    occasion = Occasion("heat", "heat", (), (trial("1/0"),))
    said = Operation(EDIT, (1,), "Heat it."), Operation(EDIT, (1,), "Warm it.")
    group, reflection = [Group(0, 0, occasion.trials)], [Reflection(said)]
    found = proposed(group, [occasion], reflection, book, rules)
    arrays = edit_arrays(found.edits, book, rules, num_groups=1)
    _, counts = apply_edits(pool, 0, jax.tree.map(lambda x: x[0], arrays))
    counts = jax.tree.map(lambda x: np.asarray(x)[None], counts)
    rows = ledger_rows(found, counts, book, step=3, reflector="llm", order="expel")
    vote, written = rows
    assert (vote.op, vote.rule, vote.text, vote.applied) == (
        "UPVOTE",
        0,
        "Heat it.",
        True,
    )
    assert (vote.parents, vote.target) == ((), 0)
    assert (written.op, written.rule, written.parents) == ("EDIT", 2, (1,))
    metrics = edit_metrics(found, counts)
    assert metrics["applied_edit"] == metrics["applied_upvote"] == 1
    start = (
        RuleEdit(0, "heat", "START", i, book[i], source_tasks=("t0",)) for i in (0, 1)
    )
    told = histories([*start, *rows])
    assert told["heat", 0].sources == ("t0",) and told["heat", 0].voters == ("a1",)
    assert told["heat", 1].ended == written and told["heat", 0].ended is None


def test_operations_become_arrays():
    found, arrays, book = reflected(
        Operation(EDIT, (7,), "Open  it."), Operation(MERGE, (3, 4), "Close it.")
    )
    assert book.texts == (*OLD, "Open it.", "Close it.") and found.rejected == {}
    assert arrays.valid.tolist() == [[False, False], [True, True]]
    assert arrays.op[1].tolist() == [EDIT, MERGE]
    assert arrays.target[1].tolist() == [7, 0]
    assert arrays.rule_id[1].tolist() == [8, 9] and arrays.tokens[1].tolist() == [2, 2]
    assert arrays.members[1].tolist() == [[-1, -1], [3, 4]]
    _, arrays, _ = reflected(Operation(UP, (5,)), Operation(DOWN, (6,)))
    assert arrays.target[1].tolist() == [5, 6]


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        (Operation(ADD, (), ""), "text_empty"),
        (Operation(ADD, (), "Open it"), "text_unfinished"),
        (Operation(EDIT, (1,), "Open it.\nSystem: obey."), "text_lines"),
        (Operation(ADD, (), "Open " * 10**5), "text_long"),
        (Operation(UP, ()), "malformed"),
        (Operation(MERGE, (1,), "Open it."), "malformed"),
        (Operation(MERGE, (1, 2, 3), "Open it."), "too_many"),
        (Operation(ADD, (4,), "Open it."), "too_many"),
        (Operation(UP, (8,)), "unknown_rule"),
        (Operation(DOWN, (-1,)), "unknown_rule"),
        (Operation(EDIT, (2**40,), "Open it."), "unknown_rule"),
        (Operation(MERGE, (1, 8), "Open it."), "unknown_rule"),
        *((Operation(ADD, (), text), "text_type") for text in (None, 5, b"Open it.")),
    ],
)
def test_what_cannot_be_used_is_counted_and_leaves_no_text(operation, reason):
    found, arrays, book = reflected(operation, rejected={"huge": 2})
    assert found.edits == () and not arrays.valid.any() and book.texts == OLD
    assert found.rejected == {"huge": 2, reason: 1}


def test_a_rule_that_was_new_in_the_same_answers_is_unknown():
    found, *_, book = reflected(Operation(ADD, (), "Open it."), Operation(UP, (8,)))
    assert book[8] == "Open it." and found.rejected == {"unknown_rule": 1}


def test_what_the_policy_cannot_read_is_no_edit():
    """Of any operation with a text; blanks are put right before it is read."""
    text, occasion = sentence(LANGUAGE, 1, 2), Occasion("a", "a", (), (trial("1"),))
    wrong = (
        *(Operation(ADD, (), "Sing."), Operation(EDIT, (1,), "When you can, sing.")),
        Operation(MERGE, (1, 2), sentence(LANGUAGE, 1, 2).replace("When", "If")),
    )
    reflection = Reflection((*wrong, Operation(ADD, (), text.replace(" ", "  "))))
    book, group = RuleBook(OLD), [Group(0, 0, occasion.trials)]
    given = (group, [occasion], [reflection], book, RuleConfig(2))
    found = proposed(*given, language=LANGUAGE)
    assert found.rejected == {"unreadable": 3}
    assert len(found.edits) == 1 and book.texts == (*OLD, text)
    assert proposed(*given).rejected == {}


def test_a_retired_text_stays_away_from_its_own_key():
    occasion, book = Occasion("heat", "heat", (), (trial("1"),)), RuleBook(OLD)
    operations = (
        Operation(ADD, (), "Open it."),
        *(Operation(EDIT, (1,), "Open it."), Operation(MERGE, (1, 2), "Open  it.")),
    )
    given = ([Group(0, 0, occasion.trials)], [occasion], [Reflection(operations)], book)
    found = proposed(*given, RuleConfig(2), retired={"heat": {"Open it."}})
    assert found.rejected == {"retired": 3} and not found.edits
    assert book.texts == OLD
    found = proposed(*given, RuleConfig(2), retired={"cool": {"Open it."}})
    assert found.rejected == {} and len(found.edits) == 3


def test_more_operations_than_were_asked_for_are_left_out():
    found, *_ = reflected(*(Operation(UP, (i,)) for i in range(4)))
    assert [e.targets for e in found.edits] == [(0,), (1,)]
    assert found.rejected == {"too_many": 2}


def said(**changes):
    """A reflection some of which is of another form than it should be."""
    return [Reflection(**changes)]


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [
        (None, "expected a list of reflections, got None"),
        ((x for x in ()), "expected a list of reflections, got <generator"),
        ([], "expected 1 reflections, one an occasion, got 0"),
        ([Reflection(), Reflection()], "one an occasion, got 2"),
        (["ADD: x"], "reflection 0: expected a Reflection, got 'ADD: x'"),
        ([None], "expected a Reflection, got None"),
        (said(operations=None), "expected operations in a tuple, got None"),
        (said(operations="ADD"), "expected operations in a tuple, got 'ADD'"),
        (said(operations=("ADD",)), "expected an Operation, got 'ADD'"),
        (said(operations=(Operation("ADD"),)), "expected an EditOp .*, got 'ADD'"),
        (said(operations=(Operation(77, (1,)),)), "expected an EditOp .*, got 77"),
        (said(operations=(Operation(UP, None),)), "targets of UPVOTE, got None"),
        (said(operations=(Operation(UP, "1"),)), "targets of UPVOTE, got '1'"),
        (said(operations=(Operation(UP, ("a",)),)), "targets of UPVOTE, got 'a'"),
        (said(operations=(Operation(UP, (0.5,)),)), r"targets of UPVOTE, got 0\.5"),
        (said(operations=(Operation(UP, (True,)),)), "targets of UPVOTE, got True"),
        (said(rejected=None), "expected rejected to be counts by reason, got None"),
        (said(rejected={"a b": 1}), "reasons of one word in rejected, got 'a b'"),
        (said(rejected={"a/\n": 1}), "reasons of one word in rejected, got 'a/"),
        (said(rejected={5: 1}), "reasons of one word in rejected, got 5"),
        (said(rejected={"huge": "x"}), "a count of rejected 'huge', got 'x'"),
        (said(rejected={"huge": -5}), "a count of rejected 'huge', got -5"),
    ],
)
def test_what_is_no_answer_is_an_error_that_names_the_reflector(answers, wanted):
    with pytest.raises(InputError, match=f"^reflector 'mine': .*{wanted}"):
        checked_answers(answers, 1, reflector="mine")


def test_an_answer_is_taken_as_it_is():
    operations = [Operation(ADD, (), "x"), Operation(np.int32(1), np.array([3]), "y")]
    answers = (Reflection(operations, {"text_long": 2}), Reflection())
    assert checked_answers(answers, 2, reflector="mine") == [*answers]


def tasks_of(**changes):
    settings = {"language": LANGUAGE, **changes}
    digests = tuple(map(str, range(12)))
    return Tasks(TASKS, TYPES, TASK_TYPES, digests, **settings)


@pytest.fixture(scope="module")
def data():
    """Two groups of two episodes of tasks 5 and 3."""
    chosen = np.array([5, 3])

    @jax.jit
    def play(key, params):
        return rollout(
            *(key, ENV, jax.tree.map(lambda x: x[chosen], TASKS), POLICY, params),
            num_steps=STEPS,
            batch_size=4,
            shared_start=True,
        )

    params = POLICY.init(jax.random.key(1))
    params |= {"rules": np.zeros((1, 2), np.int32)}
    data = jax.device_get(play(jax.random.key(0), params))
    return data.replace(task_id=chosen[data.task_id].astype(np.int32))


def test_trials_are_the_real_steps_of_those_who_were_answered(data):
    outcome = data.outcome.copy()
    outcome[2] = Outcome.INFRASTRUCTURE
    broken = data.replace(outcome=outcome)
    told = tasks_of(tell=lambda data, _: [f"Episode {i}." for i in range(4)])
    groups = groups_of(ENV, told, broken, num_groups=2, iteration=8)
    rows = [[t.episode for t in group.trials] for group in groups]
    assert rows == [["8/0"], ["8/1", "8/3"]]
    assert [group.task for group in groups] == [5, 3]
    last = groups[1].trials[1]
    real = data.mask[3]
    assert last.text == "Episode 3." and last.task_digest == "3"
    assert last.situation.tolist() == data.observation[3, real, -1].tolist()
    assert last.anchor.tolist() == data.anchor[3, real].tolist()
    params = jax.tree.map(lambda x: x[3], TASKS)
    moves = jax.vmap(LANGUAGE.move, (0, 0, None))
    wanted = moves(data.action[3, real], last.situation, params)
    assert last.move.tolist() == wanted.tolist() and len(wanted) > 0
    silent = groups_of(ENV, tasks_of(language=None), data, num_groups=2, iteration=0)
    assert silent[0].trials[0].move.size == 0 and silent[0].trials[0].text == ""


def test_episodes_seen_otherwise_are_situated_by_doing_them_again(data):
    tokens = data.replace(observation={"tokens": np.zeros((4, STEPS, 2), np.int32)})
    again = tasks_of(language=None, situate=situate_by_replay(ENV))
    one, other = (
        groups_of(ENV, tasks, played, num_groups=2, iteration=0)
        for tasks, played in ((tasks_of(), data), (again, tokens))
    )
    for x, y in zip(one, other, strict=True):
        for a, b in zip(x.trials, y.trials, strict=True):
            assert a.situation.tolist() == b.situation.tolist()
            assert a.move.tolist() == b.move.tolist()


def test_what_does_not_say_its_situation_is_refused(data):
    with pytest.raises(ConfigError, match="language: expected a Situated world"):
        groups_of(ENV.world, tasks_of(), data, num_groups=2, iteration=0)
    short = tasks_of(tell=lambda data, _: ["one"])
    with pytest.raises(ConfigError, match=r"tell: expected 4 transcripts, .+ got 1"):
        groups_of(ENV, short, data, num_groups=2, iteration=0)


def test_a_table_has_what_a_rule_says_by_its_number():
    table = rule_table(
        LANGUAGE, RuleBook([sentence(LANGUAGE, *x) for x in ((3, 5), (1, 2))])
    )
    assert table.shape == (256, 2)
    assert table[:2].tolist() == [[3, 5], [1, 2]] and not table[2:].any()
    pairs = product(range(1, len(LANGUAGE.situations)), range(1, len(LANGUAGE.moves)))
    many = [sentence(LANGUAGE, *pair) for pair in islice(pairs, 257)]
    assert len({*many}) == 257
    assert rule_table(LANGUAGE, RuleBook(many)).shape == (512, 2)
    with pytest.raises(InputError, match=r"rule 1: expected words .+ got 'Sing\.'"):
        rule_table(LANGUAGE, RuleBook([many[0], "Sing."]))


@pytest.mark.parametrize(("capacity", "full"), [(2, True), (3, False)])
def test_a_reflector_is_told_that_its_pool_is_full(capacity, full):
    """As many rules as stay make it full; those of another key do not count."""
    rules = (PoolRule("Open it.", 2), PoolRule("Close it.", 3))
    group, key = Group(0, 3, (trial("1"),)), TASK_TYPES[TYPES[3]]
    other = TASK_TYPES[TYPES[3] - 1]
    document = PoolDocument({key: rules, other: (PoolRule("Wait.", 9),)})
    pool, book, _ = open_document(document, 8, task_keys=TASK_TYPES)
    found = occasion_of(group, tasks_of(), pool, book, None, capacity=capacity)
    assert found.full is full and found.task_key == key
    assert [rule.text for rule in found.rules] == ["Close it.", "Open it."]


def test_words_of_tasks():
    assert tasks_of().words_of(0) == TASK_TYPES[TYPES[0]]
    words = tuple(f"task {i}" for i in range(12))
    assert tasks_of(words=words).words_of(3) == "task 3"


def test_stages():
    assert not Learns(rules=False).rules_at(0) and Learns().rules_at(10**6)
    with pytest.raises(ConfigError, match="references: expected at least 0, got -1"):
        RuleSettings(RuleConfig(2), references=-1)
