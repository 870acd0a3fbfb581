"""The remote executor against an endpoint that misbehaves."""

import asyncio

import pytest

from experiments.bench.fault_server import (
    FAULTS,
    FaultServer,
    planned,
)
from jerp.bridge.blocking import wait_for
from jerp.bridge.budget import BudgetExceededError, Caps
from jerp.bridge.concurrency import Concurrency
from jerp.bridge.retry import RetryPolicy, Timing
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import StoredExecutor
from tests.bridge.remote_asking import (
    KEY,
    PRICE,
    always,
    ask,
    executor,
    requests,
    texts,
)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def test_a_third_of_faults_loses_nothing_and_counts_nothing_twice():
    asked = requests(200)
    completions, usage, server = ask(asked, planned(0.3))
    assert set(server.met) == set(FAULTS)
    assert [c.text for c in completions] == texts(asked)
    assert {c.status for c in completions} == {"ok"}
    assert usage.requests == 200 and usage.in_flight == 0
    assert usage.attempts == sum(server.attempts.values())
    assert usage.attempts == 200 + sum(usage.retries.values())
    assert set(server.answered.values()) == {1}
    limited = sum(server.met[f] for f in FAULTS if f.startswith("429"))
    assert usage.rate_limited == usage.retries["rate_limit"] == limited
    harmless = server.met["duplicate_id"]
    assert sum(usage.retries.values()) == sum(server.met.values()) - harmless


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ("429_bare", "error", "rate_limit"),
        ("502_html", "error", "server"),
        ("200_html", "error", "garbled"),
        ("half_json", "error", "garbled"),
        ("reset", "error", "connection"),
        ("hang", "timeout", "timeout"),
        ("slow_body", "timeout", "timeout"),
        ("no_choices", "empty", "empty"),
        ("wrong_model", "error", "other_model"),
    ],
)
def test_what_fails_to_the_end_says_how_and_is_never_text(fault, status, kind):
    seconds = 0.1 if status == "timeout" else 30
    retry = RetryPolicy(2, 0.001, 0.001, attempt_seconds=seconds)
    [bad], usage, _ = ask(requests(1), always(fault), retry=retry, price=PRICE)
    assert (bad.text, bad.status) == ("", status)
    assert bad.error.startswith(f"{kind} after 2 attempts: ")
    assert usage.attempts == 2 and usage.retries == {kind: 1}
    answered = fault in ("no_choices", "wrong_model")
    unknown = fault in ("200_html", "half_json", "reset", "hang", "slow_body")
    most = usage.dollars_unconfirmed
    assert (most > 2 * 5) == unknown
    assert usage.dollars == (20 if answered else most) == bad.dollars


def test_a_deadline_ends_the_attempts_of_a_request():
    now = [0.0]

    async def sleep(seconds):
        now[0] += seconds

    timing = Timing(clock=lambda: now[0], sleep=sleep, uniform=lambda: 1.0)
    retry = RetryPolicy(99, base_seconds=3, cap_seconds=3, request_seconds=10)
    [bad], usage, _ = ask(requests(1), always("500"), retry=retry, timing=timing)
    # attempts at 0, 3, 6 and 9 seconds; the next would be after the deadline
    assert (bad.status, bad.seconds, usage.attempts) == ("error", 9.0, 4)


def test_a_deadline_ends_an_attempt_under_way():
    retry = RetryPolicy(attempt_seconds=9, request_seconds=0.2)
    [hung], usage, _ = ask(requests(1), always("hang"), retry=retry)
    assert (hung.status, usage.attempts) == ("timeout", 1)
    assert 0.2 <= hung.seconds < 5


def test_waits_are_those_that_the_server_and_the_policy_name():
    waits: list[float] = []

    async def sleep(seconds):
        waits.append(seconds)

    timing = Timing(sleep=sleep, uniform=lambda: 0.5)
    retry = RetryPolicy(base_seconds=4.0, cap_seconds=9.0, attempt_seconds=1)
    _, usage, _ = ask(requests(1), always("500", 4), retry=retry, timing=timing)
    assert waits == [2.0, 4.0, 4.5, 4.5]
    assert usage.seconds_waited == 15.0


