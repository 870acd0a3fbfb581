"""Policy-gradient steps: by hand, in parts, and whatever is in the padding."""

import itertools
from dataclasses import replace
from functools import cache

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.advantages.group import group_relative_advantages
from jerp.errors import ConfigError, UnknownNameError
from jerp.training.group import make_group_step
from jerp.training.group_settings import (
    ALGORITHMS,
    GroupConfig,
    GroupHyper,
    algorithm,
)
from jerp.typing import Outcome
from tests.training.cue_world import POLICY, Table, play

HYPER = GroupHyper(learning_rate=0.05)
CONFIG = GroupConfig(num_groups=4)


TABLE = Table()
"""Compiles in a tenth of the time that a decoder takes."""


@cache
def params(policy=TABLE):
    return jax.jit(policy.init)(jax.random.key(0))


@cache
def episodes(seed=1):
    data = play(jax.random.key(seed), params(POLICY))
    return data.replace(seed=jnp.arange(16))


@cache
def functions(config, policy=TABLE):
    init, step = make_group_step(config, policy)
    return init, jax.jit(step)


def stepped(config=CONFIG, hyper=HYPER, data=None, policy=TABLE, **more):
    init, step = functions(config, policy)
    state = init(jax.random.key(2), hyper, params(policy))
    return step(state, hyper, episodes() if data is None else data, **more)


def changes(state, policy=TABLE):
    before, after = (jax.tree.leaves(x) for x in (params(policy), state.params))
    return [np.asarray(y - x) for x, y in zip(before, after, strict=True)]


def test_the_gradient_is_that_of_the_definition():
    """On policy: - sum_t A_t grad log pi_t / number of steps; Adam keeps its sign."""
    data = episodes()
    returns = jnp.sum(data.reward, axis=1)
    everyone = jnp.ones(16, bool)
    advantage = group_relative_advantages(
        returns, data.group_id, everyone, num_groups=4
    ).value

    def loss(p):
        log_prob = POLICY.evaluate(p, data).log_prob
        return -jnp.mean(advantage[:, None] * log_prob)

    gradient = jax.jit(jax.grad(loss))(params(POLICY))
    norm = np.sqrt(sum(float((g**2).sum()) for g in jax.tree.leaves(gradient)))
    state, metrics = stepped(policy=POLICY)
    assert float(metrics["grad_norm"]) == pytest.approx(norm, rel=1e-4)
    assert float(metrics["loss"]) == pytest.approx(0, abs=1e-6)  # every ratio is 1
    assert 0 <= float(metrics["sampler_gap"]) < 1e-4
    moved = changes(state, POLICY)
    for g, change in zip(jax.tree.leaves(gradient), moved, strict=True):
        large = np.abs(g) > 1e-6
        assert (np.sign(change[large]) == -np.sign(np.asarray(g)[large])).all()
    assert int(state.step) == 1
    assert float(metrics["return_mean"]) == pytest.approx(float(returns.mean()))


@pytest.mark.parametrize(
    ("advantage", "aggregation"),
    [("group", "sequence_mean_token_mean"), ("gae", "token_mean")],
)
def test_parts_of_a_minibatch_add_up_to_it(advantage, aggregation):
    whole = replace(CONFIG, advantage=advantage, aggregation=aggregation)
    one, expected = stepped(whole)
    two, found = stepped(replace(whole, microbatches=4))
    chex.assert_trees_all_close(one.params, two.params, atol=1e-5)
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(float(value), abs=2e-5), name


def test_evaluations_before_updates_come_in_the_same_parts():
    """Of the old policy and of the reference too: no part is larger, none differs."""
    away = jax.tree.map(lambda x: 1.5 * x, params())
    hyper = HYPER.replace(kl_weight=1.0)
    whole = replace(CONFIG, epochs=2, minibatches=2)
    one, expected = stepped(whole, hyper, reference=away)
    seen = []

    class Counting(Table):
        def evaluate(self, params, data, *, key=None):
            seen.append(data.mask.shape[0])
            return super().evaluate(params, data, key=key)

    parts = replace(whole, microbatches=4)
    two, found = stepped(parts, hyper, reference=away, policy=Counting())
    assert len(seen) >= 3 and set(seen) == {2}
    chex.assert_trees_all_close(one.params, two.params, atol=1e-5)
    for name, value in expected.items():
        assert float(found[name]) == pytest.approx(float(value), abs=2e-5), name


