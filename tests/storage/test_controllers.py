from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, StorageError
from jerp.harness.actions import ACTIONS
from jerp.harness.state import FEATURE_VERSION, FEATURES
from jerp.storage.controllers import load_controller, save_controller
from jerp.storage.tensors import save_tree

PARAMS = {
    "params": {
        "Dense_0": {
            "kernel": np.array([[1e-45, -0.0], [np.pi, 3e38]], np.float32),
            "bias": np.zeros(2, np.float32),
        }
    }
}
HYPER = {"temperature": 0.2, "weights": (0.1, 10.0), "seed": 3}


@pytest.fixture
def path(tmp_path):
    return save_controller(
        tmp_path / "controllers" / "awr-0.safetensors", PARAMS, HYPER
    )


def test_a_controller_comes_back_bitwise(path):
    stored = load_controller(path)
    assert jax.tree.structure(stored.params) == jax.tree.structure(PARAMS)
    for one, other in zip(
        jax.tree.leaves(stored.params), jax.tree.leaves(PARAMS), strict=True
    ):
        assert one.dtype == other.dtype and one.tobytes() == other.tobytes()
    assert stored.hyper == {"temperature": 0.2, "weights": [0.1, 10.0], "seed": 3}


def test_a_controller_of_the_first_release_is_read():
    stored = load_controller(Path(__file__).parent / "version1/controller.safetensors")
    assert stored.hyper["temperature"] == 0.2
    for one, other in zip(
        jax.tree.leaves(stored.params), jax.tree.leaves(PARAMS), strict=True
    ):
        assert one.tobytes() == other.tobytes()


def test_device_arrays_are_stored_as_plain_ones(tmp_path):
    path = save_controller(tmp_path / "c", jax.tree.map(jnp.asarray, PARAMS), {})
    kernel = load_controller(path).params["params"]["Dense_0"]["kernel"]
    assert type(kernel) is np.ndarray


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"feature_names": ("x", *FEATURES[1:])}, r'features\[0\]: "progress" there'),
        ({"feature_names": FEATURES[:-1]}, "features: 18 entries there, 17 here"),
        ({"feature_version": FEATURE_VERSION + 1}, "feature_version: 1 there, 2 here"),
        ({"action_names": ACTIONS[::-1]}, r'actions\[0\]: "observe" there'),
    ],
)
def test_another_layout_is_refused_and_the_difference_named(path, layout, message):
    with pytest.raises(ConfigError, match=message):
        load_controller(path, **layout)


def test_a_layout_of_ones_own_is_kept(tmp_path):
    layout = {"feature_names": ("x",), "feature_version": 7, "action_names": ("go",)}
    path = save_controller(tmp_path / "c", PARAMS, {}, **layout)
    load_controller(path, **layout)
    with pytest.raises(ConfigError, match="another layout"):
        load_controller(path)


def test_a_file_that_is_no_controller_is_refused(tmp_path, path):
    other = tmp_path / "other.safetensors"
    save_tree(other, PARAMS, {"format": "something"})
    with pytest.raises(StorageError, match="not a controller of this version"):
        load_controller(other)
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(StorageError, match=r"awr-0\.safetensors: truncated"):
        load_controller(path)
