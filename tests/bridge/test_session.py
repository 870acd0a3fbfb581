import asyncio
import threading

import numpy as np
import pytest

from jerp.bridge.executor import Completion
from jerp.bridge.scripted import ScriptedExecutor
from jerp.bridge.session import Session
from jerp.errors import (
    ConfigError,
    ExecutorError,
    SandboxError,
    StorageError,
    StoreMissError,
)
from jerp.harness.actions import Action
from jerp.harness.state import NUM_FEATURES
from jerp.typing import Outcome
from tests.bridge.fake_domain import FakeDomain, answer

SUBMIT, DRAFT, CHECK = int(Action.SUBMIT), int(Action.DRAFT), int(Action.CHECK)


def opened(domain=None, executor=None, *, count=3, samples=None, workers=2):
    domain = domain or FakeDomain()
    session = Session(domain, executor or ScriptedExecutor(answer), workers=workers)
    samples = np.arange(count) if samples is None else samples
    handle, feature, legal = session.open(domain.generate(0, count), samples)
    return session, handle, feature, legal


def run(session, handle, *actions):
    return [session.step(handle, np.full(len(handle), a)) for a in actions][-1]


def test_open_shows_every_episode_its_first_state():
    session, handle, feature, legal = opened()
    assert handle.dtype == np.int32 and len(set(handle.tolist())) == 3
    assert feature.shape == (3, NUM_FEATURES) and feature.dtype == np.float32
    assert legal.shape == (3, 7) and legal.dtype == np.bool_
    again, *_ = session.open(session.domain.generate(1, 2), [0, 0])
    assert not set(again.tolist()) & set(handle.tolist())


def test_one_call_of_the_executor_serves_all_episodes_of_a_step():
    executor = ScriptedExecutor(answer)
    session, handle, *_ = opened(executor=executor)
    session.step(handle, [DRAFT, int(Action.RETRIEVE), DRAFT])
    assert executor.calls == 1
    prompts = [r.messages[0].content for r in executor.requests]
    assert prompts == ["write word 0 with nothing", "write word 2 with nothing"]
    assert [r.sample_index for r in executor.requests] == [0, 2]
    session.step(handle, [CHECK, int(Action.RETRIEVE), CHECK])
    assert executor.calls == 1


def test_a_submit_is_judged_and_its_score_is_the_reward():
    session, handle, *_ = opened()
    step = run(session, handle, DRAFT)
    assert step.reward.tolist() == [0, 0, 0]
    assert step.outcome.tolist() == [Outcome.TRUNCATED] * 3
    assert not step.terminated.any() and not step.truncated.any()
    step = run(session, handle, SUBMIT)
    assert step.reward.tolist() == [1.0, 0.5, 0.5]
    assert step.terminated.all() and not step.truncated.any()
    assert step.outcome.tolist() == [
        Outcome.SUCCESS,
        Outcome.FAILURE,
        Outcome.FAILURE,
    ]
    assert not step.legal.any()


def test_an_ended_episode_ignores_its_action_and_is_paid_once():
    session, handle, *_ = opened()
    before = run(session, handle, DRAFT, SUBMIT)
    after = run(session, handle, 0)
    assert after.reward.tolist() == [0, 0, 0]
    assert after.usage.sum() == 0
    np.testing.assert_array_equal(after.feature, before.feature)
    np.testing.assert_array_equal(after.outcome, before.outcome)
    assert len(session.workspace(handle[0]).transcript) == 2


def test_usage_counts_what_the_step_asked():
    def script(request):
        return Completion("good", tokens_in=11, tokens_out=3, seconds=0.5)

    session, handle, *_ = opened(executor=ScriptedExecutor(script))
    step = session.step(handle, [DRAFT, 0, DRAFT])
    np.testing.assert_array_equal(
        step.usage, np.float32([[1, 11, 3, 0.5, 0], [0] * 5, [1, 11, 3, 0.5, 0]])
    )


def test_running_out_of_steps_is_truncated_with_score_zero():
    session, handle, *_ = opened(count=1)
    session.domain.max_steps = 2
    step = run(session, handle, DRAFT, CHECK)
    assert step.truncated.tolist() == [True] and step.terminated.tolist() == [False]
    assert step.outcome.tolist() == [Outcome.TRUNCATED]
    assert step.reward.tolist() == [0]


