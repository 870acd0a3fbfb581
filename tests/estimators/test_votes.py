"""One vote a task, cast once: by hand, pair by pair, and never taken back."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jerp.errors import ShapeError
from jerp.estimators.votes import first_discordant
from tests.reference import sequential as reference

NET = np.array([0, 1, -1, -1, 1, 0, 1, 1, -1, 1])
TASK = np.array([4, 4, 4, 9, 9, -2, 7, 7, -2, -2], np.int32)
MASK = np.array([1, 1, 1, 0, 1, 1, 0, 0, 1, 1], bool)


@pytest.fixture(autouse=True)
def _strict_dtypes():
    with jax.numpy_dtype_promotion("strict"):
        yield


def votes(net, task, mask):
    return first_discordant(net > 0, net < 0, task=task, mask=mask)


def test_by_hand(transform):
    found = transform(votes)(NET, TASK, MASK)
    assert found.tolist() == [0, 1, 0, 0, 1, 0, 0, 0, -1, 0]
    assert found.dtype == jnp.int32
    everything = first_discordant(NET > 0, NET < 0, task=TASK)
    assert everything.tolist() == [0, 1, 0, -1, 0, 0, 1, 0, -1, 0]


ROW = st.tuples(st.integers(-1, 1), st.integers(0, 3), st.booleans())
compiled = jax.jit(votes)


@settings(deadline=None)
@given(st.lists(ROW, min_size=12, max_size=12), st.integers(0, 12))
def test_pair_by_pair_and_later_pairs_change_nothing(rows, known):
    net, task, mask = (np.array(column) for column in zip(*rows, strict=True))
    found = np.asarray(compiled(net, task, mask))
    gain, loss = (net > 0).astype(int), (net < 0).astype(int)
    expected = reference.first_discordant(gain.tolist(), loss.tolist(), task, mask)
    assert found.tolist() == expected
    early = np.asarray(compiled(net, task, mask & (np.arange(12) < known)))
    np.testing.assert_array_equal(early[:known], found[:known])
    assert not early[known:].any()


def test_of_one_pair_a_task_the_votes_are_its_signs():
    task = np.arange(10)
    found = compiled(NET, task, MASK)
    np.testing.assert_array_equal(found, np.where(MASK, NET, 0))


def test_none_at_all():
    empty = np.zeros(0, bool)
    assert first_discordant(empty, empty, task=np.zeros(0, int)).shape == (0,)
    assert not compiled(NET, TASK, np.zeros(10, bool)).any()


def test_one_trace_and_axes():
    traced = jax.jit(chex.assert_max_traces(votes, n=1))
    assert (traced(NET, TASK, MASK) != traced(-NET, TASK, MASK)).any()
    with pytest.raises(ShapeError, match=r"task: expected axes \[N\] = \[10\]"):
        first_discordant(NET > 0, NET < 0, task=TASK[:3])
    with pytest.raises(ShapeError, match="gain: expected type bool"):
        first_discordant(NET, NET < 0, task=TASK)
