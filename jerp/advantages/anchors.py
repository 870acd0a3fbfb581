"""Ids of states, for advantages among equal states.

On the host: states are Python values, texts above all, and never reach a device. Two
states have the same id iff they are equal in type, shape and value; nothing is rounded,
trimmed, or compared by a digest. What makes two states the same is for the caller to
say, by `key`: a text that leaves out the inventory merges states that differ in it.
"""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from itertools import count
from typing import Any

import jax
import numpy as np

from jerp.advantages.similarity import similar_texts
from jerp.errors import ConfigError, InputError
from jerp.ops.checks import check_values

__all__ = ["anchor_ids"]

Place = tuple[str, ...]
"""Way to a part of a state, such as `("states[3]", "['inventory']")`."""


def anchor_ids(
    states: Iterable[Any],
    *,
    key: Callable[[Any], Any] | None = None,
    lengths: Sequence[int] | np.ndarray | None = None,
    similarity: float | None = None,
    task_id: Sequence[Hashable] | np.ndarray | None = None,
) -> np.ndarray:
    """Numbers states: the same number iff they are the same.

    A state is a text, a number, None, bytes, an Enum member, a NumPy or jax array of
    any shape, or a list, tuple, set, dict or dataclass of such. `1`, `1.0`, `True` and
    `"1"` are four states, as are a list and a tuple; arrays are equal in dtype, shape
    and bytes, and NumPy's scalars are arrays of shape `()` (its texts and bytes are
    texts and bytes). The order of a dict does not matter.

    Args:
      states: N states, those of one episode after those of another.
      key: maps a state to what identifies it, as in `sorted`; None takes all of it.
      lengths: numbers of steps of the B episodes, N together: ids are then laid out as
        `gigpo_advantages` takes them.
      similarity: in (0, 1), for texts alone: texts of one task have one id iff they are
        at least so similar, or connected by a chain of such pairs. See
        `similarity.similar_texts`; all pairs of distinct texts are compared.
      task_id: one an episode, or one a state without `lengths`. Goes with `similarity`;
        exact ids need none, as `gigpo_advantages` keeps tasks apart itself.

    Returns:
      `[N]` int32, or `[B, max(lengths)]` with -1 in padding. Ids are 0, 1, 2, ... as
      their states first come. Which states share one does not depend on the order.

    Raises:
      InputError: a state of another type, with its place inside the state; lengths that
        do not add up.
      ConfigError: `similarity` without `task_id`, or the other way round.

    Deviations: the released code of GiGPO flattens arrays whatever their shape, refuses
      None, takes `1` and `True` for one state, and puts a text into the first cluster
      whose first member is similar, so that its clusters depend on the order.

    Reference: Feng et al., "Group-in-Group Policy Optimization", arXiv:2505.10978,
      eq. 6.

    Example:
      >>> anchor_ids(["hall", "desk", "hall"]).tolist()
      [0, 1, 0]
      >>> anchor_ids(["hall", "desk", "hall"], lengths=[1, 2]).tolist()
      [[0, -1], [1, 0]]
      >>> anchor_ids(
      ...     [{"room": 1, "time": 5}, {"room": 1, "time": 6}], key=lambda s: s["room"]
      ... ).tolist()
      [0, 0]
    """
    if isinstance(states, str | bytes | dict):
        raise InputError(
            f"states: expected a sequence of states, got one {type(states).__name__}"
        )
    if (similarity is None) != (task_id is None):
        raise ConfigError(
            "similarity and task_id: expected both or none, because texts are compared "
            "within one task alone"
        )
    name = "states[{}]" if key is None else "key(states[{}])"
    states = list(states if key is None else map(key, states))
    length = _checked_lengths(lengths, len(states))
    identities = _identities(states, name)
    if similarity is not None:
        tasks = _tasks_of_states(task_id, length)
        identities = _clusters(identities, name, tasks, similarity)
    ids = _numbered(identities)
    return ids if lengths is None else _padded(ids, length)


def _numbered(identities: Sequence[Hashable]) -> np.ndarray:
    """`[N]` int32, by first appearance; without a Python loop over rows."""
    number: defaultdict[Hashable, int] = defaultdict(count().__next__)
    return np.fromiter(map(number.__getitem__, identities), np.int32, len(identities))


