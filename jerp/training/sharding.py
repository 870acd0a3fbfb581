"""Where the arrays of training lie on a mesh of devices, by one table of rules.

A mesh has three axes. Episodes are dealt out over `data` and `fsdp`; parameters, and
the optimizer's moments with them, are cut over `fsdp` and `tensor` as `RULES` says.
Nothing else changes: programs are written for one device, XLA cuts them up and puts the
communication in, and the numbers are the same up to the order of sums.

Layouts are given from outside (`shard`) and kept inside a program (`keep_layout`,
`split_batch`, `replicate`), which needs `jax.set_mesh(mesh)` around its call and does
nothing without. No axis is left out in silence: `describe_layout` says where and why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from jerp.errors import ConfigError
from jerp.typing import Array

__all__ = ["AXES", "RULES", "batch_shardings", "describe_layout", "keep_layout"]
__all__ += ["make_mesh", "replicate", "shard", "split_batch", "state_shardings"]

Tree = TypeVar("Tree")

AXES = ("data", "fsdp", "tensor")
"""Of a mesh; neighbouring devices share the last."""

BATCH = ("data", "fsdp")
"""What the first axis of a batch is cut over."""

RULES = (
    (r"embedding|unembedding", P(("tensor", "fsdp"), None)),
    (r"layer_\d+/(qkv|gate_up)", P("fsdp", "tensor")),
    (r"layer_\d+/(out|down)", P("tensor", "fsdp")),
    (r"layer_\d+/qkv_bias", P("tensor")),
    (r"layer_\d+/\w+_norm|final_norm", P(None)),
    (r"layer_\d+/(q|k|v|gate|up)/a", P("fsdp", None)),
    (r"layer_\d+/(q|k|v|gate|up)/b", P(None, "tensor")),
    (r"layer_\d+/(o|down)/a", P("tensor", None)),
    (r"layer_\d+/(o|down)/b", P(None, "fsdp")),
    (r"value/kernel", P(None)),
)
"""The end of a leaf's path, and the mesh axes that each of its axes is cut over.

