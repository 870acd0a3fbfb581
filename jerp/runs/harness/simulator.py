"""How well a simulator fitted to the buffer foretells real held-out episodes.

The buffer is of the training tasks: that held-out tasks are others is part of the error
that is measured. Acting and stepping are compiled apart, so that all arms and domains
share the larger program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from jerp.envs.base import TimeStep
from jerp.envs.fitted_sim import HALTED, FittedSim, FittedState, FittedTables
from jerp.envs.fitting import fit_simulator
from jerp.errors import InputError
from jerp.estimators.correlation import rank_correlation
from jerp.runs.harness.arms import Arm
from jerp.runs.harness.episodes import EpisodeTable
from jerp.trajectory import Trajectory
from jerp.typing import Array, Key, PolicyFn

__all__ = ["SimulatedEpisodes", "simulate_policy", "simulator_match"]

# Every policy of every domain is compiled to run for milliseconds: optimising it costs
# three times as long as compiling it.
_quickly_compiled = partial(
    jax.jit, compiler_options={"xla_backend_optimization_level": 0}
)


@dataclass(frozen=True)
class SimulatedEpisodes:
    """One row an episode, `[B]` each.

    Attributes:
      score: as the log's verifier gave it.
      steps: taken.
      unsupported: of these, how many the log had no pair of state and action for.
      halted: ended because nothing could be borrowed either.
    """

    score: np.ndarray
    steps: np.ndarray
    unsupported: np.ndarray
    halted: np.ndarray


def simulator_match(
    key: Key,
    buffer: Trajectory,
    difficulty: np.ndarray,
    arms: Sequence[Arm],
    tables: Mapping[str, EpisodeTable],
    summaries: Mapping[str, Mapping[str, Any]],
    *,
    max_steps: int = 10,
    episodes: int = 4096,
    base: str = "base",
) -> dict[str, Any]:
    """Simulated against real held-out episodes, arm by arm.

    Args:
      key: consumed.
      buffer: training episodes that the simulator is fitted to.
      difficulty: `[tasks]` int of the domain, by task id.
      arms: policies and their parameters, simulated on the mix of difficulties of the
        tasks that the arm really played.
      tables: by arm the real held-out episodes.
      summaries: by arm what `arm_summary` says of them: `q` and `steps` with intervals.
      max_steps: step budget.
      episodes: simulated, of each controller; one number, one program for all.
      base: the arm that the others' gains are measured against.

    Returns:
      JSON-able: `states` of the simulator and `episodes` an arm (of each controller);
      `arms`, by name: `q`, `steps`; `q_error`, `steps_error`, simulated minus real;
      `gain_error`, that of the difference in Q from `base`, from which the luck of the
      held-out tasks cancels; `q_inside`, `steps_inside`, whether the real 95% interval
      holds the simulated mean; `steps_distance`, total variation of the step counts;
      `unsupported`, share of the steps, and `halted`, share of the episodes. Over arms:
      `mean_q_error`, `mean_gain_error` and `mean_steps_error` (absolute), and
      `q_rank_correlation` of simulated with real Q, None where undefined.

    Raises:
      InputError, TrajectoryError: see `fit_simulator`; an arm without real episodes; a
        held-out difficulty that the buffer does not hold.
    """
    names = [arm.name for arm in arms]
    missing = sorted({base, *names} - ({*tables} & {*summaries} & {*names}))
    if missing:
        raise InputError(
            f"arms, tables, summaries: expected {missing} in all three, got "
            f"{names}, {list(tables)}, {list(summaries)}"
        )
    fitted = fit_simulator(buffer, difficulty[buffer.task_id], max_steps=max_steps)
    mixes = {name: difficulty[np.unique(tables[name].task_id)] for name in names}
    _check_difficulties(np.concatenate([*mixes.values()]), fitted)
    by_rank, *keys = jax.random.split(key, 1 + len(arms))
    found: dict[str, dict[str, Any]] = {}
    for arm_key, arm in zip(keys, arms, strict=True):
        level = np.resize(mixes[arm.name], episodes)
        played = _simulate_arm(arm_key, fitted, arm, level, max_steps)
        found[arm.name] = _match(played, tables[arm.name], summaries[arm.name])
    for numbers in found.values():
        numbers["gain_error"] = numbers["q_error"] - found[base]["q_error"]
    others = [numbers for name, numbers in found.items() if name != base]
    return {
        "states": int(fitted.num_states),
        "episodes": episodes,
        "arms": found,
        "mean_q_error": _mean_size(found.values(), "q_error"),
        "mean_gain_error": _mean_size(others, "gain_error"),
        "mean_steps_error": _mean_size(found.values(), "steps_error"),
        "q_rank_correlation": _rank(
            by_rank,
            [found[name]["q"] for name in names],
            [summaries[name]["q"]["point"] for name in names],
        ),
    }


def simulate_policy(
    key: Key,
    tables: FittedTables,
    policy_fn: PolicyFn,
    params: Any,
    difficulty: np.ndarray,
    *,
    max_steps: int = 10,
) -> SimulatedEpisodes:
    """One simulated episode for each entry of `difficulty`, `[B]` int."""
    level = jnp.asarray(difficulty, jnp.int32)
    by_reset, by_action, by_step = jax.random.split(key, 3)
    state, now = _reset(by_reset, tables, level, max_steps)
    score, steps, unsupported = np.zeros((3, len(difficulty)))
    supported = np.asarray(tables.supported)
    for t in range(max_steps):
        live = ~(np.asarray(now.terminated) | np.asarray(now.truncated))
        action = _act(by_action, t, policy_fn, params, now)
        known = supported[now.anchor, action]
        state, now = _step(by_step, t, tables, (state, now), action, level, max_steps)
        steps += live
        unsupported += live & ~known
        score += np.where(live, now.reward, 0.0)
    return SimulatedEpisodes(
        score, steps, unsupported, halted=np.asarray(state.visit) == HALTED
    )


@_quickly_compiled
def _reset(
    key: Key, tables: FittedTables, level: Array, max_steps: int
) -> tuple[FittedState, TimeStep]:
    env = FittedSim(tables, max_steps)
    return jax.vmap(env.reset)(jax.random.split(key, len(level)), level)


@partial(_quickly_compiled, static_argnames="policy_fn")
def _act(key: Key, t: int, policy_fn: PolicyFn, params: Any, now: TimeStep) -> Array:
    keys = jax.random.split(jax.random.fold_in(key, t), len(now.anchor))
    act = jax.vmap(policy_fn, (None, 0, 0, 0))
    return act(params, keys, cast(Array, now.observation), now.legal)[0]


@_quickly_compiled
def _step(
    key: Key,
    t: int,
    tables: FittedTables,
    before: tuple[FittedState, TimeStep],
    action: Array,
    level: Array,
    max_steps: int,
) -> tuple[FittedState, TimeStep]:
    """The next step of episodes that go on; the others stay as they are."""
    state, now = before
    env = FittedSim(tables, max_steps)
    keys = jax.random.split(jax.random.fold_in(key, t), len(level))
    after = jax.vmap(env.step)(keys, state, action, level)
    ended = now.terminated | now.truncated

    def kept(old: Array, new: Array) -> Array:
        return jnp.where(ended.reshape(-1, *(1,) * (old.ndim - 1)), old, new)

    return jax.tree.map(kept, before, after)


def _simulate_arm(
    key: Key, fitted: FittedTables, arm: Arm, level: np.ndarray, max_steps: int
) -> SimulatedEpisodes:
    """All controllers of an arm; policies without parameters are all one."""
    distinct = arm.params if jax.tree.leaves(arm.params) else arm.params[:1]
    parts = [
        simulate_policy(k, fitted, arm.policy_fn, params, level, max_steps=max_steps)
        for k, params in zip(
            jax.random.split(key, len(distinct)), distinct, strict=True
        )
    ]
    fields = SimulatedEpisodes.__dataclass_fields__
    return SimulatedEpisodes(
        **{name: np.concatenate([getattr(p, name) for p in parts]) for name in fields}
    )


def _match(
    played: SimulatedEpisodes, real: EpisodeTable, summary: Mapping[str, Any]
) -> dict[str, Any]:
    numbers: dict[str, Any] = {}
    for name, value in (("q", played.score), ("steps", played.steps)):
        mean, seen = float(value.mean()), summary[name]
        numbers[name] = mean
        numbers[f"{name}_error"] = mean - float(seen["point"])
        numbers[f"{name}_inside"] = bool(seen["low"] <= mean <= seen["high"])
    return numbers | {
        "steps_distance": _total_variation(played.steps, real.steps[real.valid]),
        "unsupported": float(played.unsupported.sum() / played.steps.sum()),
        "halted": float(played.halted.mean()),
    }


def _total_variation(a: np.ndarray, b: np.ndarray) -> float:
    """Half the sum over counts of the difference in their shares."""
    size = int(max(a.max(), b.max())) + 1
    shares = [np.bincount(x.astype(int), minlength=size) / len(x) for x in (a, b)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _check_difficulties(held_out: np.ndarray, fitted: FittedTables) -> None:
    logged = np.flatnonzero(np.diff(np.asarray(fitted.first_start)))
    unknown = sorted({*held_out.tolist()} - {*logged.tolist()})
    if unknown:
        raise InputError(
            f"buffer: expected episodes of every held-out difficulty, got none of "
            f"{unknown}. Stratify the split by difficulty"
        )


def _mean_size(rows: Any, name: str) -> float:
    return float(np.mean([abs(row[name]) for row in rows]))


def _rank(key: Key, simulated: list[float], real: list[float]) -> float | None:
    found = rank_correlation(
        key, np.asarray(simulated, np.float32), np.asarray(real, np.float32)
    )
    coefficient = float(found.coefficient)
    return None if np.isnan(coefficient) else coefficient
