"""What the metrics of a training run warn of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["collapse_warnings"]

WINDOW = 20
"""Iterations that have to agree."""


def collapse_warnings(
    rows: Sequence[Mapping[str, Any]], *, num_actions: int
) -> list[str]:
    """Sentences about the last iterations, none where all seems well.

    Args:
      rows: of metrics, in order.
      num_actions: of the world, the scale of an entropy.

    Returns:
      A collapsed entropy, groups that teach nothing, success lost again, and a sampler
      that disagrees with training.

    Example:
      >>> row = {"entropy": 1.0, "dead_share": 1.0, "success": 0.0, "sampler_gap": 0.0}
      >>> collapse_warnings([row] * 20, num_actions=4)
      ['the last 20 iterations had 100% dead groups, which teach nothing: easier or \
harder tasks, or larger groups, would']
    """
    if len(rows) < WINDOW:
        return []
    last = rows[-WINDOW:]

    def mean(name: str, of: Sequence[Mapping[str, Any]] = last) -> float:
        found = [row[name] for row in of if row.get(name) is not None]
        return sum(found) / len(found) if found else math.nan

    found = []
    if mean("entropy") < 0.01 * math.log(num_actions) and mean("success") < 0.95:
        found.append(
            f"entropy is {mean('entropy'):.1e} and success {mean('success'):.2f}: the "
            "policy collapsed before it succeeded; raise entropy_weight or lower "
            "learning_rate"
        )
    if mean("dead_share") > 0.9 and mean("success") < 0.95:
        found.append(
            f"the last {WINDOW} iterations had {mean('dead_share'):.0%} dead groups, "
            "which teach nothing: easier or harder tasks, or larger groups, would"
        )
    windows = [
        mean("success", rows[i : i + WINDOW])
        for i in range(0, len(rows) - WINDOW + 1, WINDOW)
    ]
    if max(windows) > 2 * mean("success") and max(windows) > 0.2:
        found.append(
            f"success fell from {max(windows):.2f} to {mean('success'):.2f}: training "
            "became unstable; lower learning_rate"
        )
    if mean("sampler_gap") > 1e-3:
        found.append(
            f"sampled and trained log-probabilities differ by up to "
            f"{mean('sampler_gap'):.1e}: the two passes do not compute the same policy"
        )
    return found
