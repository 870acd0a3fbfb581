"""From logged episodes to the tables of the fitted simulator, on the host.

Abstract states are what features, masks and calls tell apart, as finely as the log has
data for. Everything is counting and sorting: the same log gives the same tables.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jerp.envs.fitted_sim import ENDED, HALTED, FittedTables
from jerp.errors import InputError
from jerp.harness.actions import NUM_ACTIONS
from jerp.harness.state import FEATURES, NUM_FEATURES, NUM_STATUS
from jerp.ops.checks import check_axes, check_count, check_values
from jerp.trajectory import Trajectory, check_trajectory, valid_episodes
from jerp.typing import USAGE_KINDS

__all__ = ["fit_simulator"]

RESERVED = 2
"""Rows of `ENDED` and `HALTED`."""

_CALLS = USAGE_KINDS.index("executor_calls")
_STATUS = {name: i for i, name in enumerate(FEATURES[:NUM_STATUS])}
_KNOWN = [_STATUS[n] for n in ("has_draft", "coverage", "missing_share", "support")]


def fit_simulator(
    trajectory: Trajectory,
    difficulty: np.ndarray,
    *,
    max_steps: int = 10,
    min_count: int = 10,
) -> FittedTables:
    """Indexes a log so that `FittedSim` can replay it.

    States are told apart at four levels, each a coarsening of the one before:

    0. difficulty, legal actions, executor calls so far, has_draft, coverage,
       missing_share, support, findings, draft_length and error_share to one decimal,
       and the legal actions and findings when the executor was last called;
    1. the same without the last four: draft_length, error_share and what was known when
       the current draft was written;
    2. difficulty, legal actions, calls, and of has_draft, coverage, missing_share and
       support only whether they are at 1, at -1, or between;
    3. the same without the difficulty.

    A logged step's state is the finest of levels 0 to 2 with at least `min_count`
    steps, level 2 if none has. An action in a state replays the state's own steps that
    took it. If there is none, the pair is unsupported: it borrows those of the finest
    coarser level that has any, whose next state may be of another difficulty. Without
    any it halts the episode, which then ends as one that is out of steps does.

    Args:
      trajectory: NumPy or device arrays of harness episodes, with `legal`; features are
        those of `jerp.harness.state`, an episode's score is all of its reward.
        INFRASTRUCTURE episodes are left out and counted.
      difficulty: `[B]` int in [0, 100), of each episode's task.
      max_steps: step budget in which the log counts `progress`.
      min_count: logged steps that a state of level 0 or 1 needs; 1 merges none. More
        merges more, so that fewer pairs are unsupported and states are less exact.

    Returns:
      `FittedTables`, padded to powers of two so that logs of like size share a program.

    Raises:
      TrajectoryError: the trajectory breaks its contract (NaN, illegal actions).
      ShapeError: other features or actions, or not one difficulty an episode.
      InputError: no legal actions were logged, no valid episode, a difficulty out of
        [0, 100), progress that is not step / max_steps, or numbers out of range.
    """
    check_count("max_steps", max_steps)
    check_count("min_count", min_count)
    _check_log(trajectory, difficulty, max_steps)
    valid = np.asarray(valid_episodes(trajectory))
    steps = np.asarray(trajectory.mask) & valid[:, None]
    difficulty = np.asarray(difficulty)
    levels = _levels(trajectory, steps, difficulty)
    state = _states(levels, min_count)
    columns = _log_columns(trajectory, steps)
    columns |= _pools(trajectory, steps, levels, state)
    columns |= _first_steps(steps, difficulty)
    columns["state"] = _rows(state + RESERVED, (ENDED, HALTED))
    columns["num_states"] = np.array(state.max() + 1 + RESERVED, np.int32)
    columns["num_invalid"] = np.array((~valid).sum(), np.int32)
    return FittedTables(**{name: jnp.asarray(x) for name, x in columns.items()})


def _check_log(trajectory: Trajectory, difficulty: np.ndarray, max_steps: int) -> None:
    if trajectory.legal is None:
        raise InputError(
            "trajectory.legal: expected [B, T, A] bool, got None. A simulator must "
            "know what was legal: log it, see docs/trajectories.md"
        )
    check_trajectory(trajectory, feature_names=FEATURES)
    check_axes(
        mask=(trajectory.mask, "B T"),
        difficulty=(difficulty, "B", int),
        observation=(trajectory.observation, "B T F"),
        legal=(trajectory.legal, "B T A"),
    )
    check_axes(
        features=(np.zeros(NUM_FEATURES), "F"),
        observation=(trajectory.observation, "B T F"),
    )
    check_axes(actions=(np.zeros(NUM_ACTIONS), "A"), legal=(trajectory.legal, "B T A"))
    check_values(
        "difficulty", difficulty, lambda d: (d >= 0) & (d < 100), "in [0, 100)"
    )
    steps = np.asarray(trajectory.mask & valid_episodes(trajectory)[:, None])
    if not steps.any():
        raise InputError(
            f"trajectory: expected at least one valid episode with a step, got none of "
            f"{len(steps)}. INFRASTRUCTURE episodes are left out"
        )
    progress = np.asarray(trajectory.observation)[..., _STATUS["progress"]]
    wrong = steps & (abs(progress - np.arange(steps.shape[1]) / max_steps) > 1e-3)
    if wrong.any():
        row, step = np.argwhere(wrong)[0]
        raise InputError(
            f"trajectory.observation: expected progress = step / max_steps = {step} / "
            f"{max_steps}, got {progress[row, step]:.3g} at row {row}, step {step}. "
            "Pass the step budget of the log as max_steps"
        )


def _levels(
    trajectory: Trajectory, steps: np.ndarray, difficulty: np.ndarray
) -> list[np.ndarray]:
    """For each level the group of every logged step, `[M]` int from 0 up."""
    status = np.round(np.asarray(trajectory.observation, np.float64), 2)
    mask_code = np.asarray(trajectory.legal) @ (1 << np.arange(NUM_ACTIONS))
    calls = np.asarray(trajectory.usage)[..., _CALLS] > 0
    before = np.cumsum(calls, axis=1) - calls
    findings = status[..., _STATUS["findings"]]
    # The step of the last call before each step, that of the current draft; -1: none.
    made = np.where(calls, np.arange(calls.shape[1]), -1)
    made = np.maximum.accumulate(np.pad(made, ((0, 0), (1, 0)), constant_values=-1), 1)
    made = made[:, :-1]

    def when_made(x: np.ndarray) -> np.ndarray:
        return np.where(made < 0, -1, np.take_along_axis(x, np.maximum(made, 0), 1))

    known = [status[..., i] for i in _KNOWN]
    length, errors = (
        np.round(status[..., _STATUS[n]], 1) for n in ("draft_length", "error_share")
    )
    level = np.broadcast_to(difficulty[:, None], steps.shape)
    middle = [level, mask_code, before, findings, *known]
    fine = [length, errors, when_made(mask_code), when_made(findings)]
    coarse = [mask_code, before, *map(np.trunc, known)]
    return [
        np.unique(
            np.stack([c[steps] for c in columns], 1), axis=0, return_inverse=True
        )[1].reshape(-1)
        for columns in (middle + fine, middle, [level, *coarse], coarse)
    ]


def _states(levels: list[np.ndarray], min_count: int) -> np.ndarray:
    """`[M]` int from 0 up: the group of the finest level with enough logged steps."""
    *finer, coarsest = levels[:-1]
    chosen, group = np.full(len(coarsest), len(finer)), coarsest
    for level, groups in reversed(list(enumerate(finer))):
        enough = np.bincount(groups)[groups] >= min_count
        chosen, group = np.where(enough, level, chosen), np.where(enough, groups, group)
    pairs = np.stack([chosen, group], axis=1)
    return np.unique(pairs, axis=0, return_inverse=True)[1].reshape(-1)


def _log_columns(t: Trajectory, steps: np.ndarray) -> dict[str, np.ndarray]:
    """What `FittedTables` keeps of every logged step."""
    last = _is_last(steps)[steps]
    terminated = np.asarray(t.terminated)[steps]
    score = np.broadcast_to(np.asarray(t.score)[:, None], steps.shape)[steps]
    outcome = np.broadcast_to(np.asarray(t.outcome)[:, None], steps.shape)[steps]
    cut = score[last & ~terminated]
    following = np.arange(len(last)) + RESERVED + 1
    return {
        "features": _rows(np.asarray(t.observation)[steps]),
        "following": _rows(np.where(last, ENDED, following), (ENDED, HALTED)),
        "cost": _rows(_added_cost(t, steps)),
        "usage": _rows(np.asarray(t.usage)[steps]),
        "score": _rows(np.where(terminated, score, 0).astype(np.float32)),
        "outcome": _rows(outcome),
        "truncated_score": np.array(cut.mean() if len(cut) else 0.0, np.float32),
    }


def _pools(
    t: Trajectory, steps: np.ndarray, levels: list[np.ndarray], state: np.ndarray
) -> dict[str, np.ndarray]:
    """Where each pair of state and action draws from, and the pools in rows."""
    action = np.asarray(t.action)[steps]
    # What came after a cut was never seen, so that such a step can follow nothing.
    seen = ~_is_last(steps)[steps] | np.asarray(t.terminated)[steps]
    rows = np.flatnonzero(seen)
    member = np.unique(state, return_index=True)[1]
    legal = np.asarray(t.legal)[steps][member]
    pool, supported = np.zeros(legal.shape, np.int32), np.zeros(legal.shape, bool)
    # Pool 0 is empty; those of each level follow, one a group and action.
    starts, entries, num_pools = [np.zeros(2, np.int64)], [], 1
    for level, groups in enumerate((state, *levels[1:])):
        key = groups[rows] * NUM_ACTIONS + action[rows]
        counts = np.bincount(key, minlength=(groups.max() + 1) * NUM_ACTIONS)
        pair = groups[member][:, None] * NUM_ACTIONS + np.arange(NUM_ACTIONS)
        found = legal & (pool == 0) & (counts[pair] > 0)
        pool = np.where(found, pair + num_pools, pool)
        if level == 0:
            supported = found
        starts.append(starts[-1][-1] + np.cumsum(counts))
        entries.append(rows[np.argsort(key, kind="stable")])
        num_pools += len(counts)
    start = np.concatenate(starts)
    return {
        "legal": _rows(legal),
        "pool": _rows(pool),
        "supported": _rows(supported),
        "pool_start": _padded(start, fill=start[-1]),
        "pooled": _padded(np.concatenate(entries) + RESERVED),
    }


def _first_steps(steps: np.ndarray, difficulty: np.ndarray) -> dict[str, np.ndarray]:
    """The first logged steps, by difficulty."""
    length = steps.sum(1)
    first = (np.cumsum(length) - length)[length > 0] + RESERVED
    level = difficulty[length > 0]
    start = np.append(0, np.cumsum(np.bincount(level)))
    return {
        "first": _padded(first[np.argsort(level, kind="stable")]),
        "first_start": start.astype(np.int32),
    }


def _is_last(steps: np.ndarray) -> np.ndarray:
    """`[B, T]` bool: the last real step of its episode."""
    return steps & ~np.pad(steps, ((0, 0), (0, 1)))[:, 1:]


def _added_cost(trajectory: Trajectory, steps: np.ndarray) -> np.ndarray:
    """`[M]` float32: what each step added to the cost share."""
    cost = np.asarray(trajectory.observation)[..., _STATUS["cost_share"]]
    final = np.asarray(trajectory.final_observation)[..., _STATUS["cost_share"]]
    after = np.append(cost[:, 1:], final[:, None], axis=1)
    after = np.where(_is_last(steps), final[:, None], after)
    return (after - cost)[steps].astype(np.float32)


def _rows(values: np.ndarray, reserved: tuple[int, int] = (0, 0)) -> np.ndarray:
    """`values` after the rows of `ENDED` and `HALTED`, padded."""
    head = np.zeros((RESERVED, *values.shape[1:]), values.dtype)
    head += np.asarray(reserved, values.dtype).reshape(-1, *(1,) * (values.ndim - 1))
    return _padded(np.concatenate([head, values]))


def _padded(values: np.ndarray, *, fill: int = 0) -> np.ndarray:
    """`values` with as many rows as the next power of two; int32 for integers."""
    rows = 1 << (len(values) - 1).bit_length()
    widths = [(0, rows - len(values))] + [(0, 0)] * (values.ndim - 1)
    padded = np.pad(values, widths, constant_values=fill)
    return padded.astype(np.int32) if padded.dtype.kind == "i" else padded
