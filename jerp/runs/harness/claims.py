"""Two claims put to the test over domains, from `results.json` alone.

What the buffer supports should foretell the gain (the finite-buffer claim of arXiv
2607.05458), and what off-policy evaluation says before should be what is seen after.
Both are questions of order and size over few domains: numbers say how few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import numpy as np

from jerp.estimators.correlation import rank_correlation
from jerp.runs.harness.arms import LEARNED_ARMS
from jerp.typing import Key

__all__ = ["SUPPORT", "prediction_check", "prediction_pairs", "support_check"]

SUPPORT = {
    "headroom": "best return per task above the mean return",
    "within_task_sd": "spread of returns within a task",
    "tasks_with_spread": "share of tasks with any spread",
    "effective_sample_share": "effective sample size of the weights, as a share",
}
"""Measures of what a buffer supports, in words."""


def support_check(key: Key, domains: Mapping[str, Any]) -> dict[str, Any]:
    """Does the support of a buffer foretell the gain of what was learned from it?

    Args:
      key: consumed.
      domains: name to what `run_domain` returns.

    Returns:
      `points`: one a domain, difficulty and AWR arm, with every measure of `SUPPORT` on
      the training tasks and the gain in Q over base on the held-out ones.
      `correlation`: by arm and measure the rank correlation of the two over the points
      of that arm, its permutation p-value, and the number of points.
    """
    points = [
        {"domain": name, "difficulty": level, "arm": arm, "gain": gain}
        | {measure: _measure(part, level, measure) for measure in SUPPORT}
        for name, part in domains.items()
        for arm, gains in part["gain_by_difficulty"].items()
        if arm != "bc"
        for level, gain in gains.items()
    ]
    arms = list(dict.fromkeys(point["arm"] for point in points))
    keys = iter(jax.random.split(key, len(arms) * len(SUPPORT)))
    return {
        "points": points,
        "correlation": {
            arm: {
                measure: _correlation(
                    next(keys),
                    [p[measure] for p in points if p["arm"] == arm],
                    [p["gain"] for p in points if p["arm"] == arm],
                )
                for measure in SUPPORT
            }
            for arm in arms
        },
    }


def prediction_pairs(
    domains: Mapping[str, Any], method: str
) -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, float]]]:
    """Domain, arm, prediction and outcome of every controller that `method` judged."""
    for name, part in domains.items():
        for arm in LEARNED_ARMS:
            outcomes = part["arms"][arm]["q_by_seed"]
            for said, seen in zip(part["prediction"][arm], outcomes, strict=True):
                estimate = said["methods"][method]
                if estimate["point"] is not None:
                    yield name, arm, estimate, seen


def prediction_check(key: Key, domains: Mapping[str, Any]) -> dict[str, Any]:
    """How predictions made before compare with outcomes seen after, by method.

    Args:
      key: consumed.
      domains: name to what `run_domain` returns.

    Returns:
      By method, over domains, learned arms and training seeds: `judged` and `refused`
      controllers, `bias` and `mean_error` (absolute) of the prediction, the rank
      correlation over all and its mean within domains, and `coverage`: the share of
      outcomes whose mean lies in the predicted interval. The outcome is of other tasks
      and has sampling error of its own, so `overlap`, the share whose two intervals
      have a point in common, is given beside it.
    """
    first = next(iter(domains.values()))["prediction"]
    methods = list(first[LEARNED_ARMS[0]][0]["methods"])
    total = sum(
        len(part["prediction"][arm])
        for part in domains.values()
        for arm in LEARNED_ARMS
    )
    keys = jax.random.split(key, len(methods))
    return {
        method: _method_check(k, list(prediction_pairs(domains, method)), total)
        for k, method in zip(keys, methods, strict=True)
    }


def _method_check(key: Key, pairs: list[Any], total: int) -> dict[str, Any]:
    numbers: dict[str, Any] = {"judged": len(pairs), "refused": total - len(pairs)}
    if not pairs:
        return numbers
    said = np.asarray([p["point"] for _, _, p, _ in pairs])
    seen = np.asarray([o["point"] for _, _, _, o in pairs])
    low, high = _limits(p for _, _, p, _ in pairs)
    seen_low, seen_high = _limits(o for _, _, _, o in pairs)
    domain = np.asarray([name for name, _, _, _ in pairs])
    root, *rest = jax.random.split(key, 1 + len(set(domain)))
    within = [
        _correlation(k, said[domain == name], seen[domain == name])["coefficient"]
        for k, name in zip(rest, sorted(set(domain)), strict=True)
    ]
    defined = [c for c in within if c is not None]
    return numbers | {
        "bias": float(np.mean(said - seen)),
        "mean_error": float(np.mean(np.abs(said - seen))),
        "correlation": _correlation(root, said, seen),
        "correlation_within": float(np.mean(defined)) if defined else None,
        "coverage": float(np.mean((low <= seen) & (seen <= high))),
        "overlap": float(np.mean((low <= seen_high) & (seen_low <= high))),
    }


def _limits(intervals: Iterable[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits; one that is None does not bound anything."""
    sides = [(i["low"], i["high"]) for i in intervals]
    low = [-np.inf if low is None else low for low, _ in sides]
    return np.asarray(low), np.asarray([np.inf if h is None else h for _, h in sides])


def _measure(part: Mapping[str, Any], level: str, measure: str) -> float:
    stratum = part["buffer"]["strata"][level]
    if measure == "headroom":
        return stratum["best_return_per_task"] - stratum["mean_return"]
    return stratum[measure]


def _correlation(key: Key, x: Any, y: Any) -> dict[str, Any]:
    found = rank_correlation(key, np.float32(x), np.float32(y), num_permutations=2000)
    undefined = bool(np.isnan(found.coefficient))
    return {
        "coefficient": None if undefined else float(found.coefficient),
        "p": None if undefined else float(found.p_value),
        "n": int(found.num_pairs),
    }
