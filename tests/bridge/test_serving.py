"""The project's own decoder behind HTTP, met by the remote executor and by hand."""

import asyncio
import json
import socket
import sys
from contextlib import asynccontextmanager

import httpx2
import openai
import pytest
import uvicorn

from jerp.bridge.chat import settled_text
from jerp.bridge.chat_completions import WireOptions
from jerp.bridge.executor import Message, Request, Sampling
from jerp.bridge.remote import RemoteExecutor
from jerp.bridge.remote_settings import RemoteSettings
from jerp.bridge.serving import chat_app
from jerp.errors import MissingExtraError
from tests.bridge.test_local import ask, complete, executor
from tests.bridge.tiny_model import tiny_model


def app(**settings):
    return chat_app(tiny_model(), executor(), name="tiny", **settings)


@asynccontextmanager
async def by_hand(**settings):
    """A client of the application itself, without sockets."""
    made = app(**settings)
    async with made.router.lifespan_context(made):
        transport = httpx2.ASGITransport(made, raise_app_exceptions=False)
        base = "http://127.0.0.1"
        async with httpx2.AsyncClient(transport=transport, base_url=base) as client:
            yield client


@asynccontextmanager
async def served(**settings):
    """The address of a real server, and the application."""
    made = app(**settings)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(made, log_config=None))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started:
            await asyncio.sleep(0.002)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1", made
        finally:
            server.should_exit = True
            await task


def body(**fields):
    asked = {"model": "tiny", "messages": [{"role": "user", "content": "a"}]}
    return {"max_tokens": 6, "seed": 7, **asked, **fields}


def post(*bodies, **settings):
    async def run():
        async with by_hand(**settings) as client:
            path = "/v1/chat/completions"
            return [await client.post(path, json=b) for b in bodies]

    return asyncio.run(run())


def test_the_remote_executor_gives_what_the_local_one_gives_bit_for_bit():
    opened = Request(
        (Message("user", "q"), Message("assistant", "A")), Sampling(1.0, max_tokens=5)
    )
    requests = [
        *(ask("a", i) for i in range(3)),
        ask("b", temperature=0.0),
        ask("c", top_k=5, top_p=0.8),
        ask("d", temperature=2.0, max_tokens=20, stop=("e", "\n")),
        opened,
        ask("x" * 130),
    ]

    async def run():
        wire = WireOptions(log_probs=True)
        async with served() as (url, made):
            settings = RemoteSettings(wire=wire)
            async with RemoteExecutor(url, "tiny", settings=settings) as remote:
                return await remote.complete(requests), made.state.gatherer.batches

    answers, batches = asyncio.run(run())
    for here, there in zip(complete(*requests), answers, strict=True):
        assert (there.text, there.status) == (here.text, here.status)
        assert there.log_probs == here.log_probs
        if here.status != "error":
            assert (there.tokens_in, there.tokens_out) == (
                here.tokens_in,
                here.tokens_out,
            )
    assert {a.status for a in answers} >= {"truncated", "error"}
    assert "does not fit the context of 128 tokens" in answers[-1].error
    assert sum(batches) == len(requests) and max(batches) > 1


