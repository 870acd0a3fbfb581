"""Collects episodes into a folder: a program that tests start and kill.

The executor is a stand-in that answers slowly, so that a kill can fall anywhere.
"""

import hashlib
import sys
from pathlib import Path

import numpy as np

from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.bridge.store import ResponseStore, StoredExecutor
from jerp.domains.controlled.research import ResearchDomain
from jerp.harness.baselines import BASE_SEQUENCES, perturbed_policy
from jerp.runs.harness.collection import HarnessSizes, collect, training_plan
from jerp.storage.trajectories import TrajectoryFolder

WORDS = ("silver", "1812", "a mill", "forty", "north")


def answer(request) -> str:
    digest = hashlib.sha256(repr(request).encode()).digest()
    return WORDS[digest[0] % len(WORDS)]


def collect_all(folder: Path, *, latency: float) -> TrajectoryFolder:
    """48 episodes in shards of six, with a store that grows beside them."""
    domain = ResearchDomain()
    tasks = domain.generate(0, 30)
    plan = training_plan(
        tasks, np.arange(16, dtype=np.int32), HarnessSizes(rollouts=3, samples=3)
    )
    policy = perturbed_policy(BASE_SEQUENCES["research"], epsilon=0.5)
    executor = ScriptedExecutor(answer, latency=latency)
    with (
        ResponseStore(folder / "store") as store,
        Session(domain, StoredExecutor(executor, store)) as session,
    ):
        return collect(
            folder / "buffer",
            domain,
            session,
            policy,
            [()],
            plan,
            role="buffer",
            seed=0,
            chunk=6,
            meta={},
            on_progress=lambda count: print(count, flush=True),
        )


if __name__ == "__main__":
    collect_all(Path(sys.argv[1]), latency=0.05)