def test_several_updates_move_further_in_an_order_of_their_own():
    config = replace(CONFIG, epochs=2, minibatches=2)
    state, metrics = stepped(config)
    assert int(state.step) == 4
    assert float(metrics["old_kl_k3"]) > 0
    once = changes(stepped()[0])
    assert np.abs(changes(state)[0]).max() > np.abs(once[0]).max()
    init, step = functions(config)
    other = step(init(jax.random.key(3), HYPER, params()), HYPER, episodes())[0]
    assert any(
        (x != y).any()
        for x, y in zip(
            jax.tree.leaves(other.params), jax.tree.leaves(state.params), strict=True
        )
    )


def test_what_nobody_answered_and_padding_enter_nothing():
    data = episodes()
    short = data.mask.at[3:6, 1:].set(False)
    data = data.replace(mask=short, reward=jnp.where(short, data.reward, 0.0))
    outcome = data.outcome.at[7].set(Outcome.INFRASTRUCTURE)
    clean = data.replace(outcome=outcome)
    hole = ~short | (outcome == Outcome.INFRASTRUCTURE)[:, None]
    dirty = clean.replace(
        reward=jnp.where(hole, jnp.nan, data.reward),
        action=jnp.where(short, data.action, 99),
        log_prob=jnp.where(short, data.log_prob, jnp.nan),
        legal=data.legal & short[..., None],
    )
    one, _ = stepped(data=clean)
    two, metrics = stepped(data=dirty)
    chex.assert_trees_all_equal(one.params, two.params)
    assert all(np.isfinite(x) for x in metrics.values())


@pytest.mark.parametrize(
    "names",
    [
        ("grpo", "one-anchor", "gigpo"),
        pytest.param(tuple(ALGORITHMS), marks=pytest.mark.slow),
    ],
)
def test_every_algorithm_is_one_of_its_own(names):
    """Names give different updates, finite ones, from the same episodes."""
    # Episodes of different lengths, so that means over tokens and sequences differ.
    short = episodes().mask.at[::3, 1:].set(False)
    data = episodes().replace(mask=short)
    seen = {}
    for name in names:
        config, hyper = algorithm(name, num_groups=4, learning_rate=0.3)
        # Several updates a batch: where nothing was clipped yet, many are the same.
        state, metrics = stepped(replace(config, epochs=3), hyper, data=data)
        assert all(np.isfinite(x) for x in metrics.values()), name
        seen[name] = np.concatenate([x.ravel() for x in changes(state)])
    for one, other in itertools.combinations(seen, 2):
        assert np.abs(seen[one] - seen[other]).max() > 1e-6, (one, other)


def test_penalties_and_bonuses_change_the_update():
    base = changes(stepped()[0])[0]
    for name, value in {
        "entropy_weight": 0.5,
        "learning_rate": 0.01,
        "max_grad_norm": 1e-9,
    }.items():
        other = changes(stepped(hyper=HYPER.replace(**{name: value}))[0])[0]
        assert np.abs(other - base).max() > 1e-6, name
    # All episodes are as long: a penalty a step moves all returns of a group alike.
    again = changes(stepped(hyper=HYPER.replace(step_penalty=0.5))[0])[0]
    np.testing.assert_allclose(again, base, atol=1e-4)
    data = episodes()
    worst = data.replace(legal=data.legal.at[0, 0, data.action[0, 0]].set(False))
    fined = HYPER.replace(invalid_penalty=2.0)
    assert float(stepped(hyper=fined, data=worst)[1]["return_mean"]) == pytest.approx(
        float(stepped()[1]["return_mean"]) - 2.0 / 16, abs=1e-6
    )


