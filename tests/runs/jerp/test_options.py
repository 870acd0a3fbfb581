"""What can be chosen in a joint run, and that it changes something."""

from dataclasses import replace
from functools import partial

import jax
import numpy as np
import pytest

from jerp.bridge.llm_reflector import LlmReflector
from jerp.bridge.scripted import ScriptedExecutor
from jerp.envs.rule_language import sentence
from jerp.errors import ConfigError
from jerp.rules.selection import leave_out
from jerp.runs.jerp import learner
from jerp.runs.jerp.iteration import Plan, shown_rules_of
from jerp.runs.jerp.warnings import reflection_warnings
from jerp.runs.policy.iterations import stream_of
from jerp.storage.metrics import read_metrics
from jerp.storage.rule_documents import PoolDocument, PoolRule
from tests.runs.jerp.small_run import (
    HYPER,
    KEY,
    LANGUAGE,
    POLICY,
    RULES,
    TASK,
    TYPES,
    bits,
    run,
)
from tests.runs.jerp.test_loop import Listening

TEXTS = (sentence(LANGUAGE, 1, 2), sentence(LANGUAGE, 2, 3))
TWO = (PoolRule(TEXTS[0], 5), PoolRule(TEXTS[1], 1))
START = PoolDocument(dict.fromkeys(("pick", "look", "clean", "heat", "cool"), TWO))


@pytest.fixture
def shown(monkeypatch):
    """Working sets `[N, R]` of the tasks, an iteration each."""
    found = []

    def watched(play, plan, given, state, working_set, number):
        found.append(np.asarray(working_set))
        return real(play, plan, given, state, working_set, number)

    real = learner.play_and_learn
    monkeypatch.setattr(learner, "play_and_learn", watched)
    return found


def test_the_best_rules_of_its_type_are_in_each_prompt(tmp_path, shown):
    run(tmp_path, 1, start_pool=START)
    wanted = np.where((TYPES == 5)[:, None], -1, [[0, 1]])
    np.testing.assert_array_equal(shown[0], wanted)


def test_other_ways_to_choose_rules(tmp_path, shown):
    def second(pool, book):
        assert book.texts == TEXTS
        chosen = np.tile(np.int32([1, -1]), (len(TYPES), 1))
        return jax.device_put(chosen, pool.active.sharding)

    trained = run(tmp_path / "second", 1, start_pool=START, retrieve=second)
    np.testing.assert_array_equal(shown[0], np.tile([1, -1], (12, 1)))
    pool = jax.device_get(trained.state.pool)
    assert (pool.uses[pool.rule_id == 0] == 0).all()
    assert pool.uses[pool.rule_id == 1].sum() > 0


def test_rules_can_be_left_out_of_prompts(tmp_path, shown):
    rules = replace(RULES, config=replace(RULES.config, rule_dropout=0.5))
    run(tmp_path / "half", 2, start_pool=START, rules=rules, learn_rules=False)
    full = np.where((TYPES == 5)[:, None], -1, [[0, 1]])
    for sets in shown:
        left_out = (sets == -1) & (full >= 0)
        assert 0 < left_out.sum() < (full >= 0).sum()
        np.testing.assert_array_equal(sets[~left_out], full[~left_out])
    assert (shown[0] != shown[1]).any()


def test_what_is_left_out_and_what_is_played_are_drawn_apart():
    """None of the keys that an iteration splits off for its tasks and episodes."""
    rules = replace(RULES.config, rule_dropout=0.5)
    plan, sets = Plan(TASK, rules, True), np.arange(64)[None]
    kept = [shown_rules_of(plan, KEY, np.int32(i), sets) for i in range(3)]
    assert len({tuple(row[0].tolist()) for row in kept}) == 3
    for number in (2, 3):
        for key in jax.random.split(stream_of(KEY, np.int32(0)), number):
            assert (kept[0] != leave_out(key, sets, rate=0.5)).any()


