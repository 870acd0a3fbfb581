"""What a training run is of, field by field, so that a resumed one is of the same.

Shapes alone do not tell a run from another: a second algorithm would go on where the
first stopped, and nobody would see it in the curve.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from jerp.runs.policy.groups import PolicyTask
from jerp.training.group_settings import GroupHyper
from jerp.typing import Key

__all__ = ["described", "params_digest", "run_description"]

_LONGEST = 60
"""Characters of a value; of what is longer there is a part and a digest."""

_SAMPLED = 1024
"""Elements of an array that a digest sees: parameters may be gigabytes."""


def run_description(
    task: PolicyTask,
    hyper: GroupHyper,
    key: Key,
    env_params: Any,
    *,
    play: Any = None,
    reference: Any = None,
    frozen: Any = None,
) -> dict[str, str]:
    """Each setting by its path; equal for runs that do the same.

    Args:
      task: what is trained, in what, how.
      hyper: numbers of the algorithm.
      key: of the run.
      env_params: the training tasks.
      play: what plays from the host, or None.
      reference: parameters to stay near to, or None; of large arrays, and of those of
        other processes, a digest sees a part, and shapes.
      frozen: parameters that are not trained, or None; likewise.

    Returns:
      Short texts, such as `{"hyper/learning_rate": "0.001", ...}`.

    Example:
      >>> from jerp.training.group_settings import GroupConfig
      >>> described("config", GroupConfig(num_groups=4))["config/num_groups"]
      '4'
    """
    return {
        **described("task", task),
        **described("hyper", hyper),
        "key": _short(str(np.asarray(jax.random.key_data(key)).tolist())),
        "tasks": _digest(jax.tree.leaves(env_params)),
        "reference": params_digest(reference),
        "frozen": params_digest(frozen),
        **described("play", play),
    }


def params_digest(params: Any) -> str:
    """Tells parameters from others in a few words.

    Args:
      params: a tree of arrays, or None; of large ones, and of those of other processes,
        the digest sees a part, and shapes.

    Example:
      >>> params_digest(None), params_digest({"w": np.zeros(3)})
      ('none', '1 arrays 3c1bfd9b518c')
    """
    return _digest(map(_sampled, jax.tree.leaves(params)))


def described(name: str, value: Any) -> dict[str, str]:
    """A setting by its path, and those inside it by theirs.

    An executor is what its fingerprint says, whatever it counts; of a dataclass those
    fields count that make it equal to another.
    """
    if isinstance(value, partial):
        given = {**dict(enumerate(value.args)), **value.keywords}
        return described(name, value.func) | {
            path: text
            for argument, setting in given.items()
            for path, text in described(f"{name}/{argument}", setting).items()
        }
    if isinstance(fingerprint := getattr(value, "fingerprint", None), str):
        return {name: _short(fingerprint)}
    if is_dataclass(value) and not isinstance(value, type):
        compared = [field.name for field in fields(value) if field.compare]
        inside = {field: getattr(value, field) for field in compared}
    elif _says_its_address(value):
        inside = {k: v for k, v in vars(value).items() if not k.startswith("_")}
    else:
        return {name: _text(value)}
    found = {name: type(value).__name__}
    for part, given in inside.items():
        found |= described(f"{name}/{part}", given)
    return found


def _says_its_address(value: Any) -> bool:
    """Of a plain object, whose text does not say what it is; functions have names."""
    plain = hasattr(value, "__dict__") and not callable(value)
    return plain and re.search(r" at 0x[0-9a-f]+", repr(value)) is not None


def _text(value: Any) -> str:
    if isinstance(value, (jax.Array, np.ndarray, np.generic)):
        array = np.asarray(value)
        # A number is the same whether it came as Python's or as an array.
        return _text(array.item()) if array.ndim == 0 else _digest([array])
    if isinstance(value, float):
        return str(np.float32(value)).removesuffix(".0")
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return _short(repr(value))
    # Where an object lies in memory is not what it is.
    return _short(re.sub(r" at 0x[0-9a-f]+", "", repr(value)))


def _short(text: str) -> str:
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}... {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _sampled(leaf: Any) -> Any:
    """As many elements as a digest shall see, evenly spaced; their shape is told."""
    shape = np.shape(leaf)
    if not getattr(leaf, "is_fully_addressable", True):
        return np.asarray(shape)
    flat = leaf.reshape(-1)
    kept = np.asarray(flat[:: max(flat.size // _SAMPLED, 1)], np.float64)
    return np.concatenate([np.asarray(shape, np.float64), kept])


def _digest(leaves: Iterable[Any]) -> str:
    digest, number = hashlib.sha256(), 0
    for leaf in leaves:
        array, number = np.asarray(leaf), number + 1
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return f"{number} arrays {digest.hexdigest()[:12]}" if number else "none"
