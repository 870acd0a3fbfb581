"""Numbers over all domains, from the domains' parts of `results.json` alone.

Every domain weighs alike in a macro average, whatever its number of tasks. Domains are
not a sample of anything: intervals resample tasks within each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jerp.estimators.intervals import bootstrap_interval
from jerp.estimators.significance import holm, sign_test
from jerp.runs.harness.comparison import plain
from jerp.typing import Key

__all__ = ["overall"]


def overall(key: Key, domains: Mapping[str, Any]) -> dict[str, Any]:
    """By arm: macro averages, the sign test over domains, Holm's adjustment.

    Args:
      key: consumed.
      domains: name to what `run_domain` returns.

    Returns:
      By arm `q` and, but for base, `difference` (Q and HMS against base, paired by
      task, every domain weighing alike), `sign` over the domains' differences in Q, and
      `holm`, by domain the adjusted p-value of that arm's difference in Q.
    """
    arms = next(iter(domains.values()))["arms"]
    keys = iter(jax.random.split(key, 3 * len(arms)))
    return {name: _arm(keys, name, domains) for name in arms}


def _arm(keys: Any, name: str, domains: Mapping[str, Any]) -> dict[str, Any]:
    numbers: dict[str, Any] = {"q": _macro(next(keys), domains, name, "q_by_task")}
    if name == "base":
        return numbers
    numbers["difference"] = {
        column: _macro(next(keys), domains, name, f"{column}_by_task", against="base")
        for column in ("q", "hms")
    }
    differences = [d["arms"][name]["difference"]["q"] for d in domains.values()]
    # The sign is that of the mean itself: a difference of rounding is a tie.
    points = np.asarray([d["point"] for d in differences], np.float32)
    test = sign_test(np.where(np.abs(points) < 1e-6, 0.0, points))
    numbers["sign"] = {
        "positive": int(test.positive),
        "negative": int(test.negative),
        "p": float(test.p_value),
        "smallest_p": float(test.smallest),
    }
    adjusted = np.asarray(holm(np.asarray([d["p"] for d in differences], np.float32)))
    numbers["holm"] = dict(zip(domains, adjusted.tolist(), strict=True))
    return numbers


def _macro(
    key: Key, domains: Mapping[str, Any], arm: str, column: str, against: str = ""
) -> dict[str, float]:
    """Mean over domains of the mean over tasks; tasks are drawn within domains."""
    values = [_column(part["arms"], arm, column, against) for part in domains.values()]
    kept = [v[~np.isnan(v)] for v in values]
    total = sum(map(len, kept))
    # Scaled, so that the mean over all tasks is the mean over domains.
    scaled = [v * (total / (len(kept) * len(v))) for v in kept if len(v)]
    strata = np.repeat(np.arange(len(scaled), dtype=np.int32), [len(v) for v in scaled])
    return plain(bootstrap_interval(key, np.concatenate(scaled), strata=strata))


def _column(arms: Mapping[str, Any], arm: str, column: str, against: str) -> np.ndarray:
    values = np.asarray(arms[arm][column], np.float64)
    return values - np.asarray(arms[against][column], np.float64) if against else values
