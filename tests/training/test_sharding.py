"""Layouts by hand; one iteration on eight devices as on one, episodes included.

Eight devices are a matter of how a process is started: `tests/training/
sharded_program.py` is run in one of its own.
"""

import doctest
import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType

from jerp.errors import ConfigError
from jerp.training import sharding
from jerp.training.sharding import (
    batch_shardings,
    describe_layout,
    keep_layout,
    make_mesh,
    replicate,
    shard,
    split_batch,
    state_shardings,
)

EIGHT = "--xla_force_host_platform_device_count=8"

# Of two by two by two devices that are not there: layouts are a matter of shapes.
MESH = AbstractMesh((2, 2, 2), sharding.AXES, (AxisType.Auto,) * 3)


def shape(*sizes):
    return jax.ShapeDtypeStruct(sizes, np.float32)


LAYER = {
    "qkv": shape(8, 24),
    "qkv_bias": shape(24),
    "out": shape(8, 8),
    "gate_up": shape(8, 64),
    "down": shape(32, 8),
    "attention_norm": shape(8),
}
ADAPTERS = {
    name: {"a": shape(rows, 3), "b": shape(3, columns)}
    for name, (rows, columns) in {"q": (8, 8), "down": (32, 8)}.items()
}


def specs(tree):
    leaves = jax.tree_util.tree_leaves_with_path(state_shardings(MESH, tree))
    return {
        jax.tree_util.keystr(path, simple=True, separator="/"): tuple(leaf.spec)
        for path, leaf in leaves
    }


def test_the_layout_of_a_decoder_by_hand():
    assert specs({"decoder": {"embedding": shape(40, 8), "layer_3": LAYER}}) == {
        "decoder/embedding": (("tensor", "fsdp"), None),
        "decoder/layer_3/attention_norm": (None,),
        "decoder/layer_3/down": ("tensor", "fsdp"),
        "decoder/layer_3/gate_up": ("fsdp", "tensor"),
        "decoder/layer_3/out": ("tensor", "fsdp"),
        "decoder/layer_3/qkv": ("fsdp", "tensor"),
        "decoder/layer_3/qkv_bias": ("tensor",),
    }


def test_the_layout_of_adapters_is_that_of_their_matrix():
    assert specs({"adapters": {"layer_0": ADAPTERS}}) == {
        "adapters/layer_0/down/a": ("tensor", None),
        "adapters/layer_0/down/b": (None, "fsdp"),
        "adapters/layer_0/q/a": ("fsdp", None),
        "adapters/layer_0/q/b": (None, "tensor"),
    }


def test_what_is_left_out_is_said():
    tree = {
        "embedding": shape(42, 8),
        "layer_0": {"qkv": shape(7, 24), "out": shape(2, 8, 8)},
        "table": shape(8),
        "count": shape(),
    }
    assert describe_layout(MESH, tree).splitlines() == [
        "count        -      whole",
        "embedding    42x8   tensor,-  ! fsdp=2 does not divide 21",
        "layer_0/out  2x8x8  whole     ! the rule is for 2 axes",
        "layer_0/qkv  7x24   -,tensor  ! fsdp=2 does not divide 7",
        "table        8      whole     ! no rule for this name",
    ]


def test_batches_are_dealt_out_or_refused():
    found = batch_shardings(MESH, {"reward": shape(8, 5), "score": shape(8)})
    assert {tuple(x.spec) for x in jax.tree.leaves(found)} == {(("data", "fsdp"),)}
    with pytest.raises(
        ConfigError, match=r"score: expected a multiple of data \* fsdp"
    ):
        batch_shardings(MESH, {"reward": shape(8, 5), "score": shape(6)})


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"data": 0}, "data: expected at least 1, got 0"),
        ({"tensor": 3}, r"data \* fsdp \* tensor: expected 1, .+ got 1 \* 1 \* 3 = 3"),
    ],
)
def test_a_mesh_is_of_the_devices_there_are(sizes, message):
    with pytest.raises(ConfigError, match=message):
        make_mesh(**sizes)


def test_without_a_mesh_nothing_happens():
    tree = {"layer_0": {"out": np.ones((4, 2))}}
    assert keep_layout(tree) is split_batch(tree) is replicate(tree) is tree


def test_a_mesh_of_one_device():
    mesh = make_mesh()
    tree = {"layer_0": {"out": np.arange(8.0, dtype=np.float32).reshape(4, 2)}}
    with jax.set_mesh(mesh):
        kept = jax.jit(lambda x: replicate(split_batch(keep_layout(x))))(
            shard(mesh, tree)
        )
    np.testing.assert_array_equal(kept["layer_0"]["out"], tree["layer_0"]["out"])


def test_examples():
    assert doctest.testmod(sharding).failed == 0


def differences(*cases):
    program = [sys.executable, "-m", "tests.training.sharded_program", *cases]
    done = subprocess.run(
        program,
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {EIGHT}"},
    )
    assert done.returncode == 0, done.stderr
    assert "rematerialization" not in done.stderr, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def check(case, found):
    assert found["episodes"], "random draws depend on the layout"
    errors = {
        name: found[name] for name in ("params", "gradient", "metrics", "log_prob")
    }
    assert max(errors.values()) < 1e-5, (case, errors)
    assert found["moved"] > 5e-4 and found["gradient_size"] > 1e-3
    assert abs(found["loss"]) > 1e-2
    sizes = [int(size) for size in case.split("/")[1].split("x")]
    parts = {path: n for path, n in found["parts"].items() if "layer_0" in path}
    matrices = [n for path, n in parts.items() if path.endswith(("qkv", "down"))]
    pairs = [n for path, n in parts.items() if path.endswith(("q/a", "down/b"))]
    assert len(matrices) + len(pairs) >= 6
    assert set(matrices) == {sizes[1] * sizes[2]} and set(pairs) <= {sizes[1]}
    # Not all devices do all. How XLA divides what is this small is its own affair.
    assert found["work"] < 0.6, (case, found["work"])


@pytest.mark.parametrize(
    "name", ["token", pytest.param("step", marks=pytest.mark.slow)]
)
def test_an_iteration_on_eight_devices_is_that_on_one(name):
    """Step policies are trained on as many by the program of docs/scale.md, too."""
    case = f"{name}/2x2x2"
    found = differences(case)[case]
    check(case, found)
    # An eighth, and what communication and whole vectors add.
    assert found["work"] < 0.25, (case, found["work"])


@pytest.mark.slow
def test_meshes_of_all_kinds():
    meshes = ("8x1x1", "1x8x1", "1x1x8", "4x1x2")
    cases = [f"{name}/{mesh}" for name in ("step", "token") for mesh in meshes]
    for case, found in differences(*cases, "minibatches/2x2x2").items():
        check(case, found)