@pytest.mark.parametrize("status", ["timeout", "error"])
def test_a_failed_executor_ends_its_episode_alone(status):
    executor = ScriptedExecutor(answer, failures={1: status})
    session, handle, *_ = opened(executor=executor)
    step = run(session, handle, DRAFT)
    assert step.outcome.tolist() == [2, Outcome.INFRASTRUCTURE, 2]
    assert step.truncated.tolist() == [False, True, False]
    assert not step.terminated.any()
    assert not step.legal[1].any() and step.legal[0].any()
    assert step.usage[1, 0] == 1
    entry = session.workspace(handle[1]).transcript[-1]
    assert entry["action"] == "draft" and entry["status"] == status
    assert "planned failure" in entry["error"]
    step = session.step(handle, [SUBMIT] * 3)
    assert step.outcome.tolist() == [1, Outcome.INFRASTRUCTURE, 0]


@pytest.mark.parametrize("status", ["empty", "refused", "malformed"])
def test_a_bad_answer_is_an_observation_and_the_episode_goes_on(status):
    executor = ScriptedExecutor(answer, failures={0: status})
    session, handle, *_ = opened(executor=executor, count=2)
    step = run(session, handle, DRAFT)
    assert not step.truncated.any() and not step.terminated.any()
    entry = session.workspace(handle[0]).transcript[-1]
    assert entry["status"] == status and entry["observation"] == "no usable answer"
    assert step.legal[0, DRAFT] and not step.legal[1, DRAFT]
    assert session.workspace(handle[0]).trace[-1].error


def test_a_truncated_answer_is_used():
    executor = ScriptedExecutor(lambda r: Completion("good half", "truncated"))
    session, handle, *_ = opened(executor=executor)
    assert run(session, handle, DRAFT, SUBMIT).reward.tolist() == [1, 1, 1]


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("error", [RuntimeError, SandboxError, OSError])
def test_a_verifier_that_raises_ends_its_episode_with_the_text_kept(
    workers, error, caplog
):
    domain = FakeDomain(raises=[1], error=error)
    session, handle, *_ = opened(domain, workers=workers)
    step = run(session, handle, DRAFT, SUBMIT)
    assert step.outcome.tolist() == [1, Outcome.INFRASTRUCTURE, 0]
    assert step.reward.tolist() == [1.0, 0.0, 0.5]
    entry = session.workspace(handle[1]).transcript[-1]
    assert entry["error"] == f"{error.__name__}: verifier broke on 1"
    assert len(session.workspace(handle[1]).transcript) == 2
    assert len(session.anchors(handle[1])) == 2
    assert "fake/0/0001: submit raised" in caplog.text


def test_a_score_that_is_none_is_a_broken_verifier(caplog):
    session, handle, *_ = opened(FakeDomain(bad_score=[0]))
    step = run(session, handle, DRAFT, SUBMIT)
    assert step.outcome[0] == Outcome.INFRASTRUCTURE and step.reward[0] == 0
    assert "score is nan" in session.workspace(handle[0]).transcript[-1]["error"]


def test_a_request_that_cannot_be_made_ends_its_episode_alone(monkeypatch, caplog):
    domain = FakeDomain()
    real = domain.request

    def request(workspace, action):
        if workspace.task.payload["number"] == 0:
            raise LookupError("no prompt")
        return real(workspace, action)

    monkeypatch.setattr(domain, "request", request)
    session, handle, *_ = opened(domain)
    step = run(session, handle, DRAFT)
    assert step.outcome.tolist() == [Outcome.INFRASTRUCTURE, 2, 2]
    assert "no prompt" in session.workspace(handle[0]).transcript[-1]["error"]


def test_our_own_errors_reach_the_caller_and_nothing_has_moved():
    session, handle, *_ = opened(FakeDomain(raises=[1], error=StorageError))
    run(session, handle, DRAFT)
    with pytest.raises(StorageError, match="verifier broke on 1"):
        run(session, handle, SUBMIT)
    assert not any(session.workspace(h).terminated for h in handle)
    step = session.step(handle, [SUBMIT, 0, SUBMIT])
    assert step.terminated.tolist() == [True, False, True]


def test_a_store_miss_names_domain_and_task():
    def script(request):
        if "word 1" in request.messages[0].content:
            raise StoreMissError("nothing recorded", request)
        return "good"

    session, handle, *_ = opened(executor=ScriptedExecutor(script))
    with pytest.raises(StoreMissError, match="fake, task fake/0/0001: nothing rec"):
        run(session, handle, DRAFT)


