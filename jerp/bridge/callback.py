"""Episodes of a session inside one `lax.scan`: one host call a step for all of them.

An executor may itself use JAX inside that call. It does not deadlock, because the scan
then occupies no thread that JAX's CPU client needs: a computation with a host callback
runs in the calling thread if its inputs are ready, and is queued on the client's thread
pool only if it has to wait for them. On one core that pool has one thread. Measured on
one core (jax 0.10.2): a scan that was queued hung at the executor's first matrix
product in 4 of 4 runs, one with ready inputs in none of 12. So everything pending is
waited for first. The scan runs on the CPU even where the executor uses a GPU, whose
stream a waiting callback would hold up (not measured: no GPU at hand).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from numpy.typing import ArrayLike

from jerp.bridge.episodes import Episodes, StepRecord, act, assemble, check_request
from jerp.bridge.session import Session, SessionStep
from jerp.records import Task
from jerp.typing import USAGE_KINDS, Array, ArrayTree, Key, PolicyFn

__all__ = ["scan_episodes"]


def scan_episodes(
    session: Session,
    policy_fn: PolicyFn,
    params: ArrayTree,
    keys: Key,
    tasks: Sequence[Task],
    sample_index: ArrayLike,
    *,
    num_steps: int,
    task_id: ArrayLike,
    group_id: ArrayLike,
    seed: ArrayLike,
    version: ArrayLike = 0,
) -> Episodes:
    """`run_episodes` as one compiled loop; the same episodes, arguments and errors.

    An error of the session cannot cross the callback: it is kept, the remaining steps
    do nothing, and it is raised after the scan. An interrupt (Ctrl-C) is noticed at the
    next host call; use `run_episodes` where steps take minutes.
    """
    check_request(keys, tasks, num_steps)
    handle, feature, legal = session.open(tasks, sample_index)
    host = _host_of(session)
    try:
        inputs = _ready(params, keys, handle, feature, legal)
        record, final_feature = jax.device_get(
            _scan(host, policy_fn, num_steps, *inputs)
        )
        host.raise_failure(handle)
        session.flush()
        return assemble(
            session,
            handle,
            jax.tree.map(lambda x: np.swapaxes(x, 0, 1), record),
            final_feature,
            num_steps=num_steps,
            task_id=task_id,
            group_id=group_id,
            seed=seed,
            version=version,
        )
    finally:
        session.close(handle)


class _Host:
    """`Session.step` that never raises: what JAX calls, once a step."""

    def __init__(self, session: Session):
        self._session = session
        self._failures: dict[int, BaseException] = {}

    def step(self, handle: Array, action: Array, feature: Array, legal: Array):
        """The session's step, or one in which nothing happened once it has failed."""
        handles, batch = np.asarray(handle), len(handle)
        if int(handles[0]) not in self._failures:
            try:
                return self._session.step(handles, np.asarray(action))
            except BaseException as error:
                self._failures[int(handles[0])] = error
        return SessionStep(
            np.asarray(feature),
            np.asarray(legal),
            np.zeros(batch, np.float32),
            np.zeros(batch, np.bool_),
            np.ones(batch, np.bool_),
            np.zeros(batch, np.int32),
            np.zeros((batch, len(USAGE_KINDS)), np.float32),
        )

    def raise_failure(self, handle: np.ndarray) -> None:
        failure = self._failures.pop(int(handle[0]), None)
        if failure is not None:
            raise failure


@lru_cache(maxsize=8)
def _host_of(session: Session) -> _Host:
    """The same host for the same session, so that the scan is traced once."""
    return _Host(session)


def _ready(*inputs: Any) -> tuple[Any, ...]:
    """`inputs` on the CPU, with nothing pending there: see the module docstring."""
    cpu = jax.local_devices(backend="cpu")[0]
    inputs = jax.device_put(inputs, cpu)
    # Computations of one thread run in order, so this one ends after all before it.
    last = jnp.negative(jax.device_put(np.float32(0), cpu))
    return jax.block_until_ready((inputs, last))[0]


@partial(jax.jit, static_argnames=("host", "policy_fn", "num_steps"))
def _scan(
    host: _Host,
    policy_fn: PolicyFn,
    num_steps: int,
    params: ArrayTree,
    keys: Key,
    handle: Array,
    feature: Array,
    legal: Array,
) -> tuple[StepRecord, Array]:
    shapes = _step_shapes(feature, legal)

    def body(state, t):
        feature, legal = state
        action, log_prob = act(policy_fn, params, keys, t, feature, legal)
        step = io_callback(
            host.step, shapes, handle, action, feature, legal, ordered=True
        )
        record = StepRecord(feature, legal, action, log_prob, *step[2:])
        return (step.feature, step.legal), record

    steps = jnp.arange(num_steps, dtype=jnp.int32)
    (feature, _), record = jax.lax.scan(body, (feature, legal), steps)
    return record, feature


def _step_shapes(feature: Array, legal: Array) -> Any:
    """A `SessionStep` of the shapes and types that the host returns."""
    batch = feature.shape[0]
    array: Any = jax.ShapeDtypeStruct
    return SessionStep(
        feature=array(feature.shape, feature.dtype),
        legal=array(legal.shape, legal.dtype),
        reward=array((batch,), jnp.float32),
        terminated=array((batch,), jnp.bool_),
        truncated=array((batch,), jnp.bool_),
        outcome=array((batch,), jnp.int32),
        usage=array((batch, len(USAGE_KINDS)), jnp.float32),
    )
