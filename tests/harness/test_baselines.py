from functools import partial

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.harness_control.domains import DOMAINS
from jerp.errors import ConfigError
from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.baselines import (
    BASE_SEQUENCES,
    base_policy,
    conditional_policy,
    describe,
    forced_check_policy,
    perturbed_policy,
    uniform_policy,
    with_check,
)
from jerp.harness.state import NO_ACTION, encode_features
from tests.reference import baselines as reference

OBSERVE, RETRIEVE, CALL_TOOL, DRAFT, CHECK, REVISE, SUBMIT = Action
CODING = BASE_SEQUENCES["coding"]
MAX_STEPS = 10


def observe(step=0, last=NO_ACTION, max_steps=MAX_STEPS, **status):
    values = {
        "progress": step / max_steps,
        "has_draft": 0.0,
        "draft_length": 0.0,
        "coverage": 0.0,
        "missing_share": 1.0,
        "error_share": 0.0,
        "cost_share": 0.0,
        "remaining": (max_steps - step) / max_steps,
        "support": -1.0,
        "findings": 0.0,
    }
    values |= status
    return encode_features(np.float32(list(values.values())), np.int32(last), xp=np)


def legal(*actions):
    mask = np.zeros(NUM_ACTIONS, bool)
    mask[list(actions)] = True
    return mask


def masks():
    """All 127 masks with something legal."""
    return (np.arange(1, 128)[:, None] >> np.arange(NUM_ACTIONS)) % 2 == 1


def act(policy, observation, mask, seed=0):
    action, log_prob = policy(None, jax.random.key(seed), observation, mask)
    return int(action), float(log_prob)


def grid(policy):
    """Actions of a deterministic policy at every step (rows) and mask (columns)."""
    observation = np.stack([observe(t) for t in range(MAX_STEPS)])
    key = jax.random.key(0)
    run = jax.vmap(jax.vmap(policy, (None, None, None, 0)), (None, None, 0, None))
    action, log_prob = jax.jit(run)(None, key, observation, masks())
    assert not np.asarray(log_prob).any()
    return np.asarray(action)


def test_base_sequences_hold_no_check_and_end_in_a_submit():
    assert {"simulated", *DOMAINS} <= set(BASE_SEQUENCES)
    for sequence in BASE_SEQUENCES.values():
        assert CHECK not in sequence
        assert sequence[-1] == SUBMIT


def test_base_by_hand():
    policy = base_policy(CODING)
    everything = legal(*Action)
    assert [act(policy, observe(t), everything)[0] for t in range(6)] == [
        *CODING,
        SUBMIT,
        SUBMIT,
    ]
    assert act(policy, observe(1), legal(OBSERVE, SUBMIT)) == (SUBMIT, 0.0)
    assert act(policy, observe(3), legal(DRAFT, CALL_TOOL))[0] == DRAFT
    assert act(policy, observe(2), legal(REVISE, RETRIEVE))[0] == RETRIEVE
    assert act(policy, observe(4, max_steps=40), everything)[0] == DRAFT
    scaled = base_policy(CODING, max_steps=40)
    assert act(scaled, observe(1, max_steps=40), everything)[0] == DRAFT


@pytest.mark.parametrize("name", sorted(BASE_SEQUENCES))
def test_base_against_the_state_machine(name):
    sequence = BASE_SEQUENCES[name]
    for make, order in (
        (base_policy, sequence),
        (forced_check_policy, with_check(sequence)),
    ):
        expected = [
            [reference.base_action(order, t, mask) for mask in masks()]
            for t in range(MAX_STEPS)
        ]
        np.testing.assert_array_equal(grid(make(sequence)), expected)


def test_every_step_of_every_budget_is_read_back():
    plan = [OBSERVE, RETRIEVE, CALL_TOOL, DRAFT, CHECK, REVISE]
    for max_steps in (3, 7, 10, 30):
        order = [plan[t % 6] for t in range(max_steps - 1)] + [SUBMIT]
        policy = jax.jit(
            jax.vmap(base_policy(order, max_steps=max_steps), (None, None, 0, None))
        )
        x = np.stack([observe(t, max_steps=max_steps) for t in range(max_steps)])
        action, _ = policy(None, jax.random.key(0), x, legal(*Action))
        assert action.tolist() == order


def test_forced_check_comes_before_the_last_submit():
    assert with_check((DRAFT, SUBMIT, REVISE, SUBMIT)) == (
        DRAFT,
        SUBMIT,
        REVISE,
        CHECK,
        SUBMIT,
    )
    assert describe(with_check(CODING)) == (
        "observe > draft > call-tool > check > submit"
    )
    policy = forced_check_policy(CODING)
    assert act(policy, observe(3), legal(CHECK, SUBMIT))[0] == CHECK
    assert act(policy, observe(3), legal(SUBMIT))[0] == SUBMIT


