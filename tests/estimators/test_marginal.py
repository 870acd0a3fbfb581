"""Marginal values and saturation: by hand, and grids that are refused."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jerp.errors import InputError
from jerp.estimators.marginal import (
    check_grid,
    marginal_horizon,
    marginal_k,
    saturation_horizon,
)
from tests.reference import boundary as reference

KS, HORIZONS = (1, 2, 4), (1.0, 2.0, 3.0, 5.0)
SURFACE = np.float32(
    [[0.1, 0.2, 0.3, 0.3], [0.2, 0.3, 0.4, 0.45], [0.2, 0.5, 0.58, 0.6]]
)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_by_hand(transform):
    found = transform(
        lambda s: (
            marginal_k(s, KS),
            marginal_horizon(s),
            saturation_horizon(s, HORIZONS, tolerance=0.1),
        )
    )(SURFACE)
    more_samples, longer, enough = found
    expected = [[0.1, 0.1, 0.1, 0.15], [0.0, 0.2, 0.18, 0.15]]
    np.testing.assert_allclose(more_samples, expected, atol=1e-6)
    np.testing.assert_allclose(longer[2], [0.3, 0.08, 0.02], atol=1e-6)
    assert float(enough) == 2.0


@pytest.mark.parametrize(
    ("tolerance", "expected"), [(0.0, 5), (0.02, 3), (0.05, 3), (0.1, 2), (0.5, 1)]
)
def test_saturation_by_hand(tolerance, expected):
    assert float(_saturation(SURFACE, tolerance)) == expected


def test_a_curve_that_leaves_again_has_not_saturated():
    curve = np.float32([[0.5, 0.9, 0.5]])
    assert float(saturation_horizon(curve, (1, 2, 4), tolerance=0.1)) == 4.0
    assert float(saturation_horizon(curve, (1, 2, 4), tolerance=0.5)) == 1.0


@given(arrays(np.float32, (3, 4), elements=st.sampled_from([0.0, 0.25, 0.5])))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_saturation_against_the_reference(surface):
    expected = reference.saturation(surface[-1], HORIZONS, 0.25)
    assert float(_saturation(surface, 0.25)) == expected


def test_one_surface_a_task():
    both = np.stack([SURFACE, SURFACE[:, ::-1]])
    assert marginal_k(both, KS).shape == (2, 2, 4)
    np.testing.assert_allclose(marginal_horizon(both)[0], marginal_horizon(SURFACE))
    found = saturation_horizon(both, HORIZONS, tolerance=0.05)
    assert found.tolist() == [3.0, 5.0], "the reversed one falls to its last T"


def test_a_missing_cell_makes_nan_what_rests_on_it():
    surface = SURFACE.copy()
    surface[1, 0] = np.nan
    assert np.isnan(marginal_k(surface, KS)).tolist() == [[True] + [False] * 3] * 2
    assert np.isnan(marginal_horizon(surface)).sum() == 1
    surface[2, 2] = np.nan
    assert float(saturation_horizon(surface, HORIZONS, tolerance=0.05)) == 5.0
    surface[2, 3] = np.nan
    assert np.isnan(saturation_horizon(surface, HORIZONS, tolerance=0.05))


@given(arrays(np.float32, (3, 4), elements=st.floats(0, 1, width=32)), st.floats(0, 1))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_sums_and_monotone_tolerance(surface, tolerance):
    total = np.asarray(_horizon(surface)).sum(-1)
    np.testing.assert_allclose(total, surface[:, -1] - surface[:, 0], atol=1e-5)
    tight, loose = (
        float(_saturation(surface, t)) for t in (tolerance, tolerance + 0.1)
    )
    assert loose <= tight


_horizon = jax.jit(marginal_horizon)
_saturation = jax.jit(lambda s, t: saturation_horizon(s, HORIZONS, tolerance=t))


def test_bad_grids_are_named():
    with pytest.raises(
        InputError, match=r"ks: expected a doubling grid .* \(1, 2, 3\)"
    ):
        marginal_k(SURFACE, (1, 2, 3))
    with pytest.raises(InputError, match=r"ks: expected 3 values, .* \(1, 2\)"):
        marginal_k(SURFACE, (1, 2))
    run = partial(saturation_horizon, SURFACE, tolerance=0.1)
    with pytest.raises(InputError, match="horizons: expected 4 values"):
        run(KS)
    with pytest.raises(InputError, match="horizons: expected increasing values"):
        run((1.0, 3.0, 2.0, 5.0))
    with pytest.raises(InputError, match="horizons: expected increasing values"):
        run((-1.0, 1.0, 2.0, 5.0))
    with pytest.raises(InputError, match="horizons: expected increasing values"):
        run((1.0, np.nan, 2.0, 5.0))
    with pytest.raises(InputError, match=r"tolerance: expected >= 0, got -0.1"):
        saturation_horizon(SURFACE, HORIZONS, tolerance=-0.1)
    with pytest.raises(InputError, match=r"estimate: .* got \[4\]"):
        saturation_horizon(SURFACE[0], HORIZONS, tolerance=0.1)
    check_grid("horizons", (0, 1), size=2)
    assert jnp.ndim(saturation_horizon(SURFACE, HORIZONS, tolerance=0.1)) == 0