Matrices are `[in, out]`. What widens is cut by columns over `tensor`, what narrows by
rows; `fsdp` cuts the other axis, and is gathered when a layer computes. Embeddings are
cut by rows alone: were their features cut, those of all activations after them would
be. Vectors are small and whole, as are numbers without axes. The first rule that
matches counts; what none matches is whole.
"""


class _Placement(NamedTuple):
    spec: P
    note: str


def make_mesh(
    *,
    data: int = 1,
    fsdp: int = 1,
    tensor: int = 1,
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """A mesh of all devices, those of other processes included.

    Args:
      data: copies of the parameters, each with episodes of its own.
      fsdp: parts that the parameters are cut into, each with episodes of its own.
      tensor: parts that the products of a layer are cut into, which share episodes.
      devices: all by default.

    Returns:
      The mesh, with axes `AXES`.

    Raises:
      ConfigError: sizes whose product is not the number of devices.

    Example:
      >>> make_mesh(devices=jax.devices()[:1]).axis_names
      ('data', 'fsdp', 'tensor')
    """
    devices = jax.devices() if devices is None else list(devices)
    sizes = dict(zip(AXES, (data, fsdp, tensor), strict=True))
    for name, size in sizes.items():
        if size < 1:
            raise ConfigError(f"{name}: expected at least 1, got {size}")
    if data * fsdp * tensor != len(devices):
        raise ConfigError(
            f"data * fsdp * tensor: expected {len(devices)}, the number of devices, "
            f"got {data} * {fsdp} * {tensor} = {data * fsdp * tensor}"
        )
    kinds = (AxisType.Auto,) * len(AXES)
    return jax.make_mesh((data, fsdp, tensor), AXES, kinds, devices=devices)


def state_shardings(mesh: Mesh, state: Any) -> Any:
    """The layout of parameters or of a `TrainState`, by `RULES`.

    The moments of an optimizer carry the names of their parameters and lie as they do;
    counters and keys are whole on every device, and so is an axis that a mesh axis does
    not divide.

    Args:
      mesh: of `make_mesh`.
      state: arrays, or their shapes (`jax.eval_shape`).

    Returns:
      A tree of `NamedSharding`, for `jax.device_put`, `out_shardings` or checkpoints.

    Example:
      >>> mesh = make_mesh(devices=jax.devices()[:1])
      >>> shapes = {"layer_0": {"qkv": jax.ShapeDtypeStruct((8, 24), "float32")}}
      >>> tuple(state_shardings(mesh, shapes)["layer_0"]["qkv"].spec)
      ('fsdp', 'tensor')
    """
    return jax.tree_util.tree_map_with_path(
        lambda path, x: NamedSharding(mesh, _place(mesh, path, x).spec), state
    )


def batch_shardings(mesh: Mesh, batch: Any) -> Any:
    """The layout of a batch: its first axis is dealt out over `data` and `fsdp`.

    Args:
      mesh: of `make_mesh`.
      batch: leaves `[B, ...]`, such as a `Trajectory`.

    Returns:
      A tree of `NamedSharding`.

    Raises:
      ConfigError: a batch that is no multiple of `data * fsdp`.

    Example:
      >>> mesh = make_mesh(devices=jax.devices()[:1])
      >>> tuple(batch_shardings(mesh, {"reward": np.zeros((4, 3))})["reward"].spec)
      (('data', 'fsdp'),)
    """
    _check_batch(mesh, batch, 0)
    sharding = NamedSharding(mesh, P(BATCH))
    return jax.tree.map(lambda x: sharding, batch)


def shard(mesh: Mesh, state: Tree) -> Tree:
    """Parameters, or a `TrainState`, laid out on a mesh.

    Args:
      mesh: of `make_mesh`; of several processes, each of which gives the same arrays.
      state: arrays.

    Returns:
      The same numbers. What lay so before is not copied.

    Example:
      >>> mesh = make_mesh(devices=jax.devices()[:1])
      >>> shard(mesh, {"embedding": np.ones((8, 2))})["embedding"].is_fully_replicated
      True
    """
    return jax.tree.map(_put, state, state_shardings(mesh, state))


def describe_layout(mesh: Mesh, state: Any) -> str:
    """A line a leaf: path, shape, what is cut over which axis, and what is not.

    Args:
      mesh: of `make_mesh`.
      state: parameters or a `TrainState`, as arrays or shapes.

    Returns:
      Text; a note begins with `!` where an axis of the mesh is left out.

    Example:
      >>> mesh = make_mesh(devices=jax.devices()[:1])
      >>> state = {"layer_0": {"out": np.ones((4, 8))}, "table": np.ones(3)}
      >>> print(describe_layout(mesh, state))
      layer_0/out  4x8  tensor,fsdp
      table        3    whole        ! no rule for this name
    """
    rows = []
    for path, x in jax.tree_util.tree_leaves_with_path(state):
        spec, note = _place(mesh, path, x)
        shape = "x".join(map(str, np.shape(x))) or "-"
        rows.append((_name(path), shape, _shown(spec), note))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = ([c.ljust(w) for c, w in zip(row, widths, strict=True)] for row in rows)
    return "\n".join("  ".join(row).rstrip() for row in cells)


def keep_layout(state: Tree) -> Tree:
    """Keeps parameters or a `TrainState` in their layout, inside a program."""
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return state
    return jax.tree_util.tree_map_with_path(
        lambda path, x: jax.lax.with_sharding_constraint(x, _place(mesh, path, x).spec),
        state,
    )


def split_batch(batch: Tree, *, axis: int = 0) -> Tree:
    """Deals episodes out over the mesh, inside a program.

    Args:
      batch: leaves whose `axis` is that of episodes.
      axis: the axes before it are whole: minibatches, which come one after the other.

    Raises:
      ConfigError: episodes that are no multiple of `data * fsdp`.
    """
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        return batch
    _check_batch(mesh, batch, axis)
    spec = P(*(None,) * axis, BATCH)
    return jax.lax.with_sharding_constraint(batch, spec)


def replicate(tree: Tree) -> Tree:
    """Makes arrays whole on every device, inside a program: what a host will read."""
    if jax.sharding.get_abstract_mesh().empty:
        return tree
    return jax.lax.with_sharding_constraint(tree, P())


def _put(x: Any, sharding: NamedSharding) -> Array:
    """On the devices of a sharding; of several processes, each puts its own."""
    if sharding.is_fully_addressable or not getattr(x, "is_fully_addressable", True):
        return jax.device_put(x, sharding)
    if isinstance(x, Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key):
        data = _put(jax.random.key_data(x), sharding)
        return jax.random.wrap_key_data(data, impl=jax.random.key_impl(x))
    whole = np.asarray(x)
    return jax.make_array_from_callback(whole.shape, sharding, whole.__getitem__)


def _place(mesh: Mesh | AbstractMesh, path: Any, leaf: Any) -> _Placement:
    """What `RULES` say of a leaf, less the axes that do not divide it."""
    shape, name = np.shape(leaf), _name(path)
    if not shape:
        return _Placement(P(), "")
    axes = next((axes for rule, axes in RULES if _ends_with(name, rule)), None)
    if axes is None:
        return _Placement(P(), "! no rule for this name")
    if len(axes) != len(shape):
        return _Placement(P(), f"! the rule is for {len(axes)} axes")
    spec, notes = [], []
    for size, axis in zip(shape, axes, strict=True):
        kept = ()
        for name in _names(axis):
            if size % mesh.shape[name]:
                notes.append(f"! {name}={mesh.shape[name]} does not divide {size}")
            else:
                kept, size = (*kept, name), size // mesh.shape[name]
        spec.append(kept or None)
    return _Placement(P(*spec), " ".join(notes))


def _names(axis: Any) -> tuple[str, ...]:
    """Of the mesh axes that an axis of an array is cut over."""
    return (axis,) if isinstance(axis, str) else tuple(axis or ())


def _ends_with(name: str, rule: str) -> bool:
    return re.search(rf"(?:^|/)(?:{rule})$", name) is not None


def _check_batch(mesh: Mesh | AbstractMesh, batch: Any, axis: int) -> None:
    parts = mesh.shape["data"] * mesh.shape["fsdp"]
    for path, leaf in jax.tree_util.tree_leaves_with_path(batch):
        size = np.shape(leaf)[axis]
        if size % parts:
            raise ConfigError(
                f"{_name(path)}: expected a multiple of data * fsdp = {parts} episodes "
                f"to deal out over the mesh, got {size}; take more episodes, fewer "
                "minibatches or microbatches, or a larger `tensor`"
            )


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator="/")


def _shown(spec: P) -> str:
    cuts = ["+".join(_names(axis)) or "-" for axis in spec]
    return ",".join(cuts) if any(spec) else "whole"