STOCHASTIC = {
    "uniform": (
        uniform_policy(),
        partial(reference.perturbed_probabilities, epsilon=1),
    ),
    "perturbed": (
        perturbed_policy(CODING, epsilon=0.25),
        partial(reference.perturbed_probabilities, epsilon=0.25),
    ),
}
SAMPLES = 4000


@pytest.mark.parametrize("name", sorted(STOCHASTIC))
def test_frequencies_and_log_probs_against_the_reference(name):
    policy, probabilities = STOCHASTIC[name]
    run = jax.jit(jax.vmap(policy, (None, 0, None, None)))
    for step, mask in (
        (0, legal(*Action)),
        (2, legal(CALL_TOOL, SUBMIT)),
        (1, legal(OBSERVE, CHECK, REVISE)),
        (3, legal(RETRIEVE)),
    ):
        keys = jax.random.split(jax.random.key(step), SAMPLES)
        expected = np.asarray(probabilities(CODING, step, mask))
        action, log_prob = run(None, keys, observe(step), mask)
        np.testing.assert_allclose(log_prob, np.log(expected[action]), atol=2e-6)
        seen = np.bincount(action, minlength=NUM_ACTIONS) / SAMPLES
        error = np.sqrt(expected * (1 - expected) / SAMPLES)
        assert (np.abs(seen - expected) <= 4 * error).all(), (seen, expected)
        assert set(np.unique(action)) <= set(np.flatnonzero(mask))


def test_perturbed_by_hand():
    policy = perturbed_policy(CODING, epsilon=0.25)
    mask = legal(OBSERVE, RETRIEVE, DRAFT, CALL_TOOL)
    keys = jax.random.split(jax.random.key(0), 60)
    run = jax.jit(jax.vmap(policy, (None, 0, None, None)))
    action, log_prob = map(np.asarray, run(None, keys, observe(0), mask))
    log_probs = dict(zip(action.tolist(), log_prob.tolist(), strict=True))
    assert set(log_probs) == {OBSERVE, RETRIEVE, DRAFT, CALL_TOOL}
    assert log_probs.pop(OBSERVE) == pytest.approx(np.log(0.75 + 0.25 / 4), abs=1e-6)
    for others in log_probs.values():
        assert others == pytest.approx(np.log(0.25 / 4), abs=1e-6)


def test_probabilities_of_the_legal_actions_sum_to_one():
    """Over every mask: each legal action's logged probability, found by sampling."""
    policy = perturbed_policy(CODING, epsilon=0.9)
    keys = jax.random.split(jax.random.key(2), 200)
    run = jax.vmap(jax.vmap(policy, (None, 0, None, None)), (None, None, None, 0))
    action, log_prob = jax.jit(run)(None, keys, observe(1), masks())
    action, log_prob = np.asarray(action), np.asarray(log_prob)
    for mask, actions, logs in zip(masks(), action, log_prob, strict=True):
        found = dict(zip(actions.tolist(), logs.tolist(), strict=True))
        assert set(found) == set(np.flatnonzero(mask))
        assert np.exp(list(found.values())).sum() == pytest.approx(1.0, abs=1e-5)


def test_epsilon_spans_from_base_to_uniform():
    mask, x = legal(OBSERVE, DRAFT, CHECK), observe(1)

    def run(policy):
        keys = jax.random.split(jax.random.key(3), 50)
        return jax.jit(jax.vmap(policy, (None, 0, None, None)))(None, keys, x, mask)

    never, always = (run(perturbed_policy(CODING, epsilon=e)) for e in (0.0, 1.0))
    assert set(never[0].tolist()) == {act(base_policy(CODING), x, mask)[0]}
    np.testing.assert_allclose(never[1], 0.0)
    chex.assert_trees_all_close(always, run(uniform_policy()), atol=1e-6)


CONDITIONAL = {
    "before a submit it checks": (
        observe(3, last=DRAFT, has_draft=1.0),
        legal(CHECK, SUBMIT),
        CHECK,
    ),
    "not twice": (observe(3, last=CHECK, has_draft=1.0), legal(SUBMIT), SUBMIT),
    "not what tests support": (
        observe(3, last=CALL_TOOL, has_draft=1.0, support=1.0),
        legal(CHECK, SUBMIT),
        SUBMIT,
    ),
    "not without a draft": (observe(3), legal(CHECK, SUBMIT), SUBMIT),
    "not before the base would submit": (
        observe(2, last=DRAFT, has_draft=1.0),
        legal(CHECK, CALL_TOOL, SUBMIT),
        CALL_TOOL,
    ),
    "not at the last step": (
        observe(9, last=DRAFT, has_draft=1.0),
        legal(CHECK, SUBMIT),
        SUBMIT,
    ),
    "not beyond the cost budget": (
        observe(3, last=DRAFT, has_draft=1.0, cost_share=1.0),
        legal(CHECK, SUBMIT),
        SUBMIT,
    ),
    "a failed check is answered": (
        observe(4, last=CHECK, has_draft=1.0, missing_share=0.5),
        legal(REVISE, SUBMIT),
        REVISE,
    ),
    "a passed check is not": (
        observe(4, last=CHECK, has_draft=1.0, missing_share=0.0),
        legal(REVISE, SUBMIT),
        SUBMIT,
    ),
    "failed tests are answered": (
        observe(3, last=CALL_TOOL, has_draft=1.0, support=0.5),
        legal(CHECK, REVISE, SUBMIT),
        REVISE,
    ),
    "but only where a revision is legal": (
        observe(3, last=CALL_TOOL, has_draft=1.0, support=0.5),
        legal(CHECK, SUBMIT),
        CHECK,
    ),
    "no revision without a failure": (
        observe(3, last=DRAFT, has_draft=1.0),
        legal(REVISE, SUBMIT),
        SUBMIT,
    ),
    "no revision without budget": (
        observe(9, last=CHECK, has_draft=1.0, missing_share=0.5),
        legal(REVISE, SUBMIT),
        SUBMIT,
    ),
}


