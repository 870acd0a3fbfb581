"""What a training run is of, field by field, so that a resumed one is of the same.

Shapes alone do not tell a run from another: a second algorithm would go on where the
first stopped, and nobody would see it in the curve.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import jax
import numpy as np

from jerp.runs.policy.groups import PolicyTask
from jerp.training.group_settings import GroupHyper
from jerp.typing import Key

__all__ = ["described", "run_description"]

_LONGEST = 60
"""Characters of a value; of what is longer there is a part and a digest."""


def run_description(
    task: PolicyTask, hyper: GroupHyper, key: Key, env_params: Any
) -> dict[str, str]:
    """Each setting by its path; equal for runs that do the same.

    Args:
      task: what is trained, in what, how.
      hyper: numbers of the algorithm.
      key: of the run.
      env_params: the training tasks.

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
    }


def described(name: str, value: Any) -> dict[str, str]:
    """A setting by its path, and those inside it by theirs."""
    if not is_dataclass(value) or isinstance(value, type):
        return {name: _text(value)}
    found = {name: type(value).__name__}
    for field in fields(value):
        found |= described(f"{name}/{field.name}", getattr(value, field.name))
    return found


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


def _digest(leaves: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for leaf in leaves:
        array = np.asarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    return f"{len(leaves)} arrays {digest.hexdigest()[:12]}"
