"""The remote executor against an endpoint that misbehaves."""

import asyncio
import logging
import sys
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from experiments.bench.fault_server import (
    FAULTS,
    MODEL,
    FaultServer,
    expected_text,
    planned,
)
from jerp.bridge.blocking import wait_for
from jerp.bridge.budget import BudgetExceededError, Caps, Price
from jerp.bridge.chat_completions import WireOptions
from jerp.bridge.concurrency import Concurrency
from jerp.bridge.executor import Message, Request, Sampling, complete_checked
from jerp.bridge.remote import RemoteExecutor
from jerp.bridge.remote_settings import RemoteSettings
from jerp.bridge.request_records import request_seed
from jerp.bridge.retry import RetryPolicy, Timing
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import StoredExecutor
from jerp.errors import ConfigError, ExecutorError, MissingExtraError

KEY = "sk-do-not-show-me-42"
PRICE = Price(1e6, 1e6)  # a dollar a token
FAST = RetryPolicy(base_seconds=0.002, cap_seconds=0.02, attempt_seconds=0.25)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def requests(count, **sampling):
    sampling = {"max_tokens": 5} | sampling
    return [
        Request((Message("user", f"q{i}"),), Sampling(**sampling)) for i in range(count)
    ]


def texts(asked):
    return [expected_text(r.messages[0].content, request_seed(r)) for r in asked]


def always(fault, times=10**9):
    return lambda prompt, attempt: fault if attempt < times else None


def executor(url, *, model=MODEL, timing=None, **settings):
    settings = {"retry": FAST} | settings
    return RemoteExecutor(
        url, model, settings=RemoteSettings(**settings), timing=timing
    )


def ask(asked, plan=lambda prompt, attempt: None, latency=0.0, **settings):
    """Completions, the account and the server after one call."""

    async def run():
        async with (
            FaultServer(plan, latency) as server,
            executor(server.url, **settings) as remote,
        ):
            completions = await complete_checked(remote, asked)
            return completions, remote.usage, server

    return asyncio.run(run())


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


def test_another_model_is_refused_noted_or_known_by_a_second_name(caplog):
    caplog.set_level(logging.ERROR)
    plan = always("wrong_model", 1)
    _, usage, _ = ask(requests(1), plan)
    assert usage.models == {"another": 1, MODEL: 1}
    assert usage.retries == {"other_model": 1}
    for settings in ({"other_model": "note"}, {"served_as": ("another",)}):
        [answer], usage, _ = ask(requests(1), plan, **settings)
        assert answer.status == "ok" and usage.models == {"another": 1}


def test_a_name_with_a_date_is_the_same_model_and_a_change_is_logged(caplog):
    answer = b'{"model":"m-%d","choices":[{"message":{"content":"a"}}]}'

    async def run():
        count = iter(range(9))
        async with (
            serving(200, lambda headers: answer % next(count)) as url,
            executor(url, model="m") as remote,
        ):
            return [await remote.complete(requests(1)) for _ in range(2)]

    assert [c.status for [c] in asyncio.run(run())] == ["ok", "ok"]
    assert "'m-1' answers after m-0" in caplog.text


def test_a_declared_system_fingerprint_is_held_to():
    declared = {"system_fingerprint": "f1", "retry": RetryPolicy(max_attempts=1)}
    [answer], _, _ = ask(requests(1), **declared)
    assert answer.status == "error"
    assert "system_fingerprint: expected 'f1', got ''" in answer.error


@asynccontextmanager
async def serving(status, body_of):
    """Answers everything with the body that a function makes of the headers."""

    async def handle(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        length = head.lower().split(b"content-length:")[1].split(b"\r\n")[0]
        await reader.readexactly(int(length))
        body = body_of(head)
        start = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\n"
        ends = f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n"
        writer.write((start + ends).encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def echo(head):
    """What some proxies do: they repeat what they were sent."""
    line = next(
        x for x in head.split(b"\r\n") if x.lower().startswith(b"authorization")
    )
    said = b'{"error":{"message":"bad %s"},"choices":[{"message":{"content":"%s"}}]}'
    return said % (line, line)


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_a_server_that_repeats_the_key_does_not_make_it_known(status, caplog, tmp_path):
    caplog.set_level(logging.DEBUG)

    async def run():
        async with serving(status, echo) as url:
            retry = RetryPolicy(max_attempts=1)
            async with executor(url, retry=retry) as remote:
                stored = StoredExecutor(remote, ResponseStore(tmp_path))
                shown = [repr(remote), remote.fingerprint, str(vars(remote))]
                try:
                    return [*shown, repr(await stored.complete(requests(1)))]
                except ExecutorError as error:
                    assert error.__context__ is None and error.__cause__ is None
                    return [*shown, repr(error)]

    shown = asyncio.run(run())
    kept = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert "[key]" in shown[-1]
    for text in (*shown, caplog.text, repr(kept)):
        assert KEY not in text


@pytest.mark.parametrize("status", [401, 404])
def test_a_refused_key_or_model_ends_the_run(status, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")

    async def run():
        async with (
            serving(status, lambda head: b'{"error":{"message":"no"}}') as url,
            executor(url) as remote,
        ):
            await remote.complete(requests(30))

    said = rf"refuses all requests: HTTP {status}: no; OPENAI_API_KEY is not set"
    with pytest.raises(ExecutorError, match=said):
        asyncio.run(run())


def test_a_request_that_is_refused_alone_is_a_status():
    async def run():
        body = b'{"error":{"message":"too long","code":"context_length_exceeded"}}'
        async with serving(400, lambda head: body) as url, executor(url) as remote:
            return await remote.complete(requests(2)), remote.usage

    completions, usage = asyncio.run(run())
    assert Counter(c.status for c in completions) == {"error": 2}
    assert completions[0].error == "rejected after 1 attempt: HTTP 400: too long"
    assert usage.attempts == 2


def test_the_fingerprint_names_address_model_and_options():
    def named(url="http://h:1/v1/", **settings):
        return executor(url, model="m", **settings).fingerprint

    assert named() == "remote:h:1/v1#m"
    assert named(system_fingerprint="f") == "remote:h:1/v1#m+f"
    options = [
        WireOptions(log_probs=True),
        WireOptions(extra_body={"a": 1}),
        WireOptions(prefill="plain"),
    ]
    names = {named(wire=wire) for wire in options}
    assert len(names) == 3 and all(n.startswith("remote:h:1/v1#m+") for n in names)
    assert named(retry=RetryPolicy(max_attempts=3), price=PRICE) == named()


@pytest.mark.parametrize(
    "url",
    ["h/v1", "ftp://h", "http://", f"http://u:{KEY}@h/v1", f"http://h/v1?key={KEY}"],
)
def test_an_address_that_is_none_or_has_a_secret_is_refused_unseen(url):
    with pytest.raises(ConfigError, match="base_url: expected") as caught:
        executor(url)
    assert KEY not in str(caught.value)


def test_a_key_that_no_header_carries_is_refused_unseen(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "two words")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY: expected") as caught:
        executor("http://h/v1")
    assert "two words" not in str(caught.value)


def test_without_the_client_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'jerp\[remote\]'"):
        executor("http://h/v1")
