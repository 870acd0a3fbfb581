"""Which model an endpoint is, what it refuses, and the key that nothing shows."""

import asyncio
import logging
import sys
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from experiments.bench.fault_server import (
    MODEL,
)
from jerp.bridge.chat_completions import WireOptions
from jerp.bridge.retry import RetryPolicy
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import StoredExecutor
from jerp.errors import ConfigError, ExecutorError, MissingExtraError
from tests.bridge.remote_asking import (
    KEY,
    PRICE,
    always,
    ask,
    executor,
    requests,
)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


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
