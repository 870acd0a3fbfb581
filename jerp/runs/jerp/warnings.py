"""What the metrics of a joint run warn of, beside those of its policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jerp.runs.policy.warnings import WINDOW

__all__ = ["reflection_warnings"]


def reflection_warnings(
    rows: Sequence[Mapping[str, Any]], *, num_groups: int
) -> list[str]:
    """A sentence where nobody reflected in the last iterations, none otherwise.

    Args:
      rows: of metrics, in order, of iterations in which rules were learned.
      num_groups: G, that are to be reflected on in each.

    Example:
      >>> row = {"lost_groups": 0.0, "rejected_infrastructure": 4.0}
      >>> reflection_warnings([row] * 3, num_groups=4)
      ['nobody reflected in the last 3 iterations: 12 reflections failed, and 0 had no \
transcript to read; see whether the reflector answers, and what `tell` returns']
      >>> reflection_warnings([row, {"lost_groups": 0.0}], num_groups=4)
      []
    """
    last = rows[-WINDOW:]

    def total(name: str) -> int:
        return sum(map(int, (row.get(name, 0) for row in last)))

    failed, silent = total("rejected_infrastructure"), total("rejected_no_text")
    names = ("rejected_infrastructure", "rejected_no_text", "lost_groups")
    none = [sum(row.get(name, 0) for name in names) >= num_groups for row in last]
    if not all(none) or not failed + silent:
        return []
    return [
        f"nobody reflected in the last {len(last)} iterations: {failed} reflections "
        f"failed, and {silent} had no transcript to read; see whether the reflector "
        "answers, and what `tell` returns"
    ]