def test_concurrency_follows_overloads():
    bounds = Concurrency(start=32, cap=32)
    _, usage, server = ask(
        requests(32), always("503", 1), latency=0.1, concurrency=bounds
    )
    assert server.most_in_flight == 32
    assert usage.concurrency < 32
    few = Concurrency(start=2, cap=4)
    _, usage, server = ask(requests(32), concurrency=few, latency=0.01)
    assert server.most_in_flight == 4 == usage.concurrency


@pytest.mark.parametrize(
    ("caps", "name"),
    [(Caps(requests=12), "requests"), (Caps(dollars=700.0), "dollars")],
)
def test_a_cap_stops_the_run_and_what_was_answered_is_stored(caps, name):
    store = ResponseStore(None)

    async def run():
        async with (
            FaultServer(latency=0.01) as server,
            executor(server.url, caps=caps, price=PRICE) as remote,
        ):
            stored = StoredExecutor(remote, store)
            with pytest.raises(BudgetExceededError, match=rf"caps\.{name}"):
                await stored.complete(requests(100))
            return remote.usage, server, len(asyncio.all_tasks())

    usage, server, tasks = asyncio.run(run())
    assert usage.in_flight == 0 and tasks == 1
    assert len(store.entries()) == usage.requests == len(server.answered) > 0
    if name == "requests":
        assert usage.attempts == usage.requests == 12
    else:  # an attempt may cost 39 dollars and costs 10: the rest fits no more
        assert 700 - 39 < usage.dollars <= 700


def test_a_cap_on_seconds_ends_waits_and_attempts_too():
    async def run(plan, retry):
        async with FaultServer(plan) as server:
            caps = Caps(seconds=0.2)
            async with executor(server.url, caps=caps, retry=retry) as remote:
                began = asyncio.get_running_loop().time()
                with pytest.raises(BudgetExceededError, match=r"caps\.seconds"):
                    await remote.complete(requests(20))
                return asyncio.get_running_loop().time() - began

    hung = asyncio.run(run(always("hang"), RetryPolicy(base_seconds=0.0)))
    assert 0.15 < hung < 2


def test_an_answer_that_waits_for_a_retry_ends_with_the_run():
    def plan(prompt, attempt):
        return "500" if prompt == "q0" else None

    async def run():
        async with FaultServer(plan) as server:
            retry = RetryPolicy(base_seconds=50, cap_seconds=50)
            settings = {"caps": Caps(requests=8), "retry": retry}
            timing = Timing(uniform=lambda: 1.0)
            async with executor(server.url, timing=timing, **settings) as remote:
                with pytest.raises(BudgetExceededError):
                    await asyncio.wait_for(remote.complete(requests(20)), timeout=5)
                return remote.usage

    assert asyncio.run(run()).attempts == 8


def test_cancelling_leaves_nothing_behind():
    async def run():
        async with (
            FaultServer(always("hang")) as server,
            executor(server.url, price=PRICE) as remote,
        ):
            task = asyncio.create_task(remote.complete(requests(50)))
            while not server.met["hang"]:
                await asyncio.sleep(0.005)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return remote.usage, asyncio.all_tasks()

    usage, tasks = asyncio.run(run())
    assert usage.in_flight == 0 and len(tasks) == 1
    # the server may have done the work of all that were sent
    assert usage.dollars == usage.dollars_unconfirmed > 5 * usage.attempts > 0


def test_it_works_from_synchronous_code_inside_a_running_loop():
    server = FaultServer()
    asked = requests(3)

    async def cell():
        wait_for(server.__aenter__())
        remote = executor(server.url)
        try:
            return wait_for(remote.complete(asked))
        finally:
            wait_for(remote.aclose())
            wait_for(server.__aexit__())

    assert [c.text for c in asyncio.run(cell())] == texts(asked)


def test_one_executor_serves_several_loops_and_keeps_one_account():
    async def run(remote, server):
        async with server:
            remote._url = server.url
            async with remote:
                return await remote.complete(requests(2))

    remote = executor("http://127.0.0.1:1/v1")
    for _ in range(2):
        assert len(asyncio.run(run(remote, FaultServer()))) == 2
    assert remote.usage.requests == 4
