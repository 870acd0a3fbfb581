import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file

from jerp.errors import StorageError
from jerp.storage.tensors import load_tree, save_tree

TREE = {
    "a": np.arange(6, dtype=np.int32).reshape(2, 3),
    "b": [np.ones((), np.float32), (np.zeros((0, 2), bool), None)],
    "c": {},
    "d": None,
}


def equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            equal(one[key], other[key])
    elif isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            equal(left, right)
    elif one is not None:
        assert one.dtype == other.dtype and one.shape == other.shape
        assert one.tobytes() == other.tobytes()


def test_structure_and_bits_survive(tmp_path):
    path = tmp_path / "t.safetensors"
    save_tree(path, TREE, {"text": "\u2028é", "number": 1.5})
    tree, document = load_tree(path)
    equal(tree, TREE)
    assert document == {"text": "\u2028é", "number": 1.5}


def test_bits_of_odd_floats_and_views_survive(tmp_path):
    path = tmp_path / "t.safetensors"
    odd = np.array([np.nan, -0.0, np.inf, 1e-45, 1], np.float32)
    save_tree(path, {"odd": odd, "turned": TREE["a"].T, "jax": jnp.asarray(odd)}, {})
    tree, _ = load_tree(path)
    equal(tree, {"odd": odd, "turned": np.ascontiguousarray(TREE["a"].T), "jax": odd})


def test_a_lone_array_is_a_tree(tmp_path):
    path = tmp_path / "t.safetensors"
    save_tree(path, TREE["a"], {})
    equal(load_tree(path)[0], TREE["a"])


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": 1.5}, "a: expected an array of a plain dtype.*got float"),
        ({"a": [jnp.zeros(2, jnp.bfloat16)]}, "a/0: .*got bfloat16"),
        ({"a": {3: TREE["a"]}}, "keys of /a: expected text without '/', got 3"),
        ({"a/b": TREE["a"]}, "keys of the tree: .*'a/b'"),
        ({"a": {1, 2}}, "got set"),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path, tree, message):
    with pytest.raises(StorageError, match=message):
        save_tree(tmp_path / "t.safetensors", tree, {})
    assert list(tmp_path.iterdir()) == []


def test_a_document_that_is_not_json_is_refused(tmp_path):
    with pytest.raises(StorageError, match="not JSON-able"):
        save_tree(tmp_path / "t.safetensors", TREE, {"x": TREE["a"]})


def test_every_flipped_bit_and_every_cut_is_noticed(tmp_path):
    path = tmp_path / "t.safetensors"
    save_tree(path, TREE, {"x": 1})
    whole = path.read_bytes()
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 1
        path.write_bytes(flipped)
        with pytest.raises(StorageError, match=r"t\.safetensors"):
            load_tree(path)
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(StorageError, match="truncated or not a safetensors file"):
            load_tree(path)


def test_other_files_are_not_ours(tmp_path):
    path = tmp_path / "t.safetensors"
    with pytest.raises(StorageError, match="there is no such file"):
        load_tree(path)
    save_file({"a": TREE["a"]}, path)
    with pytest.raises(StorageError, match="not written by jerp"):
        load_tree(path)
