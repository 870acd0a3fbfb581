import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.records import (
    Criterion,
    Interval,
    LossOutput,
    ProcessStep,
    Task,
    Verdict,
    WeightedMean,
)


def mean(total, weight):
    return WeightedMean(total=jnp.float32(total), weight=jnp.float32(weight))


def test_a_weighted_mean_is_total_over_weight(transform):
    value = transform(lambda total, weight: mean(total, weight).value())
    np.testing.assert_allclose(value(6.0, 4.0), 1.5)


def test_nothing_weighed_is_zero_with_a_finite_gradient(transform):
    value = transform(lambda total, weight: mean(total, weight).value())
    assert value(0.0, 0.0) == 0
    gradient = jax.grad(lambda total: mean(total, 0.0).value())(1.0)
    assert gradient == 0


def test_adding_microbatches_equals_the_mean_over_all():
    values = jnp.array([1.0, 4.0, 10.0])
    weights = jnp.array([1.0, 0.0, 3.0])
    parts = [mean(v * w, w) for v, w in zip(values, weights, strict=True)]
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_allclose(total.value(), np.average(values, weights=weights))
    mean_of_means = np.mean([part.value() for part in parts])
    assert not np.isclose(total.value(), mean_of_means)


def test_the_records_that_hold_arrays_go_through_jit():
    loss = LossOutput(loss=mean(1, 2), metrics={"entropy": mean(3, 4)})
    doubled = jax.jit(lambda x: jax.tree.map(lambda y: 2 * y, x))(loss)
    np.testing.assert_allclose(doubled.metrics["entropy"].total, 6)
    interval = Interval(point=jnp.ones(()), low=jnp.zeros(()), high=jnp.ones(()))
    assert len(jax.tree.leaves(interval)) == 3
    assert jax.jit(lambda x: x)(interval.replace(level=0.9)).level == 0.9


@pytest.mark.parametrize(
    ("criteria", "score"),
    [
        ((), 0.0),
        (((1.0, 1.0),), 1.0),
        (((1.0, 3.0), (0.0, 1.0)), 0.75),
        (((0.5, 1.0), (0.25, 1.0)), 0.375),
        (((1.0, 0.0),), 0.0),
    ],
)
def test_a_verdict_scores_the_weighted_mean_of_its_criteria(criteria, score):
    listed = tuple(Criterion("c", s, w) for s, w in criteria)
    assert Verdict(criteria=listed, success=False).score == score


@pytest.mark.parametrize(
    "record",
    [
        Task("coding/1/0000", "coding", 0, "write"),
        Criterion("tests", 1.0, 0.5),
        Verdict((), True),
        ProcessStep("draft"),
    ],
)
def test_host_records_are_frozen(record):
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.name = "other"
