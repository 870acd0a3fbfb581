"""Novelty of tokens and sequences: by hand, against loops over dicts, at the limits."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from jerp.errors import InputError, ShapeError
from jerp.estimators.intervals import bootstrap_interval
from jerp.estimators.novelty import distinct_sequences, perplexity, sequence_overlap
from tests.reference import novelty as reference

A = np.int32([[1, 1, 2, 3, 9, 9], [4, 4, 4, 4, 4, 4]])
B = np.int32([[1, 2, 2, 2], [5, 4, 5, 5]])
IDS = st.integers(0, 3)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def test_by_hand(transform):
    found = transform(
        lambda a, b: (
            distinct_sequences(a),
            distinct_sequences(a, draws=2),
            *sequence_overlap(a, b),
        )
    )(A, B)
    distinct, of_two, known, common = found
    assert distinct.tolist() == [4, 1]
    # 15 pairs; the two of 1 and the two of 9 are alike.
    np.testing.assert_allclose(of_two, [28 / 15, 1], rtol=1e-6)
    np.testing.assert_allclose(known, [3 / 6, 1], rtol=1e-6)
    np.testing.assert_allclose(common, [1 / 4 + 1 / 6, 1 / 4], rtol=1e-6)


@given(arrays(np.int32, (2, 6), elements=IDS), arrays(np.int32, (2, 6), elements=IDS))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_against_the_reference(a, b):
    for draws in (1, 3, 6):
        found = _distinct(a, draws=draws)
        expected = [reference.distinct(row.tolist(), draws) for row in a]
        np.testing.assert_allclose(found, expected, rtol=2e-6)
    known, common = _overlap(a, b)
    expected = [
        reference.overlap(x.tolist(), y.tolist()) for x, y in zip(a, b, strict=True)
    ]
    np.testing.assert_allclose(known, [k for k, _ in expected], rtol=2e-6)
    np.testing.assert_allclose(common, [c for _, c in expected], rtol=2e-6, atol=1e-7)


def test_an_agent_has_all_in_common_with_itself_and_nothing_with_a_stranger():
    same, other = sequence_overlap(A, A), sequence_overlap(A, A + 10)
    assert same.known.tolist() == same.common.tolist() == [1, 1]
    assert other.known.tolist() == other.common.tolist() == [0, 0]


def test_what_is_in_common_does_not_depend_on_the_order_of_agents():
    np.testing.assert_allclose(
        sequence_overlap(A, B).common, sequence_overlap(B, A).common, rtol=1e-6
    )


def test_halves_of_one_agent_are_no_more_alike_than_its_runs_show():
    """Sixty-four sequences at random: eight runs show few of them twice."""
    runs = jax.random.randint(jax.random.key(0), (50, 16), 0, 64)
    halves = _overlap(runs[:, :8], runs[:, 8:])
    # Of eight runs each is among the other eight with 1 - (63 / 64)^8.
    assert abs(float(halves.known.mean()) - (1 - (63 / 64) ** 8)) < 0.04
    assert float(halves.common.mean()) < 0.2


def test_draws_and_masks_change_what_is_counted():
    mask = A != 9
    poisoned = np.where(mask, A, 2**31 - 1).astype(np.int32)
    assert distinct_sequences(poisoned, mask=mask).tolist() == [3, 1]
    found = sequence_overlap(poisoned, B, mask_a=mask)
    np.testing.assert_allclose(found.known, [3 / 4, 1])
    found = sequence_overlap(A, B, mask_b=B != 5)
    assert found.common.tolist()[1] == 1.0


def test_a_task_without_runs_has_no_value():
    none = np.zeros_like(B, bool)
    none[0] = True
    assert distinct_sequences(B, mask=none).tolist()[0] == 2
    assert math.isnan(distinct_sequences(B, mask=none)[1])
    assert math.isnan(distinct_sequences(B, draws=5)[0])
    for found in sequence_overlap(A, B, mask_b=none):
        assert np.isnan(found).tolist() == [False, True]


def test_perplexity_by_hand_and_against_the_reference():
    tokens = [[math.log(0.5), math.log(0.25)], [math.log(0.125)], []]
    values = {
        "log_prob": jnp.array([sum(row) for row in tokens], jnp.float32),
        "count": jnp.array([float(len(row)) for row in tokens]),
    }
    assert float(perplexity(values, jnp.ones(3))) == pytest.approx(4.0)
    drawn = perplexity(values, jnp.array([2.0, 0.0, 1.0]))
    assert float(drawn) == pytest.approx(reference.perplexity(2 * tokens[0]))
    assert math.isnan(perplexity(values, jnp.array([0.0, 0.0, 1.0])))


def test_perplexity_of_a_certain_and_of_a_clueless_model():
    count = jnp.array([3.0, 5.0])
    for choices in (1.0, 7.0):
        values = {"log_prob": -count * math.log(choices), "count": count}
        assert float(perplexity(values, jnp.ones(2))) == pytest.approx(choices)


def test_perplexity_has_an_interval_over_tasks():
    values = {
        "log_prob": jnp.array([-1.0, -4.0, -1.0, -4.0]),
        "count": jnp.full(4, 2.0),
    }
    found = bootstrap_interval(jax.random.key(0), values, perplexity, num_resamples=200)
    assert float(found.low) < float(found.point) < float(found.high)
    assert float(found.point) == pytest.approx(math.exp(10 / 8))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (partial(distinct_sequences, A - 2), "sequence: expected >= 0, got -1"),
        (partial(distinct_sequences, A, draws=0), "draws: expected a whole number"),
        (partial(sequence_overlap, A, B[:1]), r"b: expected axes \[N, L\]"),
        (partial(sequence_overlap, A, B, mask_a=B > 0), "mask_a: expected axes"),
        (partial(distinct_sequences, A.astype(np.float32)), "expected type int"),
    ],
)
def test_what_cannot_be_meant_is_refused(call, words):
    with pytest.raises((InputError, ShapeError), match=words):
        call()


_distinct = jax.jit(distinct_sequences, static_argnames="draws")
_overlap = jax.jit(sequence_overlap)
