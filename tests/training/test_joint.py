"""Joint steps: by hand, as their parts one after another, and with no rules as GRPO."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, ShapeError, UnknownNameError
from jerp.rules.edits import EditOp, RuleEdits, apply_edits
from jerp.rules.pool import init_pool, record_use
from jerp.rules.pruning import prune
from jerp.training.group import make_group_step
from jerp.training.group_settings import GroupConfig, GroupHyper
from jerp.training.joint import JointState, RuleConfig, make_joint_step
from jerp.trajectory import select
from jerp.typing import Outcome
from tests.rules import pools
from tests.training.cue_world import CueTable, play
from tests.training.episodes import random_trajectory

RULES = RuleConfig(num_rules=2, capacity=3, max_ops=3, max_merged=2)
SLOTS = RULES.slots(num_groups=2)
STEP = make_joint_step(GroupConfig(2), CueTable(), RULES)
ADD, EDIT, UP, DOWN, MERGE = EditOp


def edits_of(*groups):
    """Of tuples (op, target, rule_id, members) a group, padded with what poisons."""
    found = np.full((len(groups), RULES.max_ops, 6), 2**30, np.int32)
    valid = np.zeros(found.shape[:2], bool)
    for g, group in enumerate(groups):
        for e, (op, target, new, members) in enumerate(group):
            members = (*members, -1, -1)[:2]
            found[g, e] = (op, target, new, 5, *members)
            valid[g, e] = True
    op, target, new, tokens = (jnp.asarray(found[..., i]) for i in range(4))
    return RuleEdits(op, target, new, tokens, jnp.asarray(found[..., 4:]), valid)


def pool_of(*rows):
    """Of lists of (rule id, score) a task key."""
    slots = [
        {c: (score, rule_id, 0, 0, 0, 5) for c, (rule_id, score) in enumerate(row)}
        for row in rows
    ]
    return pools.pool_of(*slots, capacity=SLOTS)


def episodes(*outcomes, working_set=None):
    """A row for each outcome."""
    data = select(random_trajectory(batch=12), np.arange(len(outcomes)))
    outcome = np.array(outcomes, np.int32)
    return data.replace(outcome=outcome, working_set=working_set)


def rules_of(pool, key):
    """Of a task key, by id: score, uses, wins."""
    row = [np.asarray(x)[key] for x in (pool.score, pool.uses, pool.wins)]
    ids = np.asarray(pool.rule_id)[key]
    active = np.asarray(pool.active)[key]
    return {
        int(i): tuple(x[c].item() for x in row) for c, i in enumerate(ids) if active[c]
    }


revise = jax.jit(STEP.revise)
WON, FAILED, LOST = Outcome.SUCCESS, Outcome.FAILURE, Outcome.INFRASTRUCTURE


def test_an_iteration_by_hand():
    """Rows 0, 2 and 4 are of the first group, of key 1; the others of key 0."""
    pool = pool_of([(3, 2.0)], [(7, 2.0), (8, 1.0)])
    sets = jnp.array([[7, 8], [3, -1]] * 3)
    data = episodes(WON, FAILED, FAILED, FAILED, LOST, WON, working_set=sets)
    key = jnp.array([1, 0] * 3)
    edits = edits_of(
        [(ADD, -1, 9, ()), (DOWN, 8, -1, ())], [(UP, 3, -1, ()), (UP, 8, -1, ())]
    )
    pool, counts, pruned = revise(pool, key, data, edits, 6)
    # Key 1 lost 8 with its last point, key 0 never had it.
    assert rules_of(pool, 0) == {3: (3.0, 3, 1)}
    assert rules_of(pool, 1) == {7: (2.0, 2, 1), 9: (2.0, 0, 0)}
    assert counts.applied.tolist() == [[1, 0, 0, 1, 0], [0, 0, 1, 0, 0]]
    assert counts.dropped.tolist() == [[0] * 5, [0, 0, 1, 0, 0]]
    assert counts.took_effect.tolist() == [[True, True, False], [True, False, False]]
    assert sorted({*pruned[0].tolist()}) == [-1]
    assert sorted({*pruned[1].tolist()}) == [-1, 8]
    assert int(pool.born[1][pool.rule_id[1] == 9][0]) == 6


def test_groups_of_one_key_follow_each_other():
    pool = pool_of([(1, 2.0)])
    data, key = episodes(WON, WON), jnp.zeros(2, jnp.int32)
    edits = edits_of([(EDIT, 1, 2, ())], [(UP, 1, -1, ()), (ADD, -1, 2, ())])
    pool, counts, _ = revise(pool, key, data, edits, 0)
    # What the first group rewrote the second one no longer finds.
    assert rules_of(pool, 0) == {2: (3.0, 0, 0)}
    assert counts.took_effect.tolist() == [[True, False, False], [False] * 3]
    assert counts.dropped.sum() == 2


def test_a_group_that_nobody_answered_changes_nothing():
    pool = pool_of([(1, 2.0)], [(1, 2.0)])
    sets = jnp.full((4, 2), 1)
    data = episodes(LOST, FAILED, LOST, WON, working_set=sets)
    edits = edits_of([(DOWN, 1, -1, ())], [(UP, 1, -1, ())])
    pool, counts, _ = revise(pool, jnp.array([0, 1, 0, 1]), data, edits, 0)
    assert rules_of(pool, 0) == {1: (2.0, 0, 0)}
    assert rules_of(pool, 1) == {1: (3.0, 2, 1)}
    assert counts.applied.sum() == 1 and counts.dropped.sum() == 0


def test_a_pool_is_full_as_it_was_reflected_on():
    """Three rules are all that stay; a vote against costs three then, else one."""
    full = pool_of([(1, 5.0), (2, 5.0), (3, 4.0)])
    data, key = episodes(FAILED, FAILED), jnp.zeros(2, jnp.int32)
    edits = edits_of([(DOWN, 1, -1, ()), (DOWN, 3, -1, ())], [(DOWN, 2, -1, ())])
    pool, *_ = revise(full, key, data, edits, 0)
    assert {k: v[0] for k, v in rules_of(pool, 0).items()} == {1: 2.0, 2: 2.0, 3: 1.0}
    pool, *_ = revise(pool_of([(1, 5.0), (2, 5.0)]), key, data, edits, 0)
    assert {k: v[0] for k, v in rules_of(pool, 0).items()} == {1: 4.0, 2: 4.0}
    # Another group's rule makes it full, and that group's vote did not know.
    grows = edits_of([(ADD, -1, 7, ())], [(DOWN, 1, -1, ())])
    pool, *_ = revise(pool_of([(1, 5.0), (2, 5.0)]), key, data, grows, 0)
    assert {k: v[0] for k, v in rules_of(pool, 0).items()} == {1: 4.0, 2: 5.0, 7: 2.0}
    # New rules find room, and the lowest go.
    edits = edits_of([(ADD, -1, 7, ()), (DOWN, 3, -1, ())], [(ADD, -1, 8, ())])
    pool, counts, _ = revise(full, key, data, edits, 1)
    assert {k: v[0] for k, v in rules_of(pool, 0).items()} == {1: 5.0, 2: 5.0, 7: 2.0}
    assert counts.took_effect.tolist() == [[True, True, False], [True, False, False]]


def test_whoever_adds_first_has_no_advantage():
    """There is room for all that two groups add to one pool; the best three stay."""
    pool = pool_of([(1, 2.0), (2, 2.0), (3, 1.0)])
    adds = [[(ADD, -1, 10 + 3 * g + e, ()) for e in range(3)] for g in range(2)]
    data, key = episodes(FAILED, FAILED), jnp.zeros(2, jnp.int32)
    pool, counts, _ = revise(pool, key, data, edits_of(*adds), 4)
    assert counts.applied[:, ADD].tolist() == [3, 3] and counts.dropped.sum() == 0
    assert sorted(rules_of(pool, 0)) == [1, 2, 10]
    assert int(pool.active.sum()) == RULES.capacity


def test_a_merged_rule_has_the_uses_of_the_episodes_before():
    pool = pool_of([(1, 2.0), (2, 3.0)])
    data = episodes(WON, FAILED, working_set=jnp.array([[1, 2], [2, -1]]))
    edits = edits_of([(MERGE, -1, 5, (1, 2))], [])
    pool, *_ = revise(pool, jnp.zeros(2, jnp.int32), data, edits, 0)
    assert rules_of(pool, 0) == {5: (3.0, 3, 2)}


def random_edits(key, groups):
    ops, ids, other, valid = (
        jax.random.randint(k, (groups, RULES.max_ops), 0, n)
        for k, n in zip(jax.random.split(key, 4), (5, 6, 6, 4), strict=True)
    )
    members = jnp.stack([ids, other], axis=-1)
    return RuleEdits(ops, ids, other, ids + 1, members, valid > 0)


one_group = jax.jit(apply_edits, static_argnames="merge")


@pytest.mark.parametrize(
    "compiled", [True, pytest.param(False, marks=pytest.mark.slow)]
)
def test_it_is_its_parts_one_after_another(compiled):
    """Of pools that grow over three iterations of four groups and two keys."""
    rules = RuleConfig(
        2, capacity=4, max_ops=3, pool_tokens=12, merge="sum", upvote=0.5
    )
    step = make_joint_step(GroupConfig(4), CueTable(), rules)
    key = jnp.array([0, 1, 1, 0] * 2)
    outcomes = np.array([WON, LOST, FAILED, WON, FAILED, LOST, LOST, WON])
    pool = want = init_pool(2, rules.slots(4))
    run = jax.jit(step.revise) if compiled else step.revise
    for number in range(3):
        sets = step.working_set(pool, key)
        data = episodes(*outcomes, working_set=sets)
        edits = random_edits(jax.random.key(number), 4)
        pool, counts, _ = run(pool, key, data, edits, jnp.int32(number))
        full = np.asarray(want.active.sum(axis=1)) >= 4
        valid = outcomes != LOST
        want = record_use(want, key, sets, outcomes == WON, jnp.asarray(valid))
        for g in (0, 2, 3):
            k = int(key[g])
            want, found = one_group(
                want,
                key[g],
                jax.tree.map(lambda x, g=g: x[g], edits),
                step=number,
                merge="sum",
                upvote=0.5,
                full=jnp.asarray(full[k]),
            )
            np.testing.assert_array_equal(counts.applied[g], found.applied)
            np.testing.assert_array_equal(counts.dropped[g], found.dropped)
        assert not counts.applied[1].any() and not counts.took_effect[1].any()
        want = prune(want, capacity=4, token_budget=12)
        for x, y in zip(jax.tree.leaves(pool), jax.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(x, y)
    assert pool.active.sum() > 2


@pytest.mark.slow
def test_runs_with_other_seeds_share_a_compilation():
    stacked = jax.tree.map(
        lambda *x: jnp.stack(x), pool_of([(1, 2.0)]), pool_of([(2, 2.0)])
    )
    data, key = episodes(WON, FAILED), jnp.zeros(2, jnp.int32)
    edits = edits_of([(UP, 1, -1, ())], [(UP, 2, -1, ())])
    both, counts, _ = jax.vmap(STEP.revise, (0, None, None, None, None))(
        stacked, key, data, edits, 0
    )
    one, other = (jax.tree.map(lambda x, i=i: x[i], both) for i in (0, 1))
    assert rules_of(one, 0) == {1: (3.0, 0, 0)}
    assert rules_of(other, 0) == {2: (3.0, 0, 0)}
    assert counts.dropped.sum() == 2


def test_learning_is_the_group_step_and_leaves_the_pool():
    policy, hyper = CueTable(), GroupHyper(learning_rate=0.1)
    config = GroupConfig(2)
    step = make_joint_step(config, policy, RULES)
    params = jax.jit(policy.init)(jax.random.key(0))
    data = play(jax.random.key(1), params, policy=policy, groups=2)
    train = step.init(jax.random.key(2), hyper, params)
    pool = pool_of([(1, 2.0)])
    state, metrics = jax.jit(step.learn)(JointState(train, pool), hyper, data)
    want, same = jax.jit(make_group_step(config, policy)[1])(train, hyper, data)
    got = (state.train.params, state.train.opt_state, metrics)
    for x, y in zip(
        *map(jax.tree.leaves, (got, (want.params, want.opt_state, same))), strict=True
    ):
        np.testing.assert_array_equal(x, y)
    assert not np.array_equal(want.params["logits"], params["logits"])
    assert rules_of(state.pool, 0) == {1: (2.0, 0, 0)}
    assert make_joint_step(config, policy, RULES, learn_policy=False).learn is None


def test_working_sets_are_the_best_that_fit():
    pool = pool_of([(1, 2.0), (4, 3.0)], [])
    key = jnp.array([1, 0])
    assert STEP.working_set(pool, key).tolist() == [[-1, -1], [4, 1]]
    few = RuleConfig(num_rules=2, capacity=3, max_ops=3, prompt_tokens=9)
    step = make_joint_step(GroupConfig(2), CueTable(), few)
    assert step.working_set(pool, key).tolist() == [[-1, -1], [4, -1]]
    none = make_joint_step(GroupConfig(2), CueTable(), RuleConfig(num_rules=0))
    assert none.working_set(pool, key) is None


def test_one_trace_a_shape():
    traces = []

    @jax.jit
    def run(*arguments):
        traces.append(None)
        return STEP.revise(*arguments)

    data, key = episodes(WON, FAILED), jnp.zeros(2, jnp.int32)
    pool = init_pool(1, SLOTS)
    for number, edits in enumerate(
        (edits_of([(ADD, -1, 1, ())], []), edits_of([(UP, 1, -1, ())] * 3, []))
    ):
        pool, *_ = run(pool, key, data, edits, number)
    assert len(traces) == 1 and rules_of(pool, 0)[1][0] == 5.0


@pytest.mark.parametrize(
    ("settings", "error", "word"),
    [
        ({"num_rules": -1}, ConfigError, "num_rules: expected at least 0, got -1"),
        (
            {"num_rules": 21},
            ConfigError,
            "num_rules: expected at most the capacity, 20",
        ),
        (
            {"num_rules": 2.5},
            ConfigError,
            "num_rules: expected a whole number, at least",
        ),
        (
            {"capacity": "8"},
            ConfigError,
            "capacity: expected a whole number, .*got '8'",
        ),
        ({"pool_tokens": -1}, ConfigError, "pool_tokens: expected at least 0, or None"),
        ({"capacity": 10**12}, ConfigError, "capacity: expected less than 2147483648"),
        ({"initial_score": 0.0}, ConfigError, r"initial_score: .* min_score, 0\.0, .*"),
        (
            {"min_score": 2.0},
            ConfigError,
            "initial_score: expected more than min_score",
        ),
        (
            {"initial_score": "2"},
            ConfigError,
            "initial_score: expected a finite number",
        ),
        ({"rule_dropout": None}, ConfigError, "rule_dropout: expected in .*, got None"),
        ({"max_ops": 0}, ConfigError, "max_ops: expected at least 1, got 0"),
        ({"max_merged": 1}, ConfigError, "max_merged: expected at least 2, got 1"),
        ({"upvote": float("nan")}, ConfigError, "upvote: expected a finite number"),
        ({"full_downvote": float("nan")}, ConfigError, "full_downvote: expected a fin"),
        ({"min_score": float("inf")}, ConfigError, "min_score: expected a finite"),
        ({"upvote": -1.0}, ConfigError, "upvote: expected at least 0, got -1"),
        ({"full_downvote": -3.0}, ConfigError, "full_downvote: expected at least 0"),
        ({"edit_bonus": -1.0}, ConfigError, "edit_bonus: expected at least 0"),
        ({"merge": "mean"}, UnknownNameError, "merge"),
        ({"order": "random"}, UnknownNameError, "order"),
    ],
)
def test_settings_that_cannot_be_meant(settings, error, word):
    with pytest.raises(error, match=word):
        RuleConfig(**{"num_rules": 4, **settings})


def test_groups_that_do_not_divide_the_episodes_are_refused():
    data = episodes(WON, FAILED, WON)
    with pytest.raises(ShapeError, match="edits: expected groups that divide 3"):
        STEP.revise(
            init_pool(1, SLOTS),
            jnp.zeros(3, jnp.int32),
            data,
            edits_of([], []),
            0,
        )
