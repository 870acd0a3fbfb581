import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.harness.actions import NUM_ACTIONS, Action
from jerp.harness.state import (
    FEATURES,
    NO_ACTION,
    NUM_FEATURES,
    NUM_STATUS,
    encode_features,
)

STATUS = np.linspace(-2.0, 2.0, NUM_STATUS).astype(np.float32)


def test_layout():
    assert NUM_FEATURES == len(FEATURES) == len(set(FEATURES)) == 18
    assert FEATURES[0] == "progress"
    assert FEATURES[-1] == "last:none"
    assert FEATURES[NUM_STATUS + Action.CALL_TOOL] == "last:call-tool"


def test_by_hand(transform):
    found = transform(encode_features)(STATUS, np.int32(Action.CHECK))
    expected = [max(-1.0, min(1.0, float(x))) for x in STATUS]
    expected += [1.0 if action == Action.CHECK else 0.0 for action in range(8)]
    np.testing.assert_allclose(found, np.float32(expected), rtol=0, atol=0)
    assert found.dtype == jnp.float32


@pytest.mark.parametrize("last", [*range(NUM_ACTIONS), NO_ACTION])
def test_the_host_gives_the_same_numbers(last):
    host = encode_features(STATUS, np.int32(last), xp=np)
    assert isinstance(host, np.ndarray)
    np.testing.assert_array_equal(host, encode_features(STATUS, np.int32(last)))
    assert host[NUM_STATUS:].sum() == 1


def test_batches():
    status = jnp.stack([STATUS, -STATUS])
    batch = encode_features(status, jnp.array([0, NO_ACTION]))
    rows = jax.vmap(encode_features)(status, jnp.array([0, NO_ACTION]))
    np.testing.assert_array_equal(batch, rows)


def test_the_wrong_number_of_status_values_is_refused():
    with pytest.raises(AssertionError):
        encode_features(np.zeros(9, np.float32), np.int32(0))
