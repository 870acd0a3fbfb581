"""Run as a program by test_callback: an executor that itself uses JAX in the scan.

One core, and inputs still being computed when the scan starts: without
`jerp.bridge.callback._ready` this hangs (run it with the argument `--unready` to see).
"""

import asyncio
import os
import sys

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax
import jax.numpy as jnp
import numpy as np

from jerp.bridge import callback
from jerp.bridge.executor import Completion
from jerp.bridge.session import Session
from tests.bridge.fake_domain import FakeDomain

BATCH = 8


@jax.jit
def heavy(x):
    def body(c, _):
        return jnp.tanh(c @ c) / 100, None

    return jax.lax.scan(body, x, None, length=40)[0]


class JaxExecutor:
    """Multiplies matrices for every batch, in the loop's thread and in another."""

    fingerprint = "scripted:jax"

    def __init__(self):
        self.calls = 0

    async def complete(self, requests):
        self.calls += 1
        here = heavy(jnp.full((256, 256), float(self.calls)))
        there = await asyncio.to_thread(lambda: np.asarray(heavy(here)))
        assert np.isfinite(there).all()
        return [Completion(f"poor {r.sample_index}") for r in requests]


def policy(params, key, observation, legal):
    """Draft, check, revise, check, revise, submit."""
    step = jnp.round(observation[0] * 8).astype(jnp.int32)
    return jnp.array([3, 4, 5, 4, 5, 6, 0, 0])[step], params.sum() * 0


def episodes(session, params):
    return callback.scan_episodes(
        session,
        policy,
        params,
        jax.random.split(jax.random.key(0), BATCH),
        session.domain.generate(0, BATCH),
        np.arange(BATCH),
        num_steps=8,
        task_id=np.arange(BATCH),
        group_id=np.arange(BATCH),
        seed=np.zeros(BATCH),
    )


def main():
    if "--unready" in sys.argv:
        callback._ready = lambda *inputs: inputs
    executor = JaxExecutor()
    session = Session(FakeDomain(), executor)
    matrix = jnp.ones((512, 512))
    # Once with everything compiled, then with parameters that are still pending.
    episodes(session, jax.block_until_ready(heavy(matrix)))
    for _ in range(8):
        matrix = heavy(matrix)
    trajectory = episodes(session, matrix).trajectory
    assert executor.calls == 6, executor.calls
    assert trajectory.mask.sum() == 6 * BATCH
    print("finished", trajectory.score.tolist())


if __name__ == "__main__":
    main()
