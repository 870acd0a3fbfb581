"""What regressions share: by hand, loops over fits and actions, and what has no say."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import InputError, ShapeError
from jerp.estimators.regression import fits_of, regression
from tests.reference.ope import regressions

NUMBER, STEPS, FEATURES, ACTIONS, FOLDS = 12, 3, 2, 3, 2
FIELDS = ("inverse", "rewarded")


def log(poison=np.nan):
    """Two features, none of them constant; action 2 is never taken."""
    rows, steps = np.indices((NUMBER, STEPS))
    mask = steps < 1 + rows % STEPS
    mask[-1] = False
    features = np.stack([np.sin(5.0 * rows + steps), np.cos(rows + 2.0 * steps)], -1)
    reward, action = np.sin(3.0 * rows - steps), (rows + steps // 2) % 2
    return (
        np.where(mask[..., None], features, poison).astype(np.float32),
        np.where(mask, action, 7).astype(np.int32),
        np.where(mask, reward, poison).astype(np.float32),
        mask,
    )


def fit(*columns, **settings):
    fold = np.arange(NUMBER, dtype=np.int32) // 3 % FOLDS
    named = {"num_actions": ACTIONS, "fold": fold, "num_folds": FOLDS}
    made = regression(*columns, **{**named, **settings})
    return {name: getattr(made, name) for name in FIELDS}


def test_by_hand():
    """Squares of a feature sum to 5 with action 0 and to 1 with 1; a ridge of half."""
    features = jnp.array([[[1.0]], [[2.0]], [[1.0]]])
    reward, action = jnp.array([[3.0], [4.0], [9.0]]), jnp.array([[0], [0], [1]])
    found = regression(features, action, reward, reward > 0, num_actions=2, ridge=0.5)
    np.testing.assert_allclose(found.inverse[0, :, 0, 0], [1 / 7.5, 1 / 1.5], rtol=1e-6)
    np.testing.assert_allclose(found.rewarded[0, :, 0], [3 + 8, 9])


@pytest.mark.parametrize("ridge", [0.1, 2.0])
def test_equals_loops_over_fits_and_actions(ridge):
    found = fit(*log(), ridge=ridge)
    fold = np.arange(NUMBER) // 3 % FOLDS
    slow = regressions(*log(), fold, ACTIONS - 1, ridge)
    assert found["inverse"].shape == (FOLDS + 1, ACTIONS, FEATURES, FEATURES)
    for row, out in enumerate([*range(FOLDS), None]):
        for action in range(ACTIONS - 1):
            for name, expected in zip(FIELDS, slow[out, action], strict=True):
                np.testing.assert_allclose(
                    found[name][row, action], expected, rtol=1e-4, atol=1e-5
                )
        # Never taken: worth nothing, and no division by 0.
        assert not found["inverse"][row, -1].any()
        assert not found["rewarded"][row, -1].any()


def test_a_direction_in_which_no_features_differ_has_weight_0():
    features, *rest = log()
    alone = fit(features, *rest)
    doubled = fit(np.concatenate([features, features], axis=-1), *rest)
    weight, twice = (
        np.einsum("jafg,jag->jaf", x["inverse"], x["rewarded"])
        for x in (alone, doubled)
    )
    np.testing.assert_allclose(twice[..., :2], weight / 2, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(twice[..., :2], twice[..., 2:], rtol=1e-4, atol=1e-5)


def test_without_folds_there_is_the_fit_to_all():
    whole = fit(*log(), fold=None, num_folds=None)
    for name, x in fit(*log()).items():
        assert whole[name].shape == (1, *x.shape[1:])
        np.testing.assert_allclose(whole[name][0], x[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(fits_of(jnp.array([1.0, 4.0]), False), [5.0])


def test_under_every_transformation(transform):
    for name, x in transform(fit)(*log()).items():
        np.testing.assert_allclose(x, fit(*log())[name], rtol=1e-5, atol=1e-6)


def test_padding_has_no_say_and_there_is_one_trace():
    run = jax.jit(chex.assert_max_traces(fit, n=1))
    chex.assert_trees_all_equal(run(*log(poison=1e30)), run(*log()))


def test_refuses_by_name():
    features, action, reward, mask = log()
    for columns, settings, error, message in (
        ((features[0], action, reward, mask), {}, ShapeError, "features: expected ax"),
        ((0 * features + np.nan, action, reward, mask), {}, InputError, "features: ex"),
        ((features, action, np.full_like(reward, np.inf), mask), {}, InputError, "rew"),
        ((features, action, reward, mask), {"num_actions": 1}, InputError, "action: e"),
        ((features, action, reward, mask), {"num_folds": 1}, InputError, "num_folds: "),
        ((features, action, reward, ~mask), {}, InputError, "mask: expected"),
        (
            (features, action, reward, mask),
            {"fold": np.full(NUMBER, 2, np.int32)},
            InputError,
            "fold: expected",
        ),
    ):
        with pytest.raises(error, match=message):
            fit(*columns, **settings)
