"""One number in [0, 1) for an integer seed, the same on every machine.

For draws on the host that must be repeatable from a log: integer arithmetic alone, no
state, no generator whose stream might change with a library's version.
"""

from __future__ import annotations

import operator
from typing import SupportsIndex

from jerp.errors import InputError

__all__ = ["uniform"]

MASK = (1 << 64) - 1


def uniform(seed: SupportsIndex | None) -> float:
    """A number in [0, 1) that depends on `seed` alone: the first of SplitMix64.

        z = seed + 9e3779b97f4a7c15
        z = (z ^ (z >> 30)) * bf58476d1ce4e5b9
        z = (z ^ (z >> 27)) * 94d049bb133111eb
        u = ((z ^ (z >> 31)) >> 11) / 2**53

    modulo 2**64, the constants being hexadecimal. Consecutive seeds are as good as any.

    Args:
      seed: 0 to 2**64 - 1.

    Raises:
      InputError: it is not such an integer.

    Reference: Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    OOPSLA 2014.

    Example:
      >>> uniform(0)
      0.8833108082136426
    """
    try:
        z = -1 if seed is None or isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        z = -1
    if not 0 <= z < 1 << 64:
        raise InputError(
            f"seed: expected an integer from 0 to 2**64 - 1, got {seed!r}; give every "
            "decision another one, or ask for greedy=True"
        )
    z = (z + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53
