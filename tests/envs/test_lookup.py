"""`lookup`: its promises, its oracle's chances in closed form, questions by hand."""

import doctest
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.envs import lookup_tasks as tasks_module
from jerp.envs import lookup_text, lookup_tokens
from jerp.envs.checks import check_environment
from jerp.envs.lookup import Lookup
from jerp.envs.lookup_tasks import (
    NUM_GROUPS,
    LookupKind,
    LookupSize,
    lookup_tasks,
)
from jerp.envs.lookup_text import describe, describe_action, describe_task
from jerp.errors import ConfigError, JerpError
from jerp.typing import Outcome

SMALL = LookupSize(num_entities=32, num_values=48, num_paragraphs=6, max_lookups=5)
SPLITS = ("train", "seen", "unseen")


@partial(jax.jit, static_argnums=(0,))
def oracle_run(env, tasks, seed):
    """Steps of the oracle's episodes, `[N, 6, ...]`."""

    def play(key, params):
        def body(state, t):
            step_key = jax.random.fold_in(steps_key, t)
            return env.step(step_key, state, env.oracle(state, params), params)

        start_key, steps_key = jax.random.split(key)
        start, _ = env.reset(start_key, params)
        return jax.lax.scan(body, start, jnp.arange(6))[1]

    keys = jax.random.split(jax.random.key(seed), tasks.kind.shape[0])
    return jax.vmap(play)(keys, tasks)


reset = jax.jit(Lookup.reset, static_argnums=0)
step = jax.jit(Lookup.step, static_argnums=0)


def started(env, tasks, row, seed=0):
    params = jax.tree.map(lambda x: x[row], tasks)
    state, now = reset(env, jax.random.key(seed), params)
    return state, now, params


