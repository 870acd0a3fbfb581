"""Arrays as the plain lists that JSON holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from jerp.records import Interval
from jerp.typing import ArrayLike

__all__ = ["band_lists", "plain_lists"]

_LIMITS = ("point", "low", "high")


def plain_lists(values: ArrayLike) -> Any:
    """Nested lists of numbers; None where undefined."""
    array = np.asarray(values)
    if array.dtype.kind != "f":
        return array.tolist()
    plain = array.astype(object)
    plain[np.isnan(array)] = None
    return plain.tolist()


def band_lists(interval: Interval, cells: Any = ...) -> dict[str, Any]:
    """`point`, `low` and `high` of an interval, or of these cells of a band."""
    return {
        name: plain_lists(np.asarray(getattr(interval, name))[cells])
        for name in _LIMITS
    }