def test_settings_of_files_and_words(tmp_path):
    listening, told = Listening(name="busy"), []
    words = tuple(f"Do task {i}." for i in range(12))
    trained = run(
        *(tmp_path, 3),
        reflector=listening,
        task_words=words,
        count_tokens=len,
        chunk=1,
        keep=None,
        mirrors=[lambda step, numbers: told.append((step, numbers["rules"]))],
    )
    assert all(o.task in words for occasions in listening.heard for o in occasions)
    pool = jax.device_get(trained.state.pool)
    for number, tokens in zip(pool.rule_id.flat, pool.tokens.flat, strict=True):
        assert tokens == (0 if number < 0 else len(trained.book[int(number)]))
    kept = {p.name for p in (tmp_path / "checkpoints").iterdir() if p.name.isdigit()}
    assert kept == {"1", "2", "3"}
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert told == [(row["step"], row["rules"]) for row in rows]


@pytest.mark.slow
def test_a_reference_to_stay_near_to(tmp_path):
    params = jax.jit(POLICY.init)(jax.random.key(1))
    hyper = HYPER.replace(kl_weight=0.5)
    with pytest.raises(ConfigError, match="kl_weight: expected 0 without a reference"):
        run(tmp_path / "none", 1, hyper=hyper)
    near = run(tmp_path / "near", 3, hyper=hyper, reference=params)
    free = run(tmp_path / "free", 3)
    assert bits(near.state.train.params) != bits(free.state.train.params)
    rows = read_metrics(tmp_path / "near" / "metrics.jsonl")
    assert (
        rows[-1]["kl"] > 0
        and "kl" not in read_metrics(tmp_path / "free" / "metrics.jsonl")[-1]
    )


@pytest.mark.slow
def test_parameters_that_are_not_trained(tmp_path):
    policy = replace(POLICY, value=True)
    params = jax.jit(policy.init)(jax.random.key(1))
    frozen = {"decoder": params.pop("decoder")}
    task = replace(TASK, policy=policy)
    trained = run(tmp_path, 2, task=task, params=params, frozen=frozen)
    assert trained.state.train.params.keys() == {"value"}
    assert read_metrics(tmp_path / "metrics.jsonl")[-1]["rules"] > 2


@pytest.mark.slow
def test_a_policy_that_reads_rules_does_without(tmp_path):
    rules = replace(RULES, config=replace(RULES.config, num_rules=0))
    without = {"rules": rules, "learn_rules": False, "language": None}
    run(tmp_path / "none", 2, **without)
    run(tmp_path / "empty", 2, learn_rules=False)
    one, other = (
        read_metrics(tmp_path / name / "metrics.jsonl") for name in ("none", "empty")
    )
    assert [row["success"] for row in one] == [row["success"] for row in other]
    assert one[-1]["rules"] == 0


def test_a_run_in_which_nobody_reflects_says_so(tmp_path):
    """Of all iterations in which rules are learned, and of no other."""
    server = ScriptedExecutor({}, failures=dict.fromkeys(range(100), "error"))
    settings = {"tell": lambda data, _: ["Then."] * len(data.outcome)}
    settings |= {"reflector": LlmReflector(server), "rules_until": 1}
    [warning] = run(tmp_path / "failed", 2, **settings).warnings
    assert warning.startswith(
        "nobody reflected in the last 1 iterations: 4 reflections"
    )
    settings |= {"tell": lambda data, _: [""] * len(data.outcome)}
    [warning] = run(tmp_path / "silent", 1, **settings).warnings
    assert "0 reflections failed, and 4 had no transcript" in warning
    assert run(tmp_path / "fine", 1).warnings == []


def test_one_answer_in_the_last_iterations_is_enough():
    lost = {"lost_groups": 4.0}
    failed = {
        "lost_groups": 1.0,
        "rejected_infrastructure": 2.0,
        "rejected_no_text": 1.0,
    }
    answered = {**failed, "rejected_no_text": 0.0}
    said = partial(reflection_warnings, num_groups=4)
    assert said([]) == said([lost] * 30) == []
    assert said([answered] + [failed] * 19) == [] and said([failed] * 19 + [lost])
    [warning] = said([answered] + [failed] * 20)
    assert "last 20 iterations: 40 reflections failed, and 20 had no" in warning