def _checked_lengths(lengths: Any, number: int) -> np.ndarray:
    """Steps of each episode, `[B]`; of N episodes of one step without `lengths`."""
    length = np.asarray(np.ones(number) if lengths is None else lengths)
    whole = length.astype(np.int64)
    check_values("lengths", length, lambda v: (v >= 0) & (v == whole), "integers >= 0")
    if length.ndim != 1 or whole.sum() != number:
        raise InputError(
            f"lengths: expected one an episode, together {number} states, got shape "
            f"{length.shape} and together {whole.sum()}"
        )
    return whole


def _padded(ids: np.ndarray, length: np.ndarray) -> np.ndarray:
    """`[B, T]` int32 with -1 after the steps of each episode."""
    real = np.arange(length.max(initial=0)) < length[:, None]
    table = np.full(real.shape, -1, np.int32)
    table[real] = ids
    return table


def _tasks_of_states(task_id: Any, length: np.ndarray) -> list[Hashable]:
    tasks = list(task_id)
    if len(tasks) != len(length):
        raise InputError(
            f"task_id: expected {len(length)}, one an episode (one a state without "
            f"lengths), got {len(tasks)}"
        )
    return [t for t, steps in zip(tasks, length, strict=True) for _ in range(steps)]


def _clusters(
    identities: Sequence[Hashable], name: str, tasks: list[Hashable], similarity: float
) -> list[Hashable]:
    """Task and representative of each text."""
    by_task: dict[Hashable, list[str]] = {}
    for i, (task, text) in enumerate(zip(tasks, identities, strict=True)):
        if not isinstance(text, str):
            raise InputError(
                f"{name.format(i)}: expected a text, because similarity is of texts"
            )
        by_task.setdefault(task, []).append(text)
    first: dict[tuple[Hashable, Hashable], Hashable] = {
        (task, text): (task, representative)
        for task, texts in by_task.items()
        for text, representative in similar_texts(texts, threshold=similarity).items()
    }
    return [first[pair] for pair in zip(tasks, identities, strict=True)]


def _identities(states: list[Any], name: str) -> Sequence[Hashable]:
    """Values that are equal iff the states are; a text is its own."""
    if set(map(type, states)) <= {str}:
        return states
    return [_identity(state, (name.format(i),)) for i, state in enumerate(states)]


def _identity(state: Any, place: Place) -> Hashable:
    kind = type(state)
    if isinstance(state, str) and not isinstance(state, Enum):
        return str.__str__(state)
    if state is None or kind in (bool, int):
        return kind, state
    if kind in (float, complex):
        # Two NaN are one state, 0.0 and -0.0 are two: as the bytes of arrays have it.
        return kind, repr(state)
    if isinstance(state, bytes):
        return bytes, bytes(state)
    if isinstance(state, Enum):
        return kind, state.name
    if kind is np.ndarray or isinstance(state, np.generic | jax.Array):
        return _array_identity(np.asarray(state), place)
    return kind, _parts(state, place)


def _array_identity(array: np.ndarray, place: Place) -> Hashable:
    if array.dtype == object:
        parts = (
            _identity(x, (*place, f".flat[{i}]")) for i, x in enumerate(array.flat)
        )
        return np.ndarray, "object", array.shape, tuple(parts)
    if array.dtype.hasobject:
        raise _unsupported(array, place)
    return np.ndarray, str(array.dtype), array.shape, array.tobytes()


def _parts(state: Any, place: Place) -> Hashable:
    """Identities of what a container holds."""
    if isinstance(state, list | tuple):
        return tuple(_identity(x, (*place, f"[{i}]")) for i, x in enumerate(state))
    if isinstance(state, set | frozenset):
        return frozenset(_identity(x, (*place, "{...}")) for x in state)
    if isinstance(state, dict):
        return frozenset(
            (
                _identity(k, (*place, f".keys({k!r})")),
                _identity(v, (*place, f"[{k!r}]")),
            )
            for k, v in state.items()
        )
    if dataclasses.is_dataclass(state) and not isinstance(state, type):
        names = [f.name for f in dataclasses.fields(state) if f.compare]
        return tuple(_identity(getattr(state, n), (*place, f".{n}")) for n in names)
    raise _unsupported(state, place)


def _unsupported(state: Any, place: Place) -> InputError:
    return InputError(
        f"{''.join(place)}: expected a text, number, None, bytes, Enum member, array, "
        "or a list, tuple, set, dict or dataclass of such, got "
        f"{type(state).__name__}. Give a key that picks what identifies a state"
    )
