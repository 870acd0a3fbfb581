"""What the base of a joint run is cloned from, and how policies are tried."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.joint_rules import evaluation
from experiments.joint_rules.base import (
    all_rules,
    draw_prompts,
    left_to_rules,
    may_be_told,
)
from experiments.joint_rules.config import ARMS, SIZES
from experiments.joint_rules.evaluation import (
    NOISE,
    draw_held,
    following_log_prob,
    played,
)
from experiments.joint_rules.main import FIRST_RULES
from experiments.joint_rules.oracle import (
    OracleMoves,
    injected_moves,
    oracle_moves,
    right_moves,
    wrong_moves,
)
from experiments.joint_rules.places import NUM_RULES, place_named
from experiments.joint_rules.training import wrong_rules
from jerp.envs.rule_language import read_sentence, sentence
from jerp.rollout.demonstrations import demonstrations
from jerp.storage.rule_documents import PoolDocument
from jerp.storage.rule_fields import PoolRule

PLACE = place_named("house")
SMOKE = SIZES["smoke"]


@pytest.fixture(scope="module")
def oracle():
    return oracle_moves(jax.random.key(0), PLACE, SMOKE.oracle_tasks)


def test_the_oracle_of_a_house_makes_the_moves_that_one_would_make(oracle):
    right = right_moves(oracle)
    said = {
        kind: [
            sentence(PLACE.env.language, s, m)
            for s, m in enumerate(right[i].tolist())
            if m
        ]
        for i, kind in enumerate(PLACE.types)
    }
    reach = "When your hand is empty and what is wanted is within reach, "
    assert all(f"{reach}take what is wanted." in texts for texts in said.values())
    unready = "When you hold what is wanted unready somewhere else, go to a"
    assert f"{unready} fridge." in said["cool"]
    assert f"{unready} microwave." in said["heat"]
    # What the oracle did could be done; nothing is said of a step without a situation.
    assert (oracle.possible[oracle.made.sum(axis=0) > 0] > 0).all()
    assert (oracle.made[:, 0] == 0).all() and (right[:, 0] == 0).all()


def test_every_step_of_the_oracle_is_counted_once(oracle):
    """At most a step budget a task, and of every type some."""
    steps = oracle.made.sum(axis=(1, 2))
    assert (steps > 0).all() and steps.sum() <= SMOKE.oracle_tasks * PLACE.horizon
    again = oracle_moves(jax.random.key(0), PLACE, SMOKE.oracle_tasks)
    np.testing.assert_array_equal(again.made, oracle.made)


def test_shares_and_right_moves_of_counts():
    """A type; situations: rare, one move clear, a tie, one by a hair."""
    made = np.zeros((1, 4, 3), np.int32)
    made[0] = [[0, 19, 0], [0, 5, 15], [0, 10, 10], [0, 11, 10]]
    found = OracleMoves(made, made[0])
    np.testing.assert_allclose(found.share[0, 1:, 1], [0.25, 0.5, 11 / 21])
    assert np.isnan(found.share[0, 0]).all()
    np.testing.assert_array_equal(right_moves(found), [[0, 2, 0, 1]])


def test_wrong_moves_are_right_in_another_type():
    right = np.asarray([[0, 1, 2, 0], [0, 1, 3, 4], [0, 1, 0, 5]], np.int32)
    wrong = wrong_moves(right)
    # Of the same move in all types there is no wrong one; none where nothing is right.
    np.testing.assert_array_equal(wrong[:, :2], 0)
    np.testing.assert_array_equal(wrong[:, 2], [3, 2, 0])
    np.testing.assert_array_equal(wrong[:, 3], [0, 5, 4])
    assert left_to_rules(right) == (2, 3)


def test_what_only_held_types_have_right_is_never_told():
    right = np.asarray([[0, 1, 2], [0, 1, 3], [0, 2, 3]], np.int32)
    possible = np.full((3, 4), 20)
    possible[1, 3] = 19
    told = may_be_told(right, possible, (2,))
    # In situation 1 the move 2 is right in the held type alone, 3 is too rare.
    np.testing.assert_array_equal(told[1], [False, True, False, False])
    np.testing.assert_array_equal(told[2], [False, True, True, True])
    assert not told[0].any()


def test_a_house_tells_of_held_types_what_others_have_too(oracle):
    right = right_moves(oracle)
    told = may_be_told(right, oracle.possible, PLACE.held)
    others = [k for k in range(len(PLACE.types)) if k not in PLACE.held]
    secret = 0
    for kind in PLACE.held:
        for situation, move in enumerate(right[kind].tolist()):
            if move and move not in right[others, situation]:
                assert not told[situation, move]
                secret += 1
    assert secret >= 2 and told.sum() > 50


def test_prompts_have_rules_of_different_situations_that_may_be_told():
    rng = np.random.default_rng(0)
    told = rng.random((12, 6)) < 0.5
    told[0] = told[3] = False
    right = rng.integers(1, 6, (3, 12)).astype(np.int32)
    types = rng.integers(0, 3, 4096)
    prompts = np.asarray(draw_prompts(jax.random.key(0), types, right, told))
    assert prompts.shape == (4096, NUM_RULES) and prompts.dtype == np.int32
    pairs = all_rules((12, 6))[prompts]
    shown = prompts >= 0
    assert told[pairs[..., 0], pairs[..., 1]][shown].all()
    for row, used in zip(pairs[..., 0], shown, strict=True):
        assert len(set(row[used])) == used.sum()
    number = shown.sum(axis=1)
    assert (number == 0).mean() == pytest.approx(0.2, abs=0.03)
    # The others have one to all places, each number as often.
    shares = [(number == n).mean() for n in range(1, NUM_RULES + 1)]
    np.testing.assert_allclose(shares, 0.1, atol=0.02)
    # What may be told and is right comes a bit more often than by chance.
    best = right[types[:, None], pairs[..., 0]]
    could = shown & told[pairs[..., 0], best]
    chance = 1 / told.sum(axis=1)[pairs[..., 0]][could]
    expected = (0.15 + 0.85 * chance).mean()
    found = (pairs[..., 1] == best)[could].mean()
    assert found == pytest.approx(expected, abs=0.015)


def test_rules_by_number_are_all_pairs():
    rules = all_rules((2, 3))
    assert rules.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]


@pytest.fixture(scope="module")
def tried():
    held = draw_held(jax.random.key(1), PLACE, SMOKE.held_out, "seen")
    return held, jax.jit(PLACE.policy().init)(jax.random.key(2))


def test_the_same_is_played_with_the_same_rules(tried):
    held, params = tried
    rules = all_rules(PLACE.rule_sizes)
    sets = np.tile(np.arange(NUM_RULES, dtype=np.int32) + 40, (SMOKE.held_out, 1))
    one, again = (played(PLACE, held, params, rules, sets, samples=1) for _ in range(2))
    assert one["success"].shape == (SMOKE.held_out, 1)
    np.testing.assert_array_equal(one["score"], again["score"])
    # From a checkpoint or just made: one program, and the same numbers.
    moved = jax.device_put(params, jax.devices()[0])
    before = evaluation._played._cache_size()
    other = played(PLACE, held, moved, rules[:70], sets, samples=1)
    assert evaluation._played._cache_size() == before
    np.testing.assert_array_equal(one["score"], other["score"])


def test_episodes_of_a_task_are_in_its_row_and_success_is_the_outcome(monkeypatch):
    """What is worth something, as half a purchase is, need not be a success."""

    def rollout(*_, batch_size, working_set, **__):
        score = jnp.arange(batch_size, dtype=jnp.float32)
        outcome = jnp.where(score == 4, 1, 2)
        return SimpleNamespace(outcome=outcome, score=score)

    monkeypatch.setattr(evaluation, "rollout", rollout)
    tasks = {"task": jnp.zeros(3, jnp.int32)}
    held = evaluation.Held(jax.random.key(0), tasks, np.zeros(3, np.int32))
    found = played(PLACE, held, {}, np.zeros((1, 2), np.int32), None, samples=2)
    np.testing.assert_array_equal(found["score"], [[0, 3], [1, 4], [2, 5]])
    np.testing.assert_array_equal(np.argwhere(found["success"]), [[1, 1]])


def test_how_probable_moves_are_untold(tried):
    """Against loops over steps and actions."""
    held, params = tried
    found = following_log_prob(PLACE, held, params)
    show = jax.jit(
        lambda key: demonstrations(
            *(key, PLACE.env, held.tasks),
            num_steps=PLACE.horizon,
            batch_size=SMOKE.held_out,
            noise=NOISE,
        )
    )
    data = jax.device_get(show(jax.random.clone(held.key)))
    table = {**params, "rules": np.zeros((1, 2), np.int32)}
    log_probs = np.asarray(jax.jit(PLACE.policy().log_probs)(table, data)[0])
    move_of = jax.jit(jax.vmap(PLACE.env.language.move, (0, None, None)))
    total = np.zeros((len(PLACE.types), *PLACE.rule_sizes))
    count = np.zeros_like(total)
    actions = np.arange(PLACE.env.num_actions)
    for row, step in np.argwhere(data.mask):
        task = jax.tree.map(lambda x, row=row: np.asarray(x)[row], held.tasks)
        situation = data.observation[row, step, -1]
        moves = np.asarray(move_of(actions, situation, task))
        for move in range(1, PLACE.rule_sizes[1]):
            makes = data.legal[row, step] & (moves == move)
            if makes.any():
                cell = held.kinds[row], situation, move
                total[cell] += np.log(np.exp(log_probs[row, step][makes]).sum())
                count[cell] += 1
    with np.errstate(invalid="ignore"):
        expected = total / count
    np.testing.assert_allclose(found[..., 1:], expected[..., 1:], rtol=1e-4)
    assert np.isfinite(expected).sum() > 20


def test_injected_rules_are_wrong_and_as_many_as_asked(oracle):
    right, injected = right_moves(oracle), injected_moves(oracle, 2)
    assert ((injected > 0).sum(axis=1) == 2).all()
    where = np.nonzero(injected)
    assert (injected[where] != right[where]).all() and (right[where] > 0).all()
    # What a type has of its own comes first, and says what another type has right.
    heat = PLACE.types.index("heat")
    of_others = np.flatnonzero(wrong_moves(right)[heat])
    shared = set(np.flatnonzero(injected[heat])) & set(of_others)
    assert len(shared) == min(2, len(of_others)) > 0


def test_rules_that_a_smoke_run_begins_with_are_right(oracle):
    right = right_moves(oracle)
    for kind, rules in FIRST_RULES.pools.items():
        for rule in rules:
            pair = read_sentence(PLACE.env.language, rule.text)
            assert pair is not None
            assert right[PLACE.types.index(kind), pair[0]] == pair[1]


def test_an_arm_with_wrong_rules_begins_with_them(oracle):
    mine = PoolDocument({"pick": (PoolRule("When it rains, stay in.", 3),)})
    pools = wrong_rules(PLACE, ARMS["jerp-misled"], oracle, mine).pools
    assert {kind: len(rules) for kind, rules in pools.items()} == {
        kind: 2 + (kind == "pick") for kind in PLACE.types
    }
    assert {rule.score for rules in pools.values() for rule in rules} == {2.0, 3.0}