def test_a_broken_executor_is_an_error_not_an_answer():
    class Short(ScriptedExecutor):
        async def complete(self, requests):
            return (await super().complete(requests))[1:]

    session, handle, *_ = opened(executor=Short(answer))
    with pytest.raises(ExecutorError, match="expected 3 completions"):
        run(session, handle, DRAFT)


@pytest.mark.parametrize("action", [CHECK, SUBMIT, 7, -1])
def test_an_illegal_action_is_refused_by_name(action):
    session, handle, *_ = opened()
    with pytest.raises(ConfigError, match=f"action: {action} is illegal.*fake/0/0001"):
        session.step(handle, [DRAFT, action, DRAFT])
    assert not session.workspace(handle[0]).transcript


def test_closed_episodes_are_forgotten():
    session, handle, *_ = opened()
    session.close(handle[1:])
    assert session.workspace(handle[0]).task.key == "fake/0/0000"
    for call in (session.workspace, session.anchors):
        with pytest.raises(ConfigError, match="is not open"):
            call(handle[1])
    with pytest.raises(ConfigError, match="is not open"):
        session.step(handle, [DRAFT] * 3)


def test_anchors_are_of_the_states_acted_in():
    session, handle, *_ = opened(count=2, samples=[0, 0])
    session.step(handle, [int(Action.OBSERVE), DRAFT])
    session.step(handle, [DRAFT, int(Action.OBSERVE)])
    first, second = (session.anchors(h) for h in handle)
    domain = session.domain
    start = domain.anchor(domain.begin(domain.generate(0, 1)[0], 0))
    assert first[0] == second[0] == start
    assert first[1] != second[1]


def test_wrong_arguments_are_refused_by_name():
    domain = FakeDomain()
    session = Session(domain, ScriptedExecutor(answer))
    with pytest.raises(ConfigError, match="sample_index"):
        session.open(domain.generate(0, 2), [0])
    with pytest.raises(ConfigError, match="at least one task"):
        session.open([], [])
    with pytest.raises(ConfigError, match="workers"):
        Session(domain, ScriptedExecutor(answer), workers=0)


def test_workers_advance_episodes_at_the_same_time():
    barrier = threading.Barrier(2, timeout=10)

    class Waiting(FakeDomain):
        def advance(self, workspace, action, completion):
            barrier.wait()
            return super().advance(workspace, action, completion)

    session, handle, *_ = opened(Waiting(), count=4)
    assert run(session, handle, DRAFT).outcome.tolist() == [2] * 4


def test_step_async_gives_the_same_step_in_the_callers_loop():
    session, handle, *_ = opened()
    twin, twin_handle, *_ = opened()

    async def steps():
        await session.step_async(handle, [DRAFT] * 3)
        return await session.step_async(handle, [SUBMIT] * 3)

    expected = run(twin, twin_handle, DRAFT, SUBMIT)
    for got, want in zip(asyncio.run(steps()), expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_step_works_inside_a_running_loop():
    session, handle, *_ = opened()

    async def cell():
        return run(session, handle, DRAFT, SUBMIT)

    assert asyncio.run(cell()).terminated.all()


def test_cancelling_step_async_moves_nothing():
    session, handle, *_ = opened(executor=ScriptedExecutor(answer, latency=3600))

    async def cancelled():
        task = asyncio.ensure_future(session.step_async(handle, [DRAFT] * 3))
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert not session.workspace(handle[0]).transcript


def test_a_context_manager_ends_the_threads():
    with opened()[0] as session:
        handle, *_ = session.open(session.domain.generate(0, 3), [0, 0, 0])
        run(session, handle, DRAFT)
        names = {t.name.rsplit("_", 1)[0] for t in threading.enumerate()}
        assert "jerp-advance" in names
    with pytest.raises(RuntimeError, match="after shutdown"):
        run(session, handle, CHECK)


def test_flush_reaches_an_executor_that_can():
    class Flushing(ScriptedExecutor):
        flushed = 0

        def flush(self):
            self.flushed += 1

    executor = Flushing(answer)
    Session(FakeDomain(), executor).flush()
    Session(FakeDomain(), ScriptedExecutor(answer)).flush()
    assert executor.flushed == 1
