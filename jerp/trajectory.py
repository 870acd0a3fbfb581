"""The one data type that every learner sees, and the check at every edge.

A `Trajectory` is a batch of padded episodes, batch-major, without any text. Behaviour
log-probabilities and legal-action masks are part of it from the first day: without
them nothing can be evaluated off-policy.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
from flax import struct

from jerp.errors import TrajectoryError
from jerp.typing import USAGE_KINDS, Array, ArrayTree, Outcome

__all__ = [
    "Trajectory",
    "check_trajectory",
    "concatenate",
    "pad_steps",
    "select",
    "valid_episodes",
]


class Trajectory(struct.PyTreeNode):
    """A batch of `B` episodes of at most `T` steps.

    Attributes:
      observation: tree of `[B, T, ...]`, what the policy saw.
      action: `[B, T]` int32, index of the structural or admissible action.
      reward: `[B, T]` float32, the environment's; penalties are never folded in.
      terminated: `[B, T]` bool, natural end: bootstrap 0.
      truncated: `[B, T]` bool, budget or error end: bootstrap from
        `final_observation`.
      mask: `[B, T]` bool, the policy acted here; a prefix in every row.
      anchor: `[B, T]` int32, equal iff same exact anchor state of the same task.
      usage: `[B, T, U]` float32, see `jerp.typing.USAGE_KINDS`.
      final_observation: tree of `[B, ...]`.
      task_id, group_id, seed: `[B]` int32.
      outcome: `[B]` int32, a `jerp.typing.Outcome`.
      score: `[B]` float32, verifier's graded score in [0, 1].
      version: `[B]` int32, of the policy that acted.
      legal: `[B, T, A]` bool, actions that were legal; None in foreign logs.
      log_prob: `[B, T]` float32, behaviour policy's, under the distribution it sampled
        from; None only for foreign logs.
      tokens, token_log_prob, token_mask: `[B, T, L]`, what the policy itself generated.
      working_set: `[B, R]` int32, rule handles in the prompt.
    """

    observation: ArrayTree
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    mask: Array
    anchor: Array
    usage: Array
    final_observation: ArrayTree
    task_id: Array
    group_id: Array
    seed: Array
    outcome: Array
    score: Array
    version: Array
    legal: Array | None = None
    log_prob: Array | None = None
    tokens: Array | None = None
    token_log_prob: Array | None = None
    token_mask: Array | None = None
    working_set: Array | None = None


_TOKEN_FIELDS = {
    "tokens": np.int32,
    "token_log_prob": np.float32,
    "token_mask": np.bool_,
}
_STEP_FIELDS = {
    "action": np.int32,
    "reward": np.float32,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "mask": np.bool_,
    "anchor": np.int32,
}
_EPISODE_FIELDS = {
    "task_id": np.int32,
    "group_id": np.int32,
    "seed": np.int32,
    "outcome": np.int32,
    "score": np.float32,
    "version": np.int32,
}


def check_trajectory(
    trajectory: Trajectory, *, feature_names: Sequence[str] = ()
) -> Trajectory:
    """Returns `trajectory` unchanged if it keeps the contract (host side).

    Args:
      trajectory: NumPy or device arrays.
      feature_names: of the observation's last axis, for messages; indices without.

    Raises:
      TrajectoryError: names the first field that does not, with what was expected and
        what came.
    """
    mask = np.asarray(trajectory.mask)
    if mask.ndim != 2:
        raise TrajectoryError("mask", "shape [B, T]", f"shape {list(mask.shape)}")
    _check_shapes(trajectory, *mask.shape)
    _check_values(trajectory, mask)
    _check_observation(trajectory, mask, feature_names)
    return trajectory


def valid_episodes(trajectory: Trajectory) -> Array:
    """`[B]` bool: episodes that may enter a mean, a group or a gradient."""
    return trajectory.outcome != Outcome.INFRASTRUCTURE


def select(trajectory: Trajectory, index: Array | np.ndarray) -> Trajectory:
    """The episodes at `index` (`[N]` int or `[B]` bool on the host)."""
    return jax.tree.map(lambda x: x[index], trajectory)


def concatenate(trajectories: list[Trajectory]) -> Trajectory:
    """Joins batches of equal `T` along `B` on the host; optional fields must agree.

    Raises:
      TrajectoryError: no batch, or batches that differ in more than `B`.
    """
    if not trajectories:
        raise TrajectoryError("batches", "at least one trajectory", "an empty list")
    leaves = jax.tree.structure(trajectories[0])
    for other in trajectories[1:]:
        if jax.tree.structure(other) != leaves:
            raise TrajectoryError(
                "batches", f"the same fields, {leaves}", str(jax.tree.structure(other))
            )
    return jax.tree_util.tree_map_with_path(_join, *trajectories)


def pad_steps(trajectory: Trajectory, num_steps: int) -> Trajectory:
    """`trajectory` with `T = num_steps`, on the host; the new steps are not real.

    Raises:
      TrajectoryError: the trajectory is longer than that.
    """
    missing = num_steps - np.shape(trajectory.mask)[1]
    if missing < 0:
        raise TrajectoryError(
            "mask", f"at most {num_steps} steps", f"{num_steps - missing}"
        )

    def pad(x):
        widths = [(0, 0), (0, missing)] + [(0, 0)] * (np.ndim(x) - 2)
        return np.pad(np.asarray(x), widths)

    fields = (
        *_STEP_FIELDS,
        *_TOKEN_FIELDS,
        "observation",
        "usage",
        "legal",
        "log_prob",
    )
    return trajectory.replace(
        **{name: jax.tree.map(pad, getattr(trajectory, name)) for name in fields}
    )


def _join(path, *leaves) -> np.ndarray:
    shapes = [list(np.shape(leaf)[1:]) for leaf in leaves]
    for shape in shapes[1:]:
        if shape != shapes[0]:
            name = jax.tree_util.keystr(path).lstrip(".")
            raise TrajectoryError(
                name, f"shape [B, *{shapes[0]}] in every batch", f"[B, *{shape}]"
            )
    return np.concatenate(leaves)


def _expect(field: str, value, shape: list, dtype) -> None:
    array = np.asarray(value)
    fits = len(array.shape) == len(shape) and all(
        want in ("*", got) for want, got in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise TrajectoryError(field, f"shape {shape}", f"shape {list(array.shape)}")
    if array.dtype != dtype:
        raise TrajectoryError(field, np.dtype(dtype).name, array.dtype.name)


def _check_shapes(t: Trajectory, batch: int, steps: int) -> None:
    for name, dtype in _STEP_FIELDS.items():
        _expect(name, getattr(t, name), [batch, steps], dtype)
    for name, dtype in _EPISODE_FIELDS.items():
        _expect(name, getattr(t, name), [batch], dtype)
    _expect("usage", t.usage, [batch, steps, len(USAGE_KINDS)], np.float32)
    optional = {
        "legal": ([batch, steps, "*"], np.bool_),
        "log_prob": ([batch, steps], np.float32),
        "working_set": ([batch, "*"], np.int32),
    }
    for name, (shape, dtype) in optional.items():
        if getattr(t, name) is not None:
            _expect(name, getattr(t, name), shape, dtype)
    present = [name for name in _TOKEN_FIELDS if getattr(t, name) is not None]
    for name, dtype in _TOKEN_FIELDS.items() if present else ():
        if name not in present:
            raise TrajectoryError(name, f"present, as {present[0]} is", "None")
        _expect(
            name,
            getattr(t, name),
            [batch, steps, *np.asarray(t.tokens).shape[2:]],
            dtype,
        )
    for leaf in jax.tree.leaves(t.observation):
        if leaf.shape[:2] != (batch, steps):
            raise TrajectoryError(
                "observation", f"leading axes [{batch}, {steps}]", f"{list(leaf.shape)}"
            )
    for leaf in jax.tree.leaves(t.final_observation):
        if leaf.shape[:1] != (batch,):
            raise TrajectoryError(
                "final_observation", f"leading axis [{batch}]", f"{list(leaf.shape)}"
            )


def _check_values(t: Trajectory, mask: np.ndarray) -> None:
    if (mask[:, 1:] & ~mask[:, :-1]).any():
        row = int(np.argwhere(mask[:, 1:] & ~mask[:, :-1])[0, 0])
        raise TrajectoryError("mask", "a prefix in every row", f"a gap in row {row}")
    for name in ("reward", "log_prob"):
        value = getattr(t, name)
        if value is not None and not np.isfinite(np.asarray(value)[mask]).all():
            raise TrajectoryError(name, "finite where mask", "NaN or infinity")
    score = np.asarray(t.score)[np.asarray(valid_episodes(t))]
    if score.size and not ((score >= 0) & (score <= 1)).all():
        raise TrajectoryError("score", "in [0, 1]", f"{score.min()} to {score.max()}")
    unknown = set(np.unique(np.asarray(t.outcome)).tolist()) - set(Outcome)
    if unknown:
        raise TrajectoryError(
            "outcome", f"one of {list(map(int, Outcome))}", f"{unknown}"
        )
    if t.log_prob is not None and (np.asarray(t.log_prob)[mask] > 1e-5).any():
        raise TrajectoryError("log_prob", "at most 0", "a positive log-probability")
    if t.legal is not None:
        legal, action = np.asarray(t.legal), np.asarray(t.action)
        known = (action >= 0) & (action < legal.shape[-1])
        index = np.where(known, action, 0)[..., None]
        taken = known & np.take_along_axis(legal, index, axis=-1)[..., 0]
        if not taken[mask].all():
            row, step = np.argwhere(mask & ~taken)[0]
            raise TrajectoryError(
                "action", "legal where mask", f"illegal at row {row}, step {step}"
            )


def _check_observation(
    t: Trajectory, mask: np.ndarray, feature_names: Sequence[str]
) -> None:
    for leaf in jax.tree.leaves(t.observation):
        array = np.asarray(leaf)
        if not np.issubdtype(array.dtype, np.floating):
            continue
        wrong = np.argwhere(
            ~np.isfinite(array) & mask.reshape(*mask.shape, *(1,) * (array.ndim - 2))
        )
        if len(wrong):
            row, step, *index = wrong[0].tolist()
            named = feature_names and len(index) == 1
            which = repr(feature_names[index[0]]) if named else f"index {index}"
            raise TrajectoryError(
                "observation",
                "finite where mask",
                f"NaN or infinity at row {row}, step {step}, {which}",
            )
