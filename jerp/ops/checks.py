"""Refusals of values that Python can see, before any of them reaches a device.

Under jit, vmap and grad an argument is a tracer without values: these checks pass it,
and the functions then answer with NaN and a count. Axes and types are seen there too.
A message names the argument, what was expected, what came and where.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import core

from jerp.errors import ConfigError, InputError, ShapeError, UnknownNameError
from jerp.typing import ArrayLike

__all__ = [
    "check_any",
    "check_axes",
    "check_choice",
    "check_count",
    "check_finite",
    "check_ids",
    "check_int32",
    "check_prefix",
    "check_settings",
    "check_values",
    "check_whole",
    "concrete",
]


def concrete(x: ArrayLike) -> np.ndarray | None:
    """The values of an array, or None where only the device will see them.

    Example:
      >>> concrete(3.0).item(), concrete(np.ones(2)).shape
      (3.0, (2,))
    """
    return None if isinstance(x, core.Tracer) else np.asarray(x)


def check_axes(**arguments: tuple[Any, str] | tuple[Any, str, type]) -> None:
    """Raises `ShapeError` unless arrays have the axes, and the type, that are named.

    Args:
      **arguments: the array, its axes, one letter each, and bool or int where the type
        matters. A letter is one length in all arguments; the first with it decides.

    Example:
      >>> reward, mask = np.zeros((4, 3)), np.ones(4, bool)
      >>> check_axes(reward=(reward, "B T"), mask=(mask, "B T", bool))
      Traceback (most recent call last):
      ...
      jerp.errors.ShapeError: mask: expected axes [B, T] = [4, 3], got [4]
    """
    length: dict[str, int] = {}
    for name, (x, axes, *kinds) in arguments.items():
        letters, shape = axes.split(), np.shape(x)
        if len(shape) == len(letters):
            for letter, size in zip(letters, shape, strict=True):
                length.setdefault(letter, size)
        if shape != tuple(length.get(letter, -1) for letter in letters):
            raise ShapeError(_axes_message(name, shape, letters, length))
        for kind in kinds:
            found = getattr(x, "dtype", None) or np.asarray(x).dtype
            if not jnp.issubdtype(found, jnp.bool_ if kind is bool else jnp.integer):
                raise ShapeError(f"{name}: expected type {kind.__name__}, got {found}")
            if kind is int:
                check_int32(name, x)


def check_int32(name: str, x: ArrayLike) -> None:
    """Raises `InputError` if an integer is seen that int32 cannot hold.

    JAX keeps the low 32 bits without a word, and two ids become one.

    Example:
      >>> check_int32("task_id", np.array([7, 2**31 - 1]))
    """
    seen = concrete(x)
    if seen is None or seen.dtype.itemsize < 4 or seen.dtype == np.int32:
        return
    wrong = (seen > np.iinfo(np.int32).max) | (seen < np.iinfo(np.int32).min)
    if wrong.any():
        raise InputError(
            f"{name}: expected int32, got {seen[wrong].flat[0].item()}{_where(wrong)}. "
            "Number the ids, as `np.unique(x, return_inverse=True)` does"
        )


def check_values(
    name: str,
    value: ArrayLike,
    holds: Callable[[np.ndarray], np.ndarray],
    expected: str,
    *,
    mask: ArrayLike | None = None,
) -> None:
    """Raises `InputError` unless `holds` for all that can be seen of `value`.

    A NaN compares false and so is refused by any comparison. With a mask of the same
    shape, only real entries are asked.

    Example:
      >>> check_values("temperature", 0.0, lambda v: v > 0, "> 0")
      Traceback (most recent call last):
      ...
      jerp.errors.InputError: temperature: expected > 0, got 0.0
    """
    seen, real = concrete(value), concrete(True if mask is None else mask)
    if seen is None or real is None:
        return
    try:
        wrong = real & ~np.asarray(holds(seen))
    except TypeError as error:
        raise InputError(f"{name}: expected {expected}, got {value!r}") from error
    if wrong.any():
        first = seen[wrong].flat[0].item()
        raise InputError(f"{name}: expected {expected}, got {first}{_where(wrong)}")


def check_settings(
    **settings: tuple[ArrayLike | None, Callable[[Any], Any], str],
) -> ArrayLike:
    """Raises `InputError` unless each number is in its range; `None` is none.

    Args:
      **settings: the value, what holds for it, and that in words.

    Returns:
      A number to add to the answer: 0, or NaN where only the device sees a value out of
      range, which must not pass for one that is in it.

    Example:
      >>> check_settings(discount=(0.9, lambda v: v <= 1, "at most 1"))
      0.0
    """
    poison: ArrayLike = 0.0
    for name, (value, holds, expected) in settings.items():
        if value is None:
            continue
        check_values(name, value, holds, expected)
        if concrete(value) is None:
            poison = jnp.where(holds(value), poison, jnp.nan)
    return poison


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raises `UnknownNameError` unless `value` is one of `choices`.

    Example:
      >>> check_choice("scale", "std", ("std", "none"))
    """
    if value not in choices:
        raise UnknownNameError(name, str(value), choices)