@pytest.mark.parametrize("forced", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_world_keeps_its_promises(forced):
    size = LookupSize(num_entities=32, num_values=32)
    env = Lookup(size, forced=forced, observation="tokens" if forced else "fields")
    tasks = lookup_tasks(jax.random.key(0), 300, size=size, failure=0.0)
    check_environment(
        env,
        tasks,
        jax.random.key(1),
        num_steps=SMALL.max_lookups + 3,
        counters=(lookup_tokens.LEFT_FIELD,),
    )


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_the_oracle_succeeds_as_often_as_its_chances_say(limit):
    env, p, number = Lookup(SMALL), 0.25, 6000
    tasks = lookup_tasks(jax.random.key(2), number, size=SMALL, limit=limit, failure=p)
    now = oracle_run(env, tasks, 3)
    outcome = np.asarray(now.outcome[:, -1])
    assert np.all(np.asarray(now.terminated[:, -1]))
    none, one = p**limit, limit * (1 - p) * p ** (limit - 1)
    values = SMALL.num_values
    expected = {
        LookupKind.DIRECT: 1.0,
        # Of two different values the greatest is one with probability 2 / V.
        LookupKind.COMPARISON: 1 - none - one + one / 2 + none * 2 / values,
        # Without the bridge's paragraph, one of V values, or of those but one.
        LookupKind.BRIDGE: 1 - none - one + one / (values - 1) + none / values,
    }
    for kind, chance in expected.items():
        rate = np.mean(outcome[kind::3] == Outcome.SUCCESS)
        assert abs(rate - chance) <= 4 * np.sqrt(chance * (1 - chance) / (number / 3))


def test_without_failures_the_oracle_needs_as_many_lookups_as_the_kind_says():
    env = Lookup(SMALL)
    tasks = lookup_tasks(
        jax.random.key(4), 6000, size=SMALL, limit=2, failure=0.0, split="unseen"
    )
    now = oracle_run(env, tasks, 5)
    steps = np.argmax(np.asarray(now.terminated), axis=1) + 1
    np.testing.assert_array_equal(steps, np.tile([1, 3, 3], 2000))
    np.testing.assert_array_equal(np.asarray(now.reward).sum(1), 1.0)
    assert np.all(np.asarray(now.score[:, -1]) == 1)


def test_a_bridge_by_hand():
    env, keys = Lookup(SMALL), jax.random.split(jax.random.key(1), 5)
    tasks = lookup_tasks(jax.random.key(0), 3, size=SMALL, limit=3, failure=0.0)
    state, now, params = started(env, tasks, LookupKind.BRIDGE)
    entity, value = np.asarray(state.entity), np.asarray(state.value)
    assert int(state.link[0]) == 1
    np.testing.assert_array_equal(state.asked, [entity[0], -1])
    kind, only = 1 + LookupKind.BRIDGE, 0
    first = [kind, only, 1 + entity[0], 0, 0, 0, 0, 0, 0, 0, 4]
    np.testing.assert_array_equal(now.observation, first)
    absent = next(i for i in range(32) if i not in entity)
    state, now = step(env, keys[0], state, jnp.int32(absent), params)
    np.testing.assert_array_equal(now.observation[6:], [1 + absent, 3, 0, 0, 3])
    state, now = step(env, keys[1], state, jnp.int32(entity[0]), params)
    seen = [1 + entity[0], 1, 1 + entity[1], 1 + value[0], 2]
    np.testing.assert_array_equal(now.observation[6:], seen)
    left = lookup_tokens.vocabulary(SMALL)[int(env.observe(state, params).tokens[2])]
    assert left == "1 left"
    right = jnp.int32(32 + value[1])
    _, wrong = step(env, keys[2], state, right - 1, params)
    assert (wrong.reward, wrong.outcome) == (0, Outcome.FAILURE)
    state, now = step(env, keys[3], state, right, params)
    assert (now.reward, now.score, now.outcome) == (1, 1, Outcome.SUCCESS)
    assert now.terminated and not now.truncated and not now.legal.any()
    assert step(env, keys[4], state, right, params)[1].reward == 0


@pytest.mark.parametrize("forced", [False, True])
def test_one_search_too_many_is_cut_off_or_not_to_be_had(forced):
    env = Lookup(SMALL, forced=forced)
    tasks = lookup_tasks(
        jax.random.key(0), 3, size=SMALL, limit=0, failure=0.0, announced=False
    )
    state, now, params = started(env, tasks, LookupKind.COMPARISON)
    assert now.observation[lookup_tokens.LEFT_FIELD] == 0
    assert bool(now.legal[:32].any()) is not forced and now.legal[32:].all()
    _, now = step(env, jax.random.key(1), state, state.entity[0], params)
    assert now.truncated and not now.terminated and not now.legal.any()
    assert now.outcome == Outcome.TRUNCATED
    assert now.observation[6] == 0, "one search too many shows nothing"


def test_what_can_be_looked_up_is_drawn_anew_and_fits_the_question():
    env = Lookup(SMALL)
    tasks = lookup_tasks(jax.random.key(0), 30, size=SMALL)
    rows = [(started(env, tasks, i, i), started(env, tasks, i, 99)) for i in range(30)]
    for (state, _, params), (again, _, _) in rows:
        entity, asked = np.asarray(state.entity), np.asarray(state.asked)
        assert (entity != np.asarray(again.entity)).any()
        assert len(set(entity)) == len(set(np.asarray(state.value))) == 6
        assert (np.asarray(state.link) != np.arange(6)).all()
        names = entity[:2] if params.kind == LookupKind.BRIDGE else asked
        np.testing.assert_array_equal(names % NUM_GROUPS, params.groups)
        assert names[0] != names[1]
        if params.kind == LookupKind.COMPARISON:
            np.testing.assert_array_equal(asked, entity[:2])


def test_splits_share_no_form_and_all_groups_are_met_in_each():
    forms = {}
    for split in SPLITS:
        tasks = lookup_tasks(jax.random.key(0), 2000, split=split)
        rows = np.column_stack([tasks.kind, tasks.direction, tasks.groups])
        forms[split] = set(map(tuple, rows.tolist()))
        for kind in LookupKind:
            of_kind = rows[rows[:, 0] == kind]
            for place in (2, 3):
                assert set(of_kind[:, place]) == set(range(NUM_GROUPS)), (split, kind)
    assert sum(map(len, forms.values())) == len(set.union(*forms.values()))
    assert len(set.union(*forms.values())) == 5 * NUM_GROUPS**2
    pairs = {split: {row[2:] for row in rows} for split, rows in forms.items()}
    assert not pairs["unseen"] & (pairs["train"] | pairs["seen"])


def test_forms_repeat_only_when_all_have_come():
    tasks = lookup_tasks(jax.random.key(7), 150, split="unseen")
    rows = np.column_stack([tasks.kind, tasks.direction, tasks.groups])
    assert len({tuple(row) for row in rows.tolist()}) == 150


def test_tokens_are_the_words_of_the_question_and_of_the_actions():
    assert 190 <= len(Lookup().vocabulary) <= 220
    env = Lookup(SMALL)
    words = env.vocabulary
    tasks = lookup_tasks(jax.random.key(0), 3, size=SMALL, failure=0.0)
    state, _, params = started(env, tasks, LookupKind.DIRECT)
    asked = ("", "smaller", "larger")[int(params.direction)]
    first, other = (lookup_tokens.value_name(int(x)) for x in state.asked)
    question = [words[t] for t in env.observe(state, params).tokens]
    assert question == ["direct", asked, first, other, "5 left"]
    actions = np.asarray(env.action_tokens(params))
    assert [words[t] for t in actions[0]] == ["search", "Albo", "end"]
    assert [words[t] for t in actions[32]] == ["answer", "1800", "end"]


def test_text_says_what_is_known():
    env = Lookup(SMALL)
    tasks = lookup_tasks(jax.random.key(0), 3, size=SMALL, limit=3, failure=0.0)
    questions = []
    for row in range(3):
        state, _, params = started(env, tasks, row)
        questions.append(describe_task(state, params))
        assert describe(state, params) == (
            "Nothing has been looked up. 3 searches are left."
        )
    assert "Which of 18" in questions[0] and "Who is " in questions[1]
    name = describe_action(int(state.entity[0]), SMALL).removeprefix("search for ")
    assert f"teacher of {name} born" in questions[2]
    state, _ = step(env, jax.random.key(1), state, state.entity[0], params)
    year = lookup_tokens.value_name(int(state.value[0]))
    teacher = lookup_tokens.entity_name(int(state.entity[1]))
    assert describe(state, params) == (
        f"{name}, a pupil of {teacher}, was born in {year}. 2 searches are left."
    )
    failing, hidden = jnp.float32(1), jnp.zeros((), bool)
    params = params.replace(failure=failing, announced=hidden)
    state, _ = step(env, jax.random.key(2), state, state.entity[1], params)
    assert describe(state, params) == f"The search for {teacher} failed."
    assert "at most" not in describe_task(state, params)


@pytest.mark.parametrize("module", [tasks_module, lookup_tokens, lookup_text])
def test_examples(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def test_refusals_name_the_argument():
    key = jax.random.key(0)
    with pytest.raises(ConfigError, match="limit: expected 0 to 5, got 6"):
        lookup_tasks(key, 3, limit=6)
    with pytest.raises(ConfigError, match="failure: expected 0 <= failure < 1, got 1"):
        lookup_tasks(key, 3, failure=1)
    with pytest.raises(JerpError, match="split 'sen'; did you mean 'seen'"):
        lookup_tasks(key, 3, split="sen")
    with pytest.raises(ConfigError, match="num_values: expected a multiple of 16"):
        LookupSize(num_values=50)
    with pytest.raises(ConfigError, match="num_paragraphs: expected 2 to 30, got 1"):
        LookupSize(num_paragraphs=1)
