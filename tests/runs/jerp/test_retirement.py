"""Rules that are retired: gone, said in the ledger, and the same on resuming."""

from collections import Counter
from dataclasses import dataclass, replace

import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.reflection import Operation, Reflection
from jerp.envs.rule_language import sentence
from jerp.errors import ShapeError, StorageError
from jerp.rules.edits import EditOp
from jerp.runs.jerp import iteration
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_ledger import histories, read_ledger
from tests.runs.jerp.small_run import LANGUAGE, RULES, bits, run, written

ONE, OTHER = (sentence(LANGUAGE, 1, move) for move in (2, 3))


def first_rule(state, book, done):
    """The rule of each pool that has been known for longest."""
    ids = jnp.where(state.pool.active, state.pool.rule_id, len(book))
    first = jnp.min(ids, axis=1, keepdims=True)
    return jnp.where(first < len(book), first, -1)


def edits(folder, op):
    rows = read_ledger(folder / "rules.jsonl")
    return [row for row in rows if getattr(row, "op", "") == op]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Five iterations without a stop; rules are retired after two and four."""
    folder = tmp_path_factory.mktemp("whole")
    return run(folder, 5, retire=first_rule), folder


def test_k_and_resume_is_n_to_the_bit(whole, tmp_path):
    """Wherever sessions end: the moments are multiples of `chunk`."""
    trained, folder = whole
    run(tmp_path, 1, retire=first_rule)
    run(tmp_path, 4, retire=first_rule)
    programs = (iteration._compiled, iteration.revise, iteration.working_sets)
    before = [program._cache_size() for program in programs]
    rest = run(tmp_path, 5, retire=first_rule)
    assert [program._cache_size() for program in programs] == before
    assert bits(rest.state) == bits(trained.state)
    assert written(tmp_path) == written(folder)
    assert rest.document == trained.document


def test_what_is_retired_is_gone_and_said(whole):
    trained, folder = whole
    gone = edits(folder, "RETIRE")
    assert {row.step for row in gone} == {1, 3}
    told = histories(read_ledger(folder / "rules.jsonl"))
    for row in gone:
        history = told[row.task_key, row.rule]
        assert history.ended == row and history.text == row.text
        rules = trained.document.pools[row.task_key]
        assert row.text not in [rule.text for rule in rules]
    # One a pool, each the first of its time.
    after = Counter((row.step, row.task_key) for row in gone)
    assert max(after.values()) == 1 and len(gone) > 4
    rows = read_metrics(folder / "metrics.jsonl")
    adds = [row for row in edits(folder, "ADD") if row.step == 2 and row.applied]
    assert rows[2]["rules"] < rows[1]["rules"] + len(adds)


@dataclass(frozen=True)
class Stubborn:
    """Says the same of every group, of one rule that is left as an EDIT as well."""

    name: str = "stubborn"

    def reflect(self, occasions):
        return [Reflection(tuple(self._said(o))) for o in occasions]

    def _said(self, occasion):
        yield Operation(EditOp.ADD, (), ONE)
        yield Operation(EditOp.ADD, (), OTHER)
        known = [rule.rule_id for rule in occasion.rules]
        if len(known) == 1:
            yield Operation(EditOp.EDIT, (known[0],), ONE)


@pytest.mark.parametrize("may", [False, True])
def test_what_was_retired_comes_back_only_if_it_may(tmp_path, may):
    rules = replace(RULES, retired_may_return=may)
    settings = {"reflector": Stubborn(), "rules": rules, "learn_policy": False}
    settings |= {"retire": first_rule, "chunk": 1}
    run(tmp_path, 1, **settings)
    run(tmp_path, 2, **settings)
    gone = [row.text for row in edits(tmp_path, "RETIRE") if row.step == 0]
    assert gone and {*gone} == {ONE}
    first, second = read_metrics(tmp_path / "metrics.jsonl")
    assert "rejected_retired" not in first
    keys = {row.task_key for row in edits(tmp_path, "RETIRE") if row.step == 0}
    said = [
        row
        for op in ("ADD", "EDIT")
        for row in edits(tmp_path, op)
        if row.step == 1 and row.text == ONE
    ]
    back = [row for row in said if row.task_key in keys]
    if may:
        assert "rejected_retired" not in second
        assert {row.op for row in back if row.applied} == {"EDIT"}
    else:
        # Both edits of each group of these keys.
        assert second["rejected_retired"] in (2, 4, 6, 8) and not back


def test_a_frozen_pool_can_be_retired_from(tmp_path):
    """And its scores are told once, when it is frozen."""
    run(tmp_path, 2, rules_until=1, retire=first_rule, learn_policy=False)
    assert {row.step for row in edits(tmp_path, "RETIRE")} == {1}
    rows = read_ledger(tmp_path / "rules.jsonl")
    scores = [row for row in rows if hasattr(row, "scores")]
    assert {row.step for row in scores} == {0}
    told = {rule for row in scores for rule in row.scores}
    assert {row.rule for row in edits(tmp_path, "RETIRE")} <= told


def test_when_and_by_whom_is_part_of_the_run(whole):
    _, folder = whole
    before = written(folder)
    with pytest.raises(StorageError, match=r"config/retire/every is 2 there, 3 here"):
        run(folder, 6, retire=first_rule, chunk=3)
    with pytest.raises(StorageError, match="config/retire"):
        run(folder, 6)
    assert written(folder) == before


def test_rules_that_no_key_has_are_passed_over_and_other_shapes_refused(tmp_path):
    def strange(state, book, done):
        return np.full((6, 2), 10**6, np.int64)

    run(tmp_path / "strange", 1, chunk=1, retire=strange, learn_policy=False)
    assert not edits(tmp_path / "strange", "RETIRE")
    with pytest.raises(ShapeError, match="rule_id: expected axes"):
        run(tmp_path, 1, chunk=1, retire=lambda *_: [[1]], learn_policy=False)
    assert not read_metrics(tmp_path / "metrics.jsonl")