def check_count(name: str, value: int, *, least: int = 1) -> None:
    """Raises `InputError` unless `value` is a whole number that a shape can have.

    Example:
      >>> check_count("num_groups", 4)
    """
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not (whole and least <= value < 2**31):
        raise InputError(
            f"{name}: expected a whole number >= {least}, known before tracing, got "
            f"{value!r}"
        )


def check_whole(name: str, value: Any, *, least: int, optional: bool = False) -> None:
    """Raises `ConfigError` unless a setting is a whole number of int32 from `least` on.

    Args:
      name: of the setting.
      value: of the setting.
      least: that it can be.
      optional: whether None is a value as well.

    Example:
      >>> check_whole("keep", None, least=1, optional=True)
      >>> check_whole("keep", 0, least=1, optional=True)
      Traceback (most recent call last):
      ...
      jerp.errors.ConfigError: keep: expected at least 1, or None, got 0
    """
    if optional and value is None:
        return
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if whole and least <= value < 2**31:
        return
    expected = "a whole number, " * (not whole) + f"at least {least}"
    if whole and value > least:
        expected = f"less than {2**31}"
    raise ConfigError(
        f"{name}: expected {expected}{', or None' * optional}, got {value!r}"
    )


def check_finite(name: str, x: ArrayLike, mask: ArrayLike) -> None:
    """Raises `InputError` if a real entry is seen to be NaN or infinite.

    Example:
      >>> check_finite("reward", np.array([1.0, np.nan]), np.array([True, False]))
    """
    expected = "finite numbers where mask is True (mask out what is unknown)"
    check_values(name, x, np.isfinite, expected, mask=mask)


def check_ids(name: str, ids: ArrayLike, mask: ArrayLike, *, size: int) -> None:
    """Raises `InputError` if a real id is seen to be outside [0, size).

    Example:
      >>> check_ids("group_id", np.array([0, 1]), np.array([True, True]), size=2)
    """
    check_values(
        name,
        ids,
        lambda v: (v >= 0) & (v < size),
        f"ids in [0, {size}) where mask is True",
        mask=mask,
    )


def check_prefix(name: str, mask: ArrayLike) -> None:
    """Raises `InputError` if a mask is seen that is no prefix along its last axis.

    Example:
      >>> check_prefix("mask", np.array([True, True, False]))
    """
    seen = concrete(mask)
    if seen is None:
        return
    wrong = np.zeros(seen.shape, bool)
    wrong[..., 1:] = seen[..., 1:] & ~seen[..., :-1]
    if wrong.any():
        raise InputError(
            f"{name}: expected a prefix, True up to some length and False after it, "
            f"got True after False{_where(wrong)}"
        )


def check_any(name: str, mask: ArrayLike) -> None:
    """Raises `InputError` if a mask is seen that keeps nothing.

    Example:
      >>> check_any("mask", np.array([False, True]))
    """
    seen = concrete(mask)
    if seen is not None and not seen.any():
        raise InputError(
            f"{name}: expected at least one real entry, got none of {seen.size}. Skip "
            "the batch"
        )


def _axes_message(
    name: str, shape: tuple[int, ...], letters: list[str], length: dict[str, int]
) -> str:
    expected = f"[{', '.join(letters)}]"
    if any(letter in length for letter in letters):
        sizes = ", ".join(str(length.get(letter, letter)) for letter in letters)
        expected += f" = [{sizes}]"
    batch = len(shape) == len(letters) + 1
    hint = ". For a batch of them use jax.vmap" if batch else ""
    return f"{name}: expected axes {expected}, got {list(shape)}{hint}"


def _where(wrong: np.ndarray) -> str:
    """Position of the first wrong entry, in words; nothing for a scalar."""
    if wrong.ndim == 0:
        return ""
    index = ", ".join(str(i) for i in np.argwhere(wrong)[0])
    return f" at [{index}] ({int(wrong.sum())} of {wrong.size} wrong)"
