"""How fast stored episodes replay: coding episodes, stored answers and verdicts.

python -m experiments.bench.replay

Runs the episodes once with a stand-in for the model and the real sandbox, then again
from the store alone, in a fresh store object: no model, no sandbox, the same episodes.
Expected on 2 cores: at least 200 episodes/s in the replay (the issue's target).
"""

from __future__ import annotations

import sys
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from jerp.bridge.episodes import Episodes, run_episodes
from jerp.bridge.executor import Executor, Request
from jerp.bridge.sandbox import Sandbox
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.domains.controlled.coding import CodingDomain
from jerp.errors import ConfigError, JerpError
from jerp.harness.baselines import uniform_policy
from jerp.trajectory import Trajectory, concatenate

__all__ = ["Replay", "ReplaySpeed", "measure"]

EXPRESSIONS = ("0", "None", "''", "[]", "sum([])", "len('abc')", "x +")
SAMPLES = 3


@dataclass(frozen=True)
class Replay:
    """Measures replaying.

    Attributes:
      episodes: how many.
      tasks: distinct tasks among them.
      batch: episodes side by side.
      seed: of the tasks and of the controller's keys.
    """

    episodes: int = 1000
    tasks: int = 60
    batch: int = 200
    seed: int = 0

    def __post_init__(self):
        if min(self.episodes, self.tasks, self.batch) < 1:
            raise ConfigError(
                f"episodes, tasks, batch: expected at least 1, got {self}"
            )


@dataclass(frozen=True)
class ReplaySpeed:
    """Seconds of each part; `replay` excludes loading and compiling.

    Attributes:
      processor: of the replay, in all threads: what a busy machine does not change.
      equal: the replayed episodes are those of the live pass.
    """

    episodes: int
    steps: int
    live: float
    load: float
    replay: float
    processor: float
    equal: bool


def measure(config: Replay) -> ReplaySpeed:
    """Fills a store in a temporary folder, replays it and compares."""
    with tempfile.TemporaryDirectory() as folder:
        with ResponseStore(folder) as store:
            inner = ScriptedExecutor(_expression, name="bench")
            live, live_seconds, _ = _timed(config, inner, store)
        began = time.perf_counter()
        store = ResponseStore(Path(folder), mode="replay")
        load = time.perf_counter() - began
        replayed, replay_seconds, processor = _timed(config, None, store)
        if store.stats.misses:
            raise JerpError(f"the replay was no replay: misses {store.stats.misses}")
    return ReplaySpeed(
        episodes=len(replayed.outcome),
        steps=int(np.sum(replayed.mask)),
        live=live_seconds,
        load=load,
        replay=replay_seconds,
        processor=processor,
        equal=_equal(live, replayed),
    )


def _expression(request: Request) -> str:
    text = request.messages[-1].content + str(request.sample_index)
    return EXPRESSIONS[zlib.crc32(text.encode()) % len(EXPRESSIONS)]


def _timed(
    config: Replay, inner: Executor | None, store: ResponseStore
) -> tuple[Trajectory, float, float]:
    policy = uniform_policy()
    with Sandbox(store=store) as sandbox:
        domain = CodingDomain(sandbox)
        with Session(domain, StoredExecutor(inner, store)) as session:
            tasks = domain.generate(config.seed, config.tasks)
            starts = range(0, config.episodes, config.batch)
            # Compiles the policy for both batch sizes; its episodes are thrown away.
            for start in {0: starts[0], 1: starts[-1]}.values():
                _batch(config, session, policy, tasks, start, num_steps=1)
            began, began_processor = time.perf_counter(), time.process_time()
            batches = [_batch(config, session, policy, tasks, s) for s in starts]
            seconds = time.perf_counter() - began
            processor = time.process_time() - began_processor
    return concatenate([b.trajectory for b in batches]), seconds, processor


def _batch(
    config: Replay, session: Session, policy: Any, tasks: Any, start: int, **change: Any
) -> Episodes:
    rows = np.arange(start, min(start + config.batch, config.episodes))
    stream = jax.random.key(config.seed)
    keys = jax.vmap(lambda row: jax.random.fold_in(stream, row))(rows)
    arguments = {
        "num_steps": session.domain.max_steps,
        "task_id": rows % len(tasks),
        "group_id": rows % len(tasks),
        "seed": rows,
    }
    return run_episodes(
        session,
        policy,
        (),
        keys,
        [tasks[i % len(tasks)] for i in rows],
        rows // len(tasks) % SAMPLES,
        **arguments | change,
    )


def _equal(one: Trajectory, two: Trajectory) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(two), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def main(config: Replay) -> int:
    """Measures and prints a table."""
    speed = measure(config)
    table = Table(title=f"{speed.episodes} coding episodes, {speed.steps} steps")
    for column in ("pass", "seconds", "episodes/s"):
        table.add_column(column, justify="left" if column == "pass" else "right")
    rows = {
        "live: stand-in for the model, real sandbox": speed.live,
        "replay: stored answers and verdicts": speed.replay,
    }
    for name, seconds in rows.items():
        table.add_row(name, f"{seconds:.2f}", f"{speed.episodes / seconds:.0f}")
    console = Console()
    console.print(table)
    console.print(
        f"replay is {speed.live / speed.replay:.1f} times as fast and takes "
        f"{speed.processor:.2f} s of processor; loading the store took "
        f"{speed.load:.2f} s; same episodes: {'yes' if speed.equal else 'NO'}"
    )
    return 0 if speed.equal else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Replay)))