def test_a_reference_holds_the_policy_back():
    away = jax.tree.map(lambda x: 1.5 * x, params())
    free, metrics = stepped(reference=away)
    assert float(metrics["kl"]) > 1e-3
    held, _ = stepped(hyper=HYPER.replace(kl_weight=10.0), reference=away)
    assert np.abs(changes(held)[0] - changes(free)[0]).max() > 1e-4


def test_what_is_frozen_stays_and_has_no_state():
    whole = params()
    init, step = make_group_step(CONFIG, TABLE)
    state = init(jax.random.key(2), HYPER, {"logits": whole["logits"]})
    frozen = {"value": whole["value"]}
    state, _ = jax.jit(step)(state, HYPER, episodes(), frozen=frozen)
    expected = stepped()[0].params["logits"]
    np.testing.assert_allclose(state.params["logits"], expected, atol=1e-6)
    assert "value" not in state.params
    # Adam keeps two moments of what is trained, and a counter.
    assert len(jax.tree.leaves(state.opt_state)) == 3


def test_dead_groups_may_be_dropped():
    data = episodes()
    equal = jnp.where(data.group_id[:, None] == 0, 0.0, data.reward)
    data = data.replace(reward=equal)
    config = replace(CONFIG, aggregation="token_mean")
    kept, metrics = stepped(config, data=data)
    assert float(metrics["dead_share"]) >= 0.25
    dropped, alive = stepped(replace(config, drop_dead=True), data=data)
    assert float(alive["grad_norm"]) > 1.2 * float(metrics["grad_norm"])
    assert np.abs(changes(kept)[0]).max() > 0 < np.abs(changes(dropped)[0]).max()


def test_a_batch_of_dead_groups_moves_nothing():
    """Though Adam's momentum of the step before would."""
    config = replace(CONFIG, drop_dead=True)
    before, _ = stepped(config)
    _, step = functions(config)
    equal = episodes().replace(reward=jnp.ones_like(episodes().reward))
    after, metrics = step(before, HYPER, equal)
    assert float(metrics["dead_share"]) == 1
    assert float(metrics["loss"]) == float(metrics["grad_norm"]) == 0
    chex.assert_trees_all_equal(after.params, before.params)
    chex.assert_trees_all_equal(after.opt_state, before.opt_state)
    assert int(after.step) == int(before.step) + 1
    # Where the same groups are kept, their weight is not 0: this is an update.
    kept, _ = functions(CONFIG)[1](before, HYPER, equal)
    assert np.abs(kept.params["logits"] - before.params["logits"]).max() > 1e-3


def test_seeds_and_learning_rates_share_a_compilation():
    init, step = make_group_step(CONFIG, TABLE)
    hyper = GroupHyper(learning_rate=jnp.array([0.05, 0.01]))
    axes = GroupHyper(**{name: None for name in GroupHyper.__dataclass_fields__})
    axes = axes.replace(learning_rate=0)

    @chex.assert_max_traces(n=1)
    def both(key, hyper, data):
        return step(init(key, hyper, params()), hyper, data)

    run = jax.jit(jax.vmap(both, in_axes=(None, axes, None)))
    state, _ = run(jax.random.key(2), hyper, episodes())
    run(jax.random.key(3), hyper, episodes(seed=2))
    first = jax.tree.map(lambda x: x[0], state.params)
    chex.assert_trees_all_close(first, stepped()[0].params, atol=1e-6)


def test_bad_settings_name_themselves():
    with pytest.raises(ConfigError, match="'gae' needs a policy with a value head"):
        stepped(replace(CONFIG, advantage="gae"), policy=POLICY)
    with pytest.raises(ConfigError, match="expected a divisor of 16 episodes, got 3"):
        stepped(replace(CONFIG, minibatches=3))
    with pytest.raises(ConfigError, match="epochs: expected >= 1, got 0"):
        GroupConfig(num_groups=4, epochs=0)
    with pytest.raises(ConfigError, match="drop_dead: advantage 'return'"):
        GroupConfig(num_groups=4, advantage="return", drop_dead=True)
    with pytest.raises(UnknownNameError, match="gigpo"):
        algorithm("gigp0", num_groups=4)
