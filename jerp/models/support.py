"""What a buffer can teach a controller, in a few numbers that stay with it.

Kept beside the parameters: how much was learned from, where its features lay, and how
far its weights and returns differed at all. NumPy alone, so that they are read and
written wherever a controller acts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jerp.errors import InputError

__all__ = ["BufferSupport", "measure_support"]

NO_SPREAD = 1e-6


@dataclass(frozen=True)
class BufferSupport:
    """Support statistics of the valid episodes that a controller learned from.

    Attributes:
      num_episodes, num_tasks, num_steps: how much there was.
      feature_min, feature_max, feature_mean: over the steps, one number a feature.
      action_counts: how often each action was taken.
      mean_return: of the tasks' mean returns: the behaviour's, each task alike.
      best_return: mean over the tasks of their best return; no reweighting of these
        episodes teaches more.
      tasks_with_spread: share of tasks whose returns differ by more than 1e-6 (standard
        deviation); the others teach nothing about what is better.
      effective_sample_size: of the training weights, in episodes, or in steps where
        every step has its own.
    """

    num_episodes: int
    num_tasks: int
    num_steps: int
    feature_min: tuple[float, ...]
    feature_max: tuple[float, ...]
    feature_mean: tuple[float, ...]
    action_counts: tuple[int, ...]
    mean_return: float
    best_return: float
    tasks_with_spread: float
    effective_sample_size: float


def measure_support(
    feature: np.ndarray,
    action: np.ndarray,
    mask: np.ndarray,
    returns: np.ndarray,
    task_id: np.ndarray,
    weight: np.ndarray,
    *,
    num_actions: int,
) -> BufferSupport:
    """`BufferSupport` of `B` valid episodes.

        ESS = (sum w)^2 / sum w^2

    Args:
      feature: `[B, T, F]` float. Padding may hold anything.
      action: `[B, T]` int.
      mask: `[B, T]` bool.
      returns: `[B]` float.
      task_id: `[B]` int.
      weight: `[B]` or `[B, T]` float, those of training.
      num_actions: A.

    Raises:
      InputError: no real step.

    Example:
      >>> one = np.ones((2, 1))
      >>> support = measure_support(
      ...     one[..., None], one.astype(int), one > 0, np.array([0.0, 1.0]),
      ...     np.array([5, 5]), np.array([1.0, 3.0]), num_actions=2,
      ... )
      >>> support.action_counts, support.tasks_with_spread
      ((0, 2), 1.0)
      >>> support.effective_sample_size
      1.6
    """
    if not mask.any():
        raise InputError("mask: expected at least one real step, got none")
    steps = np.asarray(feature, np.float64)[mask]
    per_task = [returns[task_id == task] for task in np.unique(task_id)]
    weight = np.asarray(weight, np.float64)
    weight = weight[mask] if weight.ndim == mask.ndim else weight
    return BufferSupport(
        num_episodes=len(mask),
        num_tasks=len(per_task),
        num_steps=len(steps),
        feature_min=tuple(steps.min(axis=0).tolist()),
        feature_max=tuple(steps.max(axis=0).tolist()),
        feature_mean=tuple(steps.mean(axis=0).tolist()),
        action_counts=tuple(np.bincount(action[mask], minlength=num_actions).tolist()),
        mean_return=float(np.mean([np.mean(r) for r in per_task])),
        best_return=float(np.mean([np.max(r) for r in per_task])),
        tasks_with_spread=float(np.mean([np.std(r) > NO_SPREAD for r in per_task])),
        effective_sample_size=float(weight.sum() ** 2 / (weight**2).sum()),
    )
