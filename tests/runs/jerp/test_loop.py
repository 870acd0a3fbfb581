"""Joint runs: Algorithm 1's order, k + resume = n to the bit, and each variant."""

from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.reflection import Operation
from jerp.envs.house_rules import TASK_TYPES
from jerp.envs.rule_language import sentence
from jerp.errors import ConfigError, InputError, StorageError, TrainingError
from jerp.rollout.scan import rollout
from jerp.rules.edits import EditOp
from jerp.runs.jerp import iteration
from jerp.runs.jerp.settings import RuleSettings
from jerp.runs.policy.training import train_policy
from jerp.storage.locks import lock_folder
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument, PoolRule, pool_hash
from jerp.storage.rule_files import read_pool
from jerp.storage.rule_ledger import read_ledger
from jerp.training.group_settings import GroupConfig
from jerp.training.joint import RuleConfig
from jerp.typing import Outcome
from tests.runs.jerp.small_run import (
    HYPER,
    KEY,
    LANGUAGE,
    POLICY,
    RULES,
    TASK,
    TASKS,
    TYPES,
    Busy,
    bits,
    first_params,
    run,
    written,
)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Four iterations without a stop: what they came to, and their folder."""
    folder = tmp_path_factory.mktemp("whole")
    return run(folder, 4), folder


def test_k_and_resume_is_n_to_the_bit(whole, tmp_path):
    """Whatever the checkpoints are; pool, ledger and references included."""
    trained, folder = whole
    seen = []
    run(tmp_path, 1, chunk=1, on_progress=seen.append)
    run(tmp_path, 3, chunk=5, on_progress=seen.append)
    rest = run(tmp_path, 4, on_progress=seen.append)
    assert seen == [0, 1, 1, 2, 3, 1]
    assert bits(rest.state) == bits(trained.state)
    assert rest.book.texts == trained.book.texts
    assert written(tmp_path) == written(folder)
    assert rest.document == trained.document == read_pool(folder / "pool.json")
    again = run(tmp_path, 4)
    assert bits(again.state) == bits(trained.state)
    with pytest.raises(ConfigError, match=r"iterations: expected at least 4, .* got 2"):
        run(tmp_path, 2)


def test_going_on_compiles_nothing(whole, tmp_path):
    """What is restored lies where what was begun did."""
    del whole
    programs = (iteration._compiled, iteration.revise, iteration.working_sets)
    before = [program._cache_size() for program in programs]
    for iterations in (1, 2, 3):
        run(tmp_path, iterations)
    assert [program._cache_size() for program in programs] == before


def test_the_run_says_what_became_of_the_rules(whole):
    trained, folder = whole
    rows = read_metrics(folder / "metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    edits = [row for row in read_ledger(folder / "rules.jsonl") if hasattr(row, "op")]
    for row in rows:
        here = [edit for edit in edits if edit.step == row["step"]]
        for op in ("ADD", "EDIT", "UPVOTE", "DOWNVOTE", "MERGE"):
            for name, applied in (("applied", True), ("dropped", False)):
                count = sum(e.op == op and e.applied == applied for e in here)
                assert row[f"{name}_{op.lower()}"] == count
    ops = {edit.op for edit in edits if edit.applied}
    assert {"ADD", "EDIT", "UPVOTE", "DOWNVOTE", "MERGE", "PRUNE"} <= ops
    assert any(not edit.applied for edit in edits)
    last = rows[-1]
    assert last["rules"] == sum(map(len, trained.document.pools.values())) > 4
    assert last["references"] > 4 and last["lost_groups"] == 0
    assert 0 < last["edited_share"] <= 1
    assert sum(row["rejected_malformed"] for row in rows if row["rejected"]) > 0
    # Every rule says which tasks it was learned from.
    sources = [r.sources for rules in trained.document.pools.values() for r in rules]
    assert all(sources)


def test_uses_are_counted_and_the_policy_learns(whole):
    trained, _ = whole
    pool = jax.device_get(trained.state.pool)
    assert 0 < pool.wins.sum() < pool.uses.sum()
    before = first_params(POLICY)
    assert bits(trained.state.train.params) != bits(before)
    assert "rules" not in trained.state.train.params


@dataclass(frozen=True)
class Listening(Busy):
    """Keeps what it is shown."""

    heard: list = field(default_factory=list, compare=False, repr=False)

    def reflect(self, occasions):
        self.heard.append(occasions)
        return super().reflect(occasions)


def test_reflection_is_on_the_pool_before_and_on_earlier_successes(tmp_path):
    listening = Listening(name="busy")
    rules = replace(RULES, scores_every=1, references_a_group=1)
    run(tmp_path, 3, reflector=listening, rules=rules)
    kept = {key: {} for key in TASK_TYPES}
    references = {key: [] for key in TASK_TYPES}
    scores = [r for r in read_ledger(tmp_path / "rules.jsonl") if hasattr(r, "scores")]
    for number, occasions in enumerate(listening.heard):
        assert len(occasions) == 4
        for occasion in occasions:
            shown = {r.rule_id: r.score for r in occasion.rules}
            assert shown == kept[occasion.task_key]
            values = [r.score for r in occasion.rules]
            assert values == sorted(values, reverse=True)
            assert occasion.full == (len(shown) >= 4)
            names = [trial.episode for trial in occasion.references]
            assert names == references[occasion.task_key][-3:]
            assert [t.episode for t in occasion.trials] == [
                f"{number}/{occasions.index(occasion) + 4 * m}" for m in range(2)
            ]
            assert all(len(t.move) == len(t.situation) > 0 for t in occasion.trials)
        kept = {key: {} for key in TASK_TYPES}
        kept |= {r.task_key: dict(r.scores) for r in scores if r.step == number}
        for occasion in occasions:
            won = [t.episode for t in occasion.trials if t.success]
            references[occasion.task_key] += won[:1]
    assert any(references.values()) and number == 2


def test_a_policy_that_is_frozen_stays_and_rules_are_learned(tmp_path):
    trained = run(tmp_path, 2, learn_policy=False)
    assert bits(trained.state.train.params) == bits(first_params(POLICY))
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert rows[-1]["rules"] > 2 and "loss" not in rows[-1]
    assert {"success", "steps", "references"} <= rows[-1].keys()


def test_a_pool_is_frozen_after_the_first_stage(whole, tmp_path):
    trained, folder = whole
    staged = run(tmp_path, 4, rules_until=2)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [row["edited_share"] > 0 for row in rows] == [True, True, False, False]
    first = [r for r in read_ledger(folder / "rules.jsonl") if r.step < 2]
    assert list(read_ledger(tmp_path / "rules.jsonl")) == first
    assert staged.document != trained.document
    born = [r.born for rules in staged.document.pools.values() for r in rules]
    assert max(born) == 1
    # The policy goes on, with it.
    assert rows[2]["grad_norm"] > 0 and rows[2]["rules"] == rows[3]["rules"] == 6


def test_references_can_be_left_out(tmp_path):
    listening = Listening(name="busy")
    run(tmp_path, 2, reflector=listening, use_references=False)
    heard = [occasion for occasions in listening.heard for occasion in occasions]
    assert len(heard) == 8 and not any(occasion.references for occasion in heard)


START = PoolDocument(
    {
        "heat": (
            PoolRule(sentence(LANGUAGE, 1, 2), 5),
            PoolRule(sentence(LANGUAGE, 2, 3), 1),
        )
    }
)


def test_a_run_can_start_from_a_pool_and_leave_it(tmp_path):
    trained = run(tmp_path, 2, start_pool=START, learn_rules=False, reflector=None)
    assert pool_hash(trained.document) == pool_hash(
        PoolDocument({key: START.pools.get(key, ()) for key in TASK_TYPES})
    )
    rows = read_ledger(tmp_path / "rules.jsonl")
    assert [row.op for row in rows] == ["START", "START"]
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["rules"] == 2


def test_a_pool_that_does_not_fit_is_refused(tmp_path):
    many = tuple(PoolRule(f"Open {'very ' * i}wide.", 1) for i in range(5))
    with pytest.raises(InputError, match=r"'heat': expected at most 4 rules, .+ got 5"):
        run(tmp_path / "many", 2, start_pool=PoolDocument({"heat": many}))
    other = PoolDocument({"sing": (PoolRule("Sing.", 1),)})
    with pytest.raises(InputError, match="got rules of 'sing' too"):
        run(tmp_path / "other", 2, start_pool=other, rules=RuleSettings(RuleConfig(0)))


def test_a_rule_that_the_policy_cannot_read_is_refused(tmp_path):
    """By its text and key; where no rule is read any words will do."""
    other = PoolDocument({**START.pools, "cool": (PoolRule("Sing.", 1),)})
    wanted = r"start_pool: task key 'cool': .+ such as 'When .+', got 'Sing\.'"
    with pytest.raises(InputError, match=wanted):
        run(tmp_path / "read", 2, start_pool=other)
    assert not read_ledger(tmp_path / "read" / "rules.jsonl")
    none = RuleSettings(RuleConfig(0))
    run(tmp_path / "unread", 0, start_pool=other, rules=none)


def test_a_rule_in_other_words_is_not_learned_and_counted(tmp_path):
    class Singer(Busy):
        def reflect(self, occasions):
            said = (Operation(EditOp.ADD, (), "Sing."),)
            return [
                replace(found, operations=said + found.operations[:1])
                for found in super().reflect(occasions)
            ]

    trained = run(tmp_path, 1, reflector=Singer())
    [row] = read_metrics(tmp_path / "metrics.jsonl")
    assert row["rejected_unreadable"] == 4 and row["applied_add"] > 0
    assert "Sing." not in trained.book.texts


@dataclass(frozen=True)
class Broken:
    """Plays as the compiled program does, and loses all episodes of a group."""

    lost: int

    def __call__(self, *arguments, **settings):
        data = jax.device_get(_rollout(*arguments, **settings))
        lost = np.arange(len(data.outcome)) % 4 == self.lost
        outcome = np.where(lost, Outcome.INFRASTRUCTURE, data.outcome)
        return data.replace(outcome=outcome.astype(np.int32))


_rollout = jax.jit(
    rollout,
    static_argnums=(1, 3),
    static_argnames=("num_steps", "batch_size", "shared_start"),
)


def test_a_group_that_nobody_answered_is_left_out_and_counted(tmp_path):
    listening = Listening(name="busy")
    run(tmp_path, 2, reflector=listening, play=Broken(1), learn_policy=False)
    for number, occasions in enumerate(listening.heard):
        names = [t.episode for occasion in occasions for t in occasion.trials]
        rows = sorted(int(name.split("/")[1]) for name in names)
        assert rows == [0, 2, 3, 4, 6, 7] and names[0].startswith(f"{number}/")
    for row in read_metrics(tmp_path / "metrics.jsonl"):
        assert row["lost_groups"] == 1 and row["lost_episodes"] == 2
    with pytest.raises(StorageError, match="config/play"):
        run(tmp_path, 4, reflector=listening, play=Broken(2), learn_policy=False)


def test_a_loss_that_is_no_number_stops_before_the_checkpoint(tmp_path):
    params = first_params(POLICY)
    params["decoder"]["embedding"] = params["decoder"]["embedding"] * jnp.nan
    with pytest.raises(TrainingError, match="iteration 0: the loss is nan"):
        run(tmp_path, 2, params=params)
    assert (tmp_path / "nan-batch.safetensors").exists()
    assert not read_metrics(tmp_path / "metrics.jsonl")
    assert not read_ledger(tmp_path / "rules.jsonl")
    assert not [p for p in (tmp_path / "checkpoints").iterdir() if p.name.isdigit()]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"hyper": HYPER.replace(clip_high=0.3)}, r"config/hyper/clip_high"),
        ({"reflector": Busy(shift=1)}, r"config/reflector/shift is 0 there, 1 here"),
        ({"reflector": Busy("other")}, r"config/reflector/name is busy|'busy'"),
        ({"start_pool": START}, r"config/start_pool is sha256:"),
        ({"rules": replace(RULES, references=4)}, r"config/rules/references is 3"),
        ({"rules_until": 3}, r"config/learns/rules_until is None there, 3 here"),
        ({"learn_policy": False}, r"config/learns/policy is True there, False here"),
        ({"task_key": TYPES[::-1]}, r"config/task_key"),
        ({"key": jax.random.key(8)}, r"config/key"),
        ({"params": 2}, r"config/params is 14 arrays"),
    ],
)
def test_another_run_in_the_same_folder_is_refused_by_field(whole, changes, word):
    _, folder = whole
    before = written(folder)
    if "params" in changes:
        # Here, because every worker of the tests imports this file.
        changes = {"params": POLICY.init(jax.random.key(changes["params"]))}
    with pytest.raises(StorageError, match=word):
        run(folder, 6, **changes)
    assert written(folder) == before


@pytest.mark.slow
def test_without_rules_it_is_grpo(tmp_path):
    """The same parameters as `train_policy` gives, up to rounding."""
    rules = RuleSettings(RuleConfig(0))
    policy = replace(
        POLICY,
        config=replace(
            POLICY.config, vocab_size=POLICY.config.vocab_size - sum(POLICY.rule_sizes)
        ),
        rule_sizes=(),
        num_rules=0,
    )
    task = replace(TASK, policy=policy, config=GroupConfig(4))
    trained = run(*(tmp_path / "joint", 3), task=task, rules=rules, learn_rules=False)
    params = first_params(policy)
    wanted, _ = train_policy(
        *(tmp_path / "grpo", KEY, task, HYPER, TASKS, params), iterations=3
    )
    for x, y in zip(
        *map(jax.tree.leaves, (trained.state.train.params, wanted.params)), strict=True
    ):
        np.testing.assert_allclose(x, y, atol=1e-6)


def test_one_run_at_a_time_is_in_a_folder(tmp_path):
    """Also where a caller has locked the folder for more than the training."""
    said = []

    def again(done):
        with pytest.raises(StorageError, match=r"in use by process .*; wait for"):
            run(tmp_path, 1)
        said.append(done)

    with lock_folder(tmp_path):
        run(tmp_path, 1, on_progress=again)
    assert said == [0, 1]
    run(tmp_path, 1)
