import hashlib
import itertools
import json
from dataclasses import asdict, replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.errors import ConfigError, StorageError
from jerp.models.acting import HarnessController
from jerp.models.support import BufferSupport
from jerp.storage import controllers
from jerp.storage.controllers import load_controller, save_controller
from jerp.storage.tensors import load_tree, save_tree

FIRST_RELEASE = Path(__file__).parent / "version1" / "controller"


def controller():
    """Three features, two actions, two hidden units; every attribute is used."""
    return HarnessController(
        {
            "hidden": {
                "kernel": np.array([[1e-45, -0.0], [np.pi, 3e38], [1, 2]], np.float32),
                "bias": np.array([0.5, -0.5], np.float32),
            },
            "logits": {
                "kernel": np.array([[1, -1], [0, 0.25]], np.float32),
                "bias": np.zeros(2, np.float32),
            },
        },
        ("doubt", "cost", "drafts"),
        ("check", "submit"),
        feature_version=7,
        mean=np.array([0.1, 0, 2], np.float32),
        scale=np.array([1, 0.3, 5], np.float32),
        training={"method": "awr", "hyper": {"temperature": 0.2}, "seed": 3},
        support=BufferSupport(
            *(4, 2, 9),
            *((0, 0, 0), (1, 1, 6), (0.5, 0.25, 2)),
            *((6, 3), 0.25, 0.5, 1.0, 3.5),
        ),
    )


def assert_same(one, other):
    assert jax.tree.structure(one.params) == jax.tree.structure(other.params)
    pairs = [*zip(jax.tree.leaves(one.params), jax.tree.leaves(other.params))]  # noqa: B905
    pairs += [(one.mean, other.mean), (one.scale, other.scale)]
    for array, twin in pairs:
        assert array.dtype == twin.dtype and array.tobytes() == twin.tobytes()
    for name in ("feature_names", "action_names", "feature_version", "training"):
        assert getattr(one, name) == getattr(other, name)
    assert one.support == other.support


@pytest.fixture
def folder(tmp_path):
    return save_controller(tmp_path / "controllers" / "awr-0", controller())


def test_a_controller_comes_back_bitwise(folder):
    assert_same(load_controller(folder), controller())
    names = sorted(path.name for path in folder.parent.rglob("*"))
    assert names == ["awr-0", "controller.json", "controller.safetensors"]


def test_a_controller_of_the_first_release_is_read():
    assert_same(load_controller(FIRST_RELEASE), controller())


def test_every_field_has_its_place_in_the_documentation():
    page = (Path(__file__).parents[2] / "docs" / "controllers.md").read_text()
    document = json.loads((FIRST_RELEASE / "controller.json").read_text())
    names = {*document, *document["support"], *document["normalization"]}
    assert [name for name in names if f"`{name}`" not in page] == []


def test_a_controller_without_normalisation_and_support_comes_back(tmp_path):
    bare = replace(controller(), mean=None, scale=None, support=None)
    loaded = load_controller(save_controller(tmp_path / "c", bare))
    assert loaded.mean is None and loaded.scale is None and loaded.support is None


def test_device_arrays_are_stored_as_plain_ones(tmp_path):
    device = replace(
        controller(), params=jax.tree.map(jnp.asarray, controller().params)
    )
    kernel = load_controller(save_controller(tmp_path / "c", device)).params["hidden"]
    assert type(kernel["kernel"]) is np.ndarray


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (
            {"feature_names": ("x", "cost", "drafts")},
            r'feature_names\[0\]: "doubt" there, "x" here',
        ),
        ({"feature_names": ("doubt",)}, "feature_names: 3 entries there, 1 here"),
        ({"feature_version": 8}, "feature_version: 7 there, 8 here"),
        ({"action_names": ("submit", "check")}, r'action_names\[0\]: "check" there'),
    ],
)
def test_another_layout_is_refused_and_the_difference_named(folder, layout, message):
    with pytest.raises(ConfigError, match=message):
        load_controller(folder, **layout)


def test_the_same_layout_is_accepted(folder):
    names = ["doubt", "cost", "drafts"]
    actions = ("check", "submit")
    load_controller(
        folder, feature_names=names, feature_version=7, action_names=actions
    )


def rewrite(folder, **changes):
    path = folder / "controller.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_newer_version_asks_for_a_newer_jerp(folder):
    rewrite(folder, schema_version=2, invention=1)
    with pytest.raises(StorageError, match=r"got 2; upgrade jerp"):
        load_controller(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "something"}, "not a controller's document"),
        ({"schema_version": None}, "not a controller's document"),
        ({"action_names": ["submit", "check"]}, "altered since it was written"),
    ],
)
def test_a_document_that_is_not_the_written_one_is_refused(folder, changes, message):
    rewrite(folder, **changes)
    with pytest.raises(StorageError, match=message):
        load_controller(folder)


