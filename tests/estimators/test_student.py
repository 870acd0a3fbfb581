"""Student's t against printed tables, an integral of its density, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy.special import ndtri

from jerp.errors import InputError, ShapeError
from jerp.estimators.student import student_interval, student_quantile
from tests.reference import verdict as reference


@pytest.mark.parametrize("degrees", sorted(reference.TABLE))
def test_printed_tables(degrees):
    found = [round(student_quantile(degrees, level=level), 3) for level in (0.95, 0.99)]
    assert tuple(found) == reference.TABLE[degrees]


@pytest.mark.parametrize("degrees", [1, 2, 3, 6, 7, 40])
@pytest.mark.parametrize("level", [0.2, 0.8, 0.95])
def test_the_density_between_the_quantiles_is_the_level(degrees, level):
    limit = student_quantile(degrees, level=level)
    assert reference.student_within(limit, degrees) == pytest.approx(level, abs=1e-8)


def test_closed_forms_and_the_normal_limit():
    for level in (0.01, 0.5, 0.95, 0.9999):
        # One degree is Cauchy's, two have a closed form, many are the normal's.
        assert student_quantile(1, level=level) == pytest.approx(
            np.tan(np.pi * level / 2), rel=1e-9
        )
        two = level * np.sqrt(2 / (1 - level**2))
        assert student_quantile(2, level=level) == pytest.approx(two, rel=1e-9)
    normal = float(ndtri(jnp.float32(0.975)))
    assert student_quantile(10_000) == pytest.approx(normal, rel=2e-4)
    assert student_quantile(10_000) > normal


def test_interval_by_hand():
    # Mean 2, s = 1, t with two degrees 4.3027 at 95%.
    found = student_interval(jnp.array([1.0, 2.0, 3.0]))
    assert float(found.point) == 2
    assert float(found.high) == pytest.approx(2 + 4.302653 / np.sqrt(3), rel=1e-6)
    assert float(found.low) == pytest.approx(2 - 4.302653 / np.sqrt(3), rel=1e-6)
    assert int(found.num_values) == 3 and found.level == 0.95
    wide = student_interval(jnp.array([1.0, 2.0, 3.0]), level=0.99)
    assert float(wide.high) == pytest.approx(2 + 9.924843 / np.sqrt(3), rel=1e-6)


def test_interval_against_numpy(transform):
    values = np.float32(np.sin(np.arange(40.0)).reshape(5, 4, 2))
    found = transform(student_interval)(values)
    mean = values.mean(0, dtype=np.float64)
    half = 2.7764451 * values.std(0, ddof=1, dtype=np.float64) / np.sqrt(5)
    np.testing.assert_allclose(found.point, mean, atol=1e-6)
    np.testing.assert_allclose(found.low, mean - half, atol=1e-6)
    np.testing.assert_allclose(found.high, mean + half, atol=1e-6)


def test_a_shift_moves_it_and_a_mirror_turns_it():
    values = jnp.array([0.25, 0.5, -1.0, 2.0])
    found, moved = student_interval(values), student_interval(values + 8)
    turned = student_interval(-values)
    for name in ("point", "low", "high"):
        there = float(getattr(found, name))
        assert float(getattr(moved, name)) == pytest.approx(there + 8, abs=1e-5)
    assert float(turned.low) == pytest.approx(-float(found.high))


def test_equal_values_have_no_width_and_few_have_no_limits():
    # A third has no exact mean in float32.
    same = student_interval(jnp.full(3, 1 / 3))
    assert float(same.low) == float(same.high) == float(same.point)
    one = student_interval(jnp.array([[0.5, 1.0]]))
    assert one.point.tolist() == [0.5, 1.0] and np.isnan(one.low).all()
    none = student_interval(jnp.zeros((0, 2)))
    assert np.isnan(none.point).all() and int(none.num_values) == 0
    holed = student_interval(jnp.array([[1.0, jnp.nan], [2.0, 3.0]]))
    assert np.isnan(holed.low).tolist() == [False, True]


def test_coverage_of_three_normal_seeds_is_exact():
    draws = jax.random.normal(jax.random.key(0), (3, 20_000))
    found = student_interval(draws)
    covered = np.mean((found.low <= 0) & (found.high >= 0))
    assert covered == pytest.approx(0.95, abs=3 * np.sqrt(0.95 * 0.05 / 20_000))


def test_bad_input_is_named():
    with pytest.raises(InputError, match=r"level: expected in \(0, 1\), got 1"):
        student_interval(jnp.zeros(2), level=1)
    with pytest.raises(InputError, match="degrees: expected a whole number >= 1"):
        student_quantile(0)
    with pytest.raises(ShapeError, match=r"values: expected axes \[S\]"):
        student_interval(jnp.float32(1))
