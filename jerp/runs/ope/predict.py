"""Predictions of controllers' values from one buffer, as plain numbers and words.

What `jerp ope` prints and what a run keeps of its controllers before it evaluates them.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jerp.errors import InputError
from jerp.estimators.ope_methods import METHODS
from jerp.estimators.ope_summary import OpeEstimate, PolicyEvaluation
from jerp.estimators.overlap import Refusal, explain_refusal
from jerp.estimators.policy_value import evaluate_policies
from jerp.records import Interval
from jerp.storage.documents import defined
from jerp.trajectory import Trajectory, valid_episodes
from jerp.typing import ArrayLike, Key

__all__ = ["predict"]


def predict(
    key: Key,
    data: Trajectory,
    target_log_probs: ArrayLike,
    *,
    methods: tuple[str, ...] = METHODS,
    **settings: Any,
) -> list[dict[str, Any]]:
    """What each of `C` controllers is worth, or why that is refused.

    Args:
      key: consumed.
      data: `B` episodes with `log_prob` and array features. Infrastructure failures
        are left out and counted.
      target_log_probs: `[C, B, T, A]` float32 of every controller on the features of
        `data`, as `jerp.models.controller.log_probs` gives them; padding may hold
        anything.
      methods: see `jerp.evaluate_policies`.
      **settings: further keywords of `jerp.evaluate_policies`.

    Returns:
      One JSON-able dict a controller: `methods`, in the order given, by name `point`,
      `low`, `high`, `lower_bound`, `gain` (over the behaviour: `point`, `low`, `high`)
      and `refused`, the reason in words or None; `effective_sample_size`; `overlap`;
      `behaviour` (mean return: `point`, `low`, `high`); `episodes`, `excluded`,
      `tasks`. What is undefined is None.

    Raises:
      InputError: no behaviour probabilities, or no valid episode.
    """
    valid = np.asarray(valid_episodes(data))
    mask = np.asarray(data.mask) & valid[:, None]
    if not mask.any():
        raise InputError(
            f"data: expected a valid step, got none in {len(mask)} episodes"
        )
    _, task_id = np.unique(np.asarray(data.task_id), return_inverse=True)
    found = evaluate_policies(
        key,
        _basis(np.asarray(data.observation), mask),
        data.action,
        data.reward,
        data.log_prob,
        target_log_probs,
        mask,
        task_id.astype(np.int32),
        num_tasks=int(task_id.max()) + 1,
        methods=methods,
        **settings,
    )
    found = jax.device_get(found)
    rows = range(np.shape(target_log_probs)[0])
    return [_plain(found, methods, row) for row in rows]


def _basis(features: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """`[B, T, F + 1]`: features of one scale, and a constant; 0 in padding."""
    steps = features[mask].astype(np.float64)
    scale = steps.std(axis=0)
    scaled = (features - steps.mean(axis=0)) / np.where(scale > 0, scale, 1)
    scaled = np.concatenate([scaled, np.ones((*mask.shape, 1))], axis=-1)
    return np.where(mask[..., None], scaled, 0).astype(np.float32)


def _plain(
    found: PolicyEvaluation, methods: tuple[str, ...], row: int
) -> dict[str, Any]:
    overlap = jax.tree.map(lambda x: float(x[row]), found.overlap)

    def plain(e: OpeEstimate) -> dict[str, Any]:
        reason = Refusal(int(e.reason[row]))
        return {
            "point": float(e.point[row]),
            "low": float(e.low[row]),
            "high": float(e.high[row]),
            "lower_bound": float(e.lower_bound[row]),
            "gain": _limits(jax.tree.map(lambda x: x[row], e.gain)),
            "refused": explain_refusal(reason, overlap) or None,
        }

    log = found.behaviour
    return defined(
        {
            # A dict that jit returns is sorted.
            "methods": {name: plain(found.estimates[name]) for name in methods},
            "effective_sample_size": overlap.effective_sample_size,
            "overlap": {
                "supported_mass": overlap.supported_mass,
                "mean_weight": overlap.mean_weight,
                "mean_weight_error": overlap.mean_weight_error,
                "max_weight": overlap.max_weight,
                "large_ratio_share": overlap.large_ratio_share,
            },
            "behaviour": _limits(log),
            "episodes": int(np.asarray(log.num_values)),
            "excluded": int(np.asarray(log.num_excluded)),
            "tasks": int(np.asarray(log.num_clusters)),
        }
    )


def _limits(interval: Interval) -> dict[str, float]:
    return {name: float(getattr(interval, name)) for name in ("point", "low", "high")}