def resign(folder, **changes):
    """What `rewrite` does, by a hand that mends the checksum; ... takes a field out."""
    path = folder / "controller.json"
    document = {**json.loads(path.read_text()), **changes}
    document = {name: value for name, value in document.items() if value is not ...}
    path.write_text(json.dumps(document))
    params, header = load_tree(folder / "controller.safetensors")
    header["document_sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    save_tree(folder / "controller.safetensors", params, header)


SUPPORT = asdict(controller().support)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"action_names": ...}, "missing field action_names; train again"),
        ({"feature_names": ...}, "missing field feature_names"),
        ({"feature_names": None}, "field feature_names: expected a list of texts, got"),
        ({"action_names": [1, 2]}, "action_names: expected different texts"),
        (
            {"feature_version": None},
            "feature_version: expected a whole number, got",
        ),
        ({"feature_version": "q"}, "field feature_version: .* got 'q'"),
        ({"feature_version": True}, "field feature_version: .* got True"),
        ({"training": None}, "field training: expected an object, got null"),
        ({"normalization": None}, "field normalization: expected an object, got null"),
        ({"normalization": {"mean": [0, 0, 0]}}, r"missing field normalization\.scale"),
        ({"normalization": {"mean": ["a"] * 3, "scale": [1] * 3}}, "mean: expected 3"),
        ({"normalization": {"params": 1}}, r"missing field normalization\.mean"),
        ({"support": {}}, r"missing field support\.action_counts"),
        ({"support": {**SUPPORT, "x": 1}}, r"unknown field support\.x"),
        (
            {"support": {**SUPPORT, "feature_mean": [0.5]}},
            r"feature_mean: expected 3",
        ),
        ({"schema_version": 0}, "expected schema version 1, got 0"),
        ({"schema_version": -3}, "expected schema version 1, got -3"),
        ({"schema_version": True}, "not a controller's document"),
    ],
)
def test_a_field_that_jerp_did_not_write_is_named(folder, changes, message):
    resign(folder, **changes)
    with pytest.raises(StorageError, match=message):
        load_controller(folder, feature_names=("doubt", "cost", "drafts"))


def test_a_document_nested_beyond_reading_is_refused(folder):
    path = folder / "controller.json"
    path.write_text("[" * 100_000)
    with pytest.raises(StorageError, match="not valid JSON"):
        load_controller(folder)


@pytest.mark.parametrize("path", [None, 5, b"folder"])
def test_what_is_no_path_is_refused(path):
    for use in (load_controller, lambda path: save_controller(path, controller())):
        with pytest.raises(ConfigError, match="folder: expected a path, as text"):
            use(path)


def test_damaged_files_are_refused_by_name(folder):
    tensors, document = folder / "controller.safetensors", folder / "controller.json"
    whole = tensors.read_bytes()
    tensors.write_bytes(whole[:-5])
    with pytest.raises(StorageError, match=r"controller\.safetensors: truncated"):
        load_controller(folder)
    tensors.write_bytes(whole[:-1] + b"\x7f")
    with pytest.raises(StorageError, match=r"controller\.safetensors: altered"):
        load_controller(folder)
    document.write_text(document.read_text()[:-5])
    with pytest.raises(StorageError, match=r"controller\.json: truncated"):
        load_controller(folder)
    document.unlink()
    with pytest.raises(StorageError, match=r"has no controller\.json"):
        load_controller(folder)


def test_parameters_that_are_not_finite_are_refused(folder):
    path = folder / "controller.safetensors"
    params, header = load_tree(path)
    params["logits"]["bias"] = np.array([0, np.nan], np.float32)
    save_tree(path, params, header)
    with pytest.raises(StorageError, match=r"params\.logits\.bias: .* got NaN"):
        load_controller(folder)


def test_only_a_controllers_folder_is_replaced(folder):
    other = replace(controller(), training={})
    assert load_controller(save_controller(folder, other)).training == {}
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds 'notes\.txt'"):
        save_controller(folder, other)


def test_what_json_cannot_hold_leaves_nothing(tmp_path):
    with pytest.raises(StorageError, match="expected plain numbers"):
        save_controller(tmp_path / "c", replace(controller(), training={"x": np.nan}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("moment", "is_before", "expected"),
    [
        ("read_bytes", True, "new"),
        ("read_bytes", False, "new"),
        ("load_tree", True, "new"),
        ("load_tree", False, "old"),
    ],
)
def test_a_controller_replaced_while_it_is_read_is_never_mixed(
    folder, monkeypatch, moment, is_before, expected
):
    """Its replacement has other parameters and another normalisation."""
    params = jax.tree.map(lambda x: x + np.float32(1), controller().params)
    new = replace(controller(), params=params, mean=np.ones(3, np.float32))
    real = getattr(controllers, moment)

    def racing(path):
        monkeypatch.setattr(controllers, moment, real)
        if is_before:
            save_controller(folder, new)
            return real(path)
        found = real(path)
        save_controller(folder, new)
        return found

    monkeypatch.setattr(controllers, moment, racing)
    assert_same(load_controller(folder), {"old": controller(), "new": new}[expected])


def test_a_controller_that_never_rests_is_refused(folder, monkeypatch):
    real, count = controllers.load_tree, itertools.count()

    def racing(path):
        save_controller(folder, replace(controller(), training={"n": next(count)}))
        return real(path)

    monkeypatch.setattr(controllers, "load_tree", racing)
    with pytest.raises(StorageError, match="altered since it was written"):
        load_controller(folder)
