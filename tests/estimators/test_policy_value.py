"""All methods at once: their parts, the loops, every setting, and every refusal."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, InputError, ShapeError
from jerp.estimators.fitted_q import fitted_q_evaluation
from jerp.estimators.lower_bound import bernstein_lower_bound
from jerp.estimators.ope import doubly_robust, importance_sampling
from jerp.estimators.overlap import Refusal, policy_overlap
from jerp.estimators.policy_value import METHODS, evaluate_policies
from tests.estimators.table_episodes import (
    BEHAVIOUR,
    HORIZON,
    SOME,
    TARGET,
    arrays,
    stepped,
)
from tests.reference import ope as reference
from tests.reference.intervals import every_resample_mean

ALWAYS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
POLICIES = np.stack([TARGET, BEHAVIOUR, ALWAYS])
KINDS = METHODS[:4]
VALID = len(SOME) - 3
TASK = np.arange(len(SOME), dtype=np.int32) % 7 % 4  # the last has half as many
FIELDS = ("point", "low", "high", "lower_bound")
SETTINGS = {
    "num_folds": 2,
    "num_resamples": 1000,
    "min_effective": 20.0,
    "interval": "percentile",
}


def log(policies=POLICIES, poison=np.nan):
    """What `evaluate_policies` takes; the last three rows are no episodes."""
    data = arrays(SOME, poison=poison)
    names = ("features", "action", "reward", "log_prob")
    target = [arrays(SOME, p, poison=poison)["target_log_probs"] for p in policies]
    task_id, mask = TASK.copy(), data["mask"]
    task_id[VALID:], mask[VALID:] = (-7 if np.isnan(poison) else 10**6), False
    return *(data[name] for name in names), np.stack(target), mask, task_id


def evaluate(*columns, **settings):
    columns = columns or log()
    return evaluate_policies(
        jax.random.key(0), *columns, num_tasks=4, **{**SETTINGS, **settings}
    )


def numbers(found, method):
    return np.stack([getattr(found.estimates[method], name) for name in FIELDS])


def points(found):
    return {name: np.asarray(e.point) for name, e in found.estimates.items()}


def reasons(found, method="ordinary"):
    return [Refusal(int(r)) for r in found.estimates[method].reason]


@pytest.fixture(scope="module")
def found():
    return jax.device_get(evaluate())


def terms_of(policy):
    """By kind the `OpeTerms` of a policy, from the functions that are public."""
    data = arrays(SOME, POLICIES[policy])
    data["mask"][VALID:] = False
    steps = [data[name] for name in ("reward", "log_prob", "target_log_prob")]
    terms = {
        kind: importance_sampling(*steps, data["mask"], kind=kind) for kind in KINDS
    }
    model = fitted_q_evaluation(
        *(data[name] for name in ("features", "action", "reward", "target_log_probs")),
        data["mask"],
        fold=TASK % 2,
        num_folds=2,
    )
    terms["fitted_q"] = model.terms
    terms["doubly_robust"] = doubly_robust(*steps, model.q, model.v, data["mask"])
    return terms, policy_overlap(*steps[1:], data["mask"])


def test_equals_its_parts(found):
    for row in range(len(POLICIES)):
        terms, overlap = terms_of(row)
        for name, value in points(found).items():
            np.testing.assert_allclose(value[row], terms[name].value(), rtol=1e-5)
        here = jax.tree.map(lambda x, row=row: x[row], found.overlap)
        chex.assert_trees_all_close(here, overlap, rtol=1e-6)
    assert found.behaviour.num_values == VALID and found.behaviour.num_excluded == 3
    assert found.behaviour.num_clusters == 4


@pytest.mark.parametrize("discount", [1.0, 0.5])
def test_equals_the_loops(discount):
    value = points(evaluate(discount=discount))
    told, behaviour = stepped(SOME[:VALID], BEHAVIOUR)
    for name in METHODS:
        settings = {"num_folds": 2} if name == "doubly_robust" else {}
        slow = [
            reference.policy_value(
                *(told, TASK[:VALID], behaviour, np.tile(policy, (HORIZON, 1))),
                *(name, HORIZON),
                discount=discount,
                **settings,
            )
            for policy in POLICIES
        ]
        np.testing.assert_allclose(value[name], slow, rtol=1e-4, err_msg=name)


def share_below(exact, value):
    return (np.mean(exact < value - 1e-5) + np.mean(exact < value + 1e-5)) / 2


@pytest.fixture(scope="module")
def narrow():
    """Another level, and a lower bound of another kind."""
    settings = {"level": 0.8, "lower_bound": "bernstein", "methods": ("ordinary",)}
    return lambda **more: evaluate(None, *log()[1:], **settings, **more)


def test_limits_are_those_of_all_256_resamples_of_tasks(found, narrow):
    rows = slice(0, VALID)
    returns = np.nansum(arrays(SOME)["reward"], axis=1)[rows]
    other = narrow()
    for row in (0, 2):
        weighed = np.asarray(terms_of(row)[0]["ordinary"].numerator)[rows, 0]
        value = every_resample_mean(weighed, TASK[rows])
        gain = every_resample_mean(weighed - returns, TASK[rows])
        for level, all_policies in ((0.95, found), (0.8, other)):
            e = jax.tree.map(lambda x, r=row: x[r], all_policies.estimates["ordinary"])
            for exact, said, tail in (
                (value, e.low, (1 - level) / 2),
                (value, e.high, (1 + level) / 2),
                (gain, e.gain.low, (1 - level) / 2),
                (gain, e.gain.high, (1 + level) / 2),
            ):
                assert share_below(exact, said) == pytest.approx(tail, abs=0.02)
        least = found.estimates["ordinary"].lower_bound[row]
        assert share_below(value, least) == pytest.approx(0.05, abs=0.02)


def test_the_bernstein_bound_is_that_of_the_weighed_returns(narrow):
    weighed = np.asarray(terms_of(0)[0]["ordinary"].numerator)[:, 0]
    rows = {"cluster": TASK, "mask": np.arange(len(TASK)) < VALID}
    for truncation in (2.0, 0.5):
        settings = {"level": 0.8, "truncation": truncation}
        bound = bernstein_lower_bound(weighed, **rows, **settings)
        said = narrow(truncation=truncation).estimates["ordinary"].lower_bound[0]
        assert float(said) == pytest.approx(float(bound), rel=1e-5)


def test_the_behaviour_is_worth_its_mean_and_gains_nothing(found):
    mean = np.nansum(arrays(SOME)["reward"][:VALID], axis=1).mean()
    assert float(found.behaviour.point) == pytest.approx(mean, rel=1e-6)
    for kind in KINDS:
        e = jax.tree.map(lambda x: x[1], found.estimates[kind])
        said, seen = ([x.point, x.low, x.high] for x in (e, found.behaviour))
        np.testing.assert_allclose(said, seen, rtol=1e-6)
        gain = [e.gain.point, e.gain.low, e.gain.high]
        np.testing.assert_allclose(gain, 0, atol=2e-7)
    assert float(found.overlap.effective_sample_size[1]) == pytest.approx(VALID)


def test_policies_share_their_resamples(found):
    turned = evaluate(*log(POLICIES[::-1]))
    for name in METHODS:
        np.testing.assert_array_equal(
            numbers(turned, name)[:, ::-1], numbers(found, name)
        )


def test_what_is_in_the_padding_does_not_matter(found):
    chex.assert_trees_all_equal(jax.device_get(evaluate(*log(poison=1e30))), found)


def robust(*columns):
    e = evaluate(*columns, methods=("doubly_robust",)).estimates["doubly_robust"]
    limits = jnp.stack([e.gain.point, e.gain.low, e.gain.high])
    return jnp.concatenate(
        [jnp.stack([getattr(e, x) for x in FIELDS]), limits]
    ), e.reason


def assert_same(said, found, order=slice(None)):
    e = found.estimates["doubly_robust"]
    gain = np.stack([e.gain.point, e.gain.low, e.gain.high])
    expected = np.concatenate([numbers(found, "doubly_robust"), gain])
    np.testing.assert_allclose(said[0], expected[:, order], rtol=2e-5, atol=1e-6)
    np.testing.assert_array_equal(said[1], e.reason[order])


def test_a_batch_under_jit_is_as_each_in_one_trace_and_refuses_what_is_no_number(found):
    run = jax.jit(jax.vmap(chex.assert_max_traces(robust, n=1)))
    one, turned = log(), log(POLICIES[::-1])
    good = run(*map(np.stack, zip(one, turned, strict=True)))
    assert_same([x[0] for x in good], found)
    assert_same([x[1] for x in good], found, slice(None, None, -1))
    one[4][0, 0, 0], turned[2][:] = np.nan, np.inf  # of one policy, and all rewards
    said, reason = run(*map(np.stack, zip(one, turned, strict=True)))
    undefined = np.array([[True, False, False], [True, True, True]])
    np.testing.assert_array_equal(reason, np.where(undefined, Refusal.UNDEFINED, 0))
    assert np.isnan(said[0, :, 0]).all() and np.isnan(said[1]).all()
    np.testing.assert_array_equal(said[0, :, 1:], good[0][0, :, 1:])


def test_refusals_are_entries_beside_answers(found):
    """A policy never seen, probabilities of sum 1.3, and one too far away."""
    never = np.full_like(TARGET, 1e-9)
    several = evaluate(
        *log([never, 1.3 * BEHAVIOUR, TARGET]), min_effective=VALID - 10.0
    )
    expected = [Refusal.UNSUPPORTED, Refusal.PROBABILITIES, Refusal.SAMPLE_SIZE]
    for name in METHODS:
        assert reasons(several, name) == expected
        assert np.isnan(numbers(several, name)).all()
        assert np.isnan(several.estimates[name].gain.point).all()
        assert reasons(found, name) == [Refusal.NONE] * 3
        assert np.isfinite(numbers(found, name)).all()
    assert float(several.behaviour.point) == float(found.behaviour.point)


def test_one_task_has_a_point_alone_and_no_episode_nothing(found):
    *columns, mask, task_id = log()
    one = evaluate(*columns, mask, np.zeros_like(task_id))
    none = evaluate(*columns, np.zeros_like(mask), task_id)
    for name in (*KINDS, "fitted_q"):
        assert reasons(one, name) == [Refusal.FEW_TASKS] * 3
        np.testing.assert_allclose(points(one)[name], points(found)[name], rtol=1e-5)
        assert np.isnan(numbers(one, name)[1:]).all()
        assert reasons(none, name) == [Refusal.NO_EPISODES] * 3
        assert np.isnan(numbers(none, name)).all()
    assert int(none.behaviour.num_values) == 0 and np.isnan(none.behaviour.point)


def test_a_ridge_changes_what_rests_on_a_model_and_discount_all(found):
    shrunk, hasty = points(evaluate(ridge=1.0)), points(evaluate(discount=0.5))
    for name, before in points(found).items():
        moved = np.abs(shrunk[name] - before).max() > 1e-3
        assert moved == (name in ("fitted_q", "doubly_robust")), name
        assert (hasty[name] < before - 0.01).all()


def test_other_folds_and_a_single_resample(found):
    settings = {"methods": ("doubly_robust",), "num_folds": 3, "num_resamples": 1}
    other = numbers(evaluate(**settings), "doubly_robust")
    assert np.abs(other - numbers(found, "doubly_robust"))[0].max() > 1e-4
    low, high, least = other[1:]
    np.testing.assert_array_equal(low, high)
    np.testing.assert_array_equal(low, least)


def test_settings_of_refusals_and_overlap(found):
    assert reasons(evaluate(min_effective=VALID - 1.0))[0] == Refusal.SAMPLE_SIZE
    assert reasons(evaluate(min_support=1.0))[0] == Refusal.NONE
    lacking = log([0.8 * BEHAVIOUR, TARGET, TARGET])
    assert reasons(evaluate(*lacking))[0] == Refusal.UNSUPPORTED
    assert reasons(evaluate(*lacking, min_support=0.3))[0] == Refusal.NONE
    share = evaluate(large_ratio=1.4).overlap.large_ratio_share
    assert (np.asarray(share)[[0, 2]] > 0.2).all() and float(share[1]) == 0
    assert not np.asarray(found.overlap.large_ratio_share).any()


@pytest.mark.parametrize("interval", ["bca", "studentized"])
def test_how_limits_are_read_off_changes_them_alone(found, interval):
    columns = (None, *log()[1:])
    other = evaluate(*columns, methods=("ordinary",), interval=interval)
    said, before = numbers(other, "ordinary"), numbers(found, "ordinary")
    np.testing.assert_allclose(said[0], before[0], rtol=1e-6)
    assert (np.abs(said - before)[1:, 0] > 1e-3).all()


def test_refuses_by_name():
    features, action, reward, log_prob, *rest = log()
    for columns, settings, error, message in (
        ((features, action, reward, None, *rest), {}, InputError, "log_prob: expected"),
        ((None, action, reward, log_prob, *rest), {}, ConfigError, "features: expec"),
        ((features, action[:1], reward, log_prob, *rest), {}, ShapeError, "action: ex"),
        (log([2 * TARGET] * 3), {}, InputError, "target_log_probs: expected log-prob"),
        (log(), {"discount": 1.5}, InputError, r"discount: expected in \[0, 1\]"),
        (log(), {"ridge": 0.0}, InputError, "ridge: expected > 0"),
        (log(), {"num_folds": 1}, InputError, "num_folds: expected a whole number"),
        (log(), {"methods": ("ordinry",)}, ValueError, "did you mean 'ordinary'"),
        (log(), {"lower_bound": "bernstein"}, ConfigError, "expected 'bootstrap'"),
    ):
        with pytest.raises(error, match=message):
            evaluate(*columns, **settings)
