import subprocess
import sys

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jerp.bridge.callback import scan_episodes
from jerp.bridge.episodes import run_episodes
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.errors import ConfigError, StorageError, StoreMissError
from jerp.typing import USAGE_KINDS
from tests.bridge.fake_domain import FakeDomain, answer
from tests.bridge.policies import keys, labels, linear, scripted

BATCH = 12
SECONDS = USAGE_KINDS.index("seconds")


def run(loop, session, policy, params=(), *, seed=0):
    return loop(
        session,
        policy,
        params,
        keys(BATCH, seed),
        session.domain.generate(0, BATCH),
        np.arange(BATCH) % 3,
        **labels(BATCH),
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_scan_and_host_loop_give_the_same_episodes(seed, caplog):
    params = jax.random.normal(jax.random.key(7), (18, 7))
    results = []
    for loop in (run_episodes, scan_episodes):
        executor = ScriptedExecutor(answer, failures={2: "timeout", 9: "empty"})
        domain = FakeDomain(raises=[4], bad_score=[5])
        results.append(run(loop, Session(domain, executor), linear, params, seed=seed))
    host, scan = results
    named = zip(
        jax.tree.leaves_with_path(host.trajectory),
        jax.tree.leaves(scan.trajectory),
        strict=True,
    )
    for (path, want), got in named:
        assert got.dtype == want.dtype
        if path[0].name == "usage":
            want, got = (np.delete(x, SECONDS, axis=-1) for x in (want, got))
        np.testing.assert_array_equal(got, want, err_msg=jax.tree_util.keystr(path))
    assert [w.transcript for w in scan.workspaces] == [
        w.transcript for w in host.workspaces
    ]
    assert {1, 2, 4} <= set(host.trajectory.outcome.tolist())


def test_one_host_call_a_step_for_all_episodes():
    session = Session(FakeDomain(), ScriptedExecutor(answer))
    calls = []
    real = session.step

    def step(handle, action):
        calls.append(len(handle))
        return real(handle, action)

    session.step = step
    run(scan_episodes, session, scripted(3, 4, 6))
    assert calls == [BATCH] * 8


def test_one_trace_for_all_batches_of_a_session():
    policy = chex.assert_max_traces(scripted(3, 6), n=1)
    session = Session(FakeDomain(), ScriptedExecutor(answer))
    for seed in range(2):
        run(scan_episodes, session, policy, seed=seed)


def test_a_miss_is_raised_after_the_scan_as_itself():
    asked = []

    def script(request):
        asked.append(request)
        if len(asked) > BATCH:
            raise StoreMissError("nothing recorded", request)
        return "poor"

    session = Session(FakeDomain(), ScriptedExecutor(script))
    with pytest.raises(StoreMissError, match="fake, task fake/0/0000: nothing"):
        run(scan_episodes, session, scripted(3, 4, 5, 4, 5, 6))
    assert len(asked) == BATCH + 1
    assert not session._episodes


@pytest.mark.parametrize("error", [StorageError, KeyboardInterrupt])
def test_what_the_session_raises_comes_out_and_the_session_lives_on(error):
    domain = FakeDomain(raises=[1], error=error)
    session = Session(domain, ScriptedExecutor(answer), workers=1)
    with pytest.raises(error, match="broke on 1"):
        run(scan_episodes, session, scripted(3, 6))
    domain.raises.clear()
    assert run(scan_episodes, session, scripted(3, 6)).trajectory.terminated.any()


def test_arguments_are_checked_as_in_the_host_loop():
    session = Session(FakeDomain(), ScriptedExecutor(answer))
    tasks = session.domain.generate(0, BATCH)
    with pytest.raises(ConfigError, match="keys: expected one for each"):
        scan_episodes(
            session, linear, jnp.zeros(()), keys(2), tasks, [0] * BATCH, **labels(BATCH)
        )


def test_an_executor_that_uses_jax_inside_the_callback_does_not_deadlock():
    child = subprocess.run(
        [sys.executable, "-m", "tests.bridge.jax_inside_callback"],
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.startswith("finished [0.5, 0.5")