def test_a_stream_is_the_whole_answer_in_pieces():
    fields = body(max_tokens=24, temperature=1.0, logprobs=True)
    whole = post(fields)[0].json()

    async def run():
        async with served() as (url, _):
            client = openai.AsyncOpenAI(api_key="none", base_url=url, max_retries=0)
            async with client:
                options = {"include_usage": True}
                stream = await client.chat.completions.create(
                    **fields, stream=True, stream_options=options
                )
                return [piece.model_dump() async for piece in stream]

    pieces = asyncio.run(run())
    choices = [piece["choices"][0] for piece in pieces if piece["choices"]]
    texts = [choice["delta"].get("content") or "" for choice in choices]
    [answer] = whole["choices"]
    assert "".join(texts) == answer["message"]["content"]
    assert sum(map(bool, texts)) > 2
    assert choices[0]["delta"]["role"] == "assistant"
    assert [c["finish_reason"] for c in choices if c["finish_reason"]] == ["length"]
    said = [
        t["logprob"] for c in choices if c["logprobs"] for t in c["logprobs"]["content"]
    ]
    assert said == [t["logprob"] for t in answer["logprobs"]["content"]]
    assert (
        pieces[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    )
    assert {piece["id"] for piece in pieces} == {pieces[0]["id"]}


@pytest.mark.parametrize(
    ("text", "stops", "settled"),
    [
        ("abc", (), "abc"),
        ("abc\ufffd\ufffd", (), "abc"),
        ("abc", ("cd", "xyz"), "ab"),
        ("abcx", ("cxz", "xyz"), "ab"),
        ("abcdef", ("cd",), "ab"),
        ("abc", ("c",), "ab"),
        ("", ("c",), ""),
    ],
)
def test_text_is_told_once_it_stays(text, stops, settled):
    assert settled_text(text, stops) == settled


def test_the_seed_decides_and_where_there_is_none_chance_does():
    same = [r.json() for r in post(body(max_tokens=12), body(max_tokens=12))]
    assert len({a["choices"][0]["message"]["content"] for a in same}) == 1
    assert len({a["id"] for a in same}) == 2
    assert len({a["system_fingerprint"] for a in same}) == 1
    free = post(*(body(max_tokens=12, seed=None) for _ in range(2)))
    assert len({r.json()["choices"][0]["message"]["content"] for r in free}) == 2


@pytest.mark.parametrize(
    ("change", "status", "said"),
    [
        ({"model": "other"}, 404, "'other' is not served here; 'tiny' is"),
        ({"messages": []}, 400, "messages: expected a list of some"),
        (
            {"messages": [{"role": "tool", "content": "x"}]},
            400,
            "messages[0]: expected",
        ),
        ({"messages": [{"role": "user", "content": None}]}, 400, "text alone"),
        ({"messages": [{"role": "user", "content": [{}]}]}, 400, "text alone"),
        ({"tools": [{"type": "function"}]}, 400, "tools: this server takes []"),
        ({"n": 2}, 400, "n: this server takes 1 alone"),
        ({"top_logprobs": 3}, 400, "top_logprobs: this server takes 0 alone"),
        ({"min_p": 0.1}, 400, "min_p: this server does not know it"),
        ({"temperature": -1}, 400, "temperature: expected >= 0"),
        ({"temperature": "hot"}, 400, "temperature: expected a number"),
        ({"max_tokens": 0}, 400, "max_tokens: expected >= 1"),
        ({"top_k": 1.5}, 400, "top_k: expected a number"),
        ({"stop": [""]}, 400, "stop: expected a text"),
        ({"max_tokens": 500}, 400, "does not fit the context"),
        ({"max_tokens": 500, "stream": True}, 400, "does not fit the context"),
    ],
)
def test_what_cannot_be_done_is_refused_in_the_protocols_form(change, status, said):
    [response] = post(body(**change))
    error = response.json()["error"]
    assert response.status_code == status
    assert said in error["message"] and error["type"] == "invalid_request_error"


def test_content_in_parts_and_names_without_effect_are_taken():
    parts = [{"type": "text", "text": "a"}]
    plain, given = post(
        body(), body(messages=[{"role": "user", "content": parts}], user="me", n=1)
    )
    assert given.json()["choices"] == plain.json()["choices"]
    assert given.json()["choices"][0]["logprobs"] is None


def test_other_paths_methods_and_bodies_are_answered_in_json():
    async def run():
        async with by_hand() as client:
            return [
                await client.get("/health"),
                await client.get("/v1/models"),
                await client.get("/nowhere"),
                await client.get("/v1/chat/completions"),
                await client.post("/v1/chat/completions", content=b"{"),
                await client.post("/v1/chat/completions", content=b"[1]"),
                await client.post("/v1/chat/completions", content=b" " * 17 * 2**20),
            ]

    health, models, *others = asyncio.run(run())
    assert health.json() == {"status": "ok"}
    assert [m["id"] for m in models.json()["data"]] == ["tiny"]
    assert [r.status_code for r in others] == [404, 405, 400, 400, 413]
    assert all(json.loads(r.content)["error"]["message"] for r in others)


def test_a_key_is_asked_for_where_there_is_one():
    async def run():
        async with by_hand(api_key="sk-1") as client:
            given = [
                {},
                {"authorization": "Bearer sk-2"},
                {"authorization": "Bearer sk-1"},
            ]
            return [
                (await client.get("/v1/models", headers=headers)).status_code
                for headers in given
            ] + [(await client.get("/health")).status_code]

    assert asyncio.run(run()) == [401, 401, 200, 200]


def test_a_server_that_breaks_says_so_and_serves_on(monkeypatch):
    async def broken(*args, **kwargs):
        raise RuntimeError("the device is gone")

    async def run():
        async with by_hand() as client:
            path = "/v1/chat/completions"
            with monkeypatch.context() as patch:
                patch.setattr(executor(), "complete", broken)
                first = await client.post(path, json=body())
            return first, await client.post(path, json=body())

    first, second = asyncio.run(run())
    assert (first.status_code, second.status_code) == (500, 200)
    assert first.json()["error"]["type"] == "server_error"
    assert "device" not in first.text


def test_without_the_library_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'jerp\[serve\]'"):
        app()