@pytest.mark.parametrize("name", sorted(CONDITIONAL))
def test_conditional_by_hand(name):
    x, mask, expected = CONDITIONAL[name]
    assert act(conditional_policy(CODING), x, mask) == (expected, 0.0)


def test_conditional_against_the_state_machine():
    states = [
        {
            "step": step,
            "max_steps": MAX_STEPS,
            "cost_share": cost,
            "has_draft": 1.0,
            "support": support,
            "missing_share": missing,
            "last": last,
        }
        for step in (0, 3, 8, 9)
        for cost in (0.0, 1.0)
        for support in (-1.0, 0.0, 0.5, 1.0)
        for missing in (0.0, 0.5)
        for last in (CALL_TOOL, CHECK, NO_ACTION)
    ]
    x = np.stack([observe(**state) for state in states])
    policy = conditional_policy(CODING)
    run = jax.vmap(jax.vmap(policy, (None, None, None, 0)), (None, None, 0, None))
    action, _ = jax.jit(run)(None, jax.random.key(0), x, masks())
    expected = [
        [reference.conditional_action(CODING, state, mask) for mask in masks()]
        for state in states
    ]
    np.testing.assert_array_equal(action, expected)


@pytest.mark.parametrize(
    ("failing_checks", "expected"),
    [
        (0, [OBSERVE, RETRIEVE, DRAFT, CHECK, SUBMIT]),
        (1, [OBSERVE, RETRIEVE, DRAFT, CHECK, REVISE, CHECK, SUBMIT]),
        (9, [OBSERVE, RETRIEVE, DRAFT, *[CHECK, REVISE] * 2, CHECK, SUBMIT]),
    ],
)
def test_conditional_episode(failing_checks, expected):
    max_steps = len(expected)
    policy = jax.jit(
        conditional_policy(BASE_SEQUENCES["research"], max_steps=max_steps)
    )

    def choose(state, mask):
        x = observe(**state)
        return act(policy, x, np.asarray(mask))[0]

    found = reference.drafting_episode(
        choose, max_steps=max_steps, failing_checks=failing_checks
    )
    assert found == expected


POLICIES = {
    "base": base_policy(CODING),
    "forced": forced_check_policy(CODING),
    "conditional": conditional_policy(CODING),
    "perturbed": perturbed_policy(CODING, epsilon=0.25),
    "uniform": uniform_policy(),
}


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_parity(name, transform):
    def run(key_data, x, mask):
        return POLICIES[name](None, jax.random.wrap_key_data(key_data), x, mask)

    # Raw key data: the fixture copies its arguments, and a key may be used only once.
    inputs = jnp.array([0, 5], jnp.uint32), observe(1), legal(OBSERVE, CALL_TOOL, CHECK)
    expected, found = run(*inputs), transform(run)(*inputs)
    chex.assert_trees_all_equal_shapes_and_dtypes(found, expected)
    chex.assert_trees_all_close(found, expected, atol=1e-7)
    assert found[0].dtype == jnp.int32
    assert found[1].dtype == jnp.float32


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_a_finished_episode_stays_finite(name):
    action, log_prob = act(POLICIES[name], observe(4), legal())
    assert 0 <= action < NUM_ACTIONS
    assert np.isfinite(log_prob)


def test_one_trace_whatever_the_state():
    traced = chex.assert_max_traces(perturbed_policy(CODING, epsilon=0.25), n=1)
    run = jax.jit(traced)
    for step in range(3):
        run(None, jax.random.key(step), observe(step), legal(OBSERVE, step))


def test_bad_settings_are_named():
    with pytest.raises(ConfigError, match=r"sequence: .*\(observe > draft\)"):
        base_policy((OBSERVE, DRAFT))
    with pytest.raises(ConfigError, match="sequence: expected a submit"):
        with_check(())
    with pytest.raises(ConfigError, match=r"epsilon: expected in \[0, 1\], got 1.5"):
        perturbed_policy(CODING, epsilon=1.5)
