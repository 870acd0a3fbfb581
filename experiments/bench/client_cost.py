"""What a request to an endpoint costs: the remote executor beside the bare client.

Ways go in alternating blocks, so that a busy machine slows all alike. What a request
costs this process is its processor time, which other load does not lengthen.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import Any

import httpx2
import openai

from experiments.bench.fault_server import MODEL
from jerp.bridge.chat_completions import WireOptions, request_body
from jerp.bridge.concurrency import Concurrency
from jerp.bridge.executor import Message, Request
from jerp.bridge.remote import RemoteExecutor
from jerp.bridge.remote_settings import RemoteSettings
from jerp.bridge.retry import RetryPolicy

__all__ = [
    "LATENCY",
    "Row",
    "endpoint",
    "executor",
    "overhead",
    "requests",
    "throughput",
]

RETRY = RetryPolicy(max_attempts=15, base_seconds=0.01, cap_seconds=0.2)
IN_FLIGHT = 32
LATENCY = 0.2

Row = tuple[str, str, str]
"""What, found, expected."""


@asynccontextmanager
async def endpoint(**settings: Any) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """A server's address; what it did is filled in when the block ends."""
    words = [str(w) for key, value in settings.items() for w in _words(key, value)]
    server = subprocess.Popen(
        [sys.executable, "-m", "experiments.bench.fault_server", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None and server.stdout is not None
    did: dict[str, Any] = {}
    try:
        yield await asyncio.to_thread(server.stdout.readline), did
        server.stdin.close()
        did |= json.loads(await asyncio.to_thread(server.stdout.read))
    finally:
        server.kill()
        server.wait()


def _words(key: str, value: Any) -> list[Any]:
    values = value if isinstance(value, tuple) else (value,)
    return [f"--{key}", *values]


def executor(
    url: str, *, start: int = 8, cap: int = 64, attempt_seconds: float = 1.0
) -> RemoteExecutor:
    """With short waits, because the server's troubles are short."""
    settings = RemoteSettings(
        retry=replace(RETRY, attempt_seconds=attempt_seconds),
        concurrency=Concurrency(start=start, cap=cap),
    )
    return RemoteExecutor(url.strip(), MODEL, settings=settings)


def requests(first: int, count: int) -> list[Request]:
    """Different ones."""
    return [Request((Message("user", f"q{first + i}"),)) for i in range(count)]


async def throughput() -> list[Row]:
    """32 under way against a server that takes 200 ms."""
    ideal = IN_FLIGHT / LATENCY
    async with endpoint(latency=LATENCY) as (url, _):
        times = await _blocks(url, rounds=3, count=20 * IN_FLIGHT)
    return [
        (f"{name}, requests/s", f"{1 / median(way.wall):.1f}", f">= {0.9 * ideal:.0f}")
        for name, way in times.items()
    ]


async def overhead(rounds: int) -> list[Row]:
    """What a request costs, beside the bare client; and how many each can do."""
    async with endpoint() as (url, _):
        times = await _blocks(url, rounds=rounds, count=400)
    rows = []
    for name, way in times.items():
        spent = f"{1e3 * median(way.processor):.3f}"
        rows.append((f"{name}, ms of processor a request", spent, ""))
        rows.append((f"{name}, requests/s at most", f"{1 / min(way.wall):.0f}", ""))
    ours = times.pop("executor")
    for name, way in times.items():
        more = [a - b for a, b in zip(ours.processor, way.processor, strict=True)]
        over = f"{1e3 * median(more):.3f}"
        rows.append((f"ms of processor over {name}", over, "< 0.3"))
    return rows


@dataclass
class Times:
    """Seconds a request, of each block."""

    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


async def _blocks(url: str, *, rounds: int, count: int) -> dict[str, Times]:
    """Alternating blocks of `count` requests, 32 under way, by each way."""
    remote = executor(url, start=IN_FLIGHT, cap=IN_FLIGHT, attempt_seconds=60)
    client = openai.AsyncOpenAI(api_key="none", base_url=url.strip(), max_retries=0)
    ways: dict[str, Callable[[list[Request]], Awaitable[Any]]] = {
        "executor": remote.complete,
        "bare client": partial(_all, client.chat.completions.create),
        "bare client without types": partial(_all, partial(_raw, client)),
    }
    times = {name: Times() for name in ways}
    async with remote, client:
        for block in range(rounds + 1):
            for name, way in ways.items():
                asked = requests(block * count, count)
                began, spent = time.perf_counter(), time.process_time()
                await way(asked)
                if block > 0:  # connections are made in the first
                    wall, processor = time.perf_counter(), time.process_time()
                    times[name].wall.append((wall - began) / count)
                    times[name].processor.append((processor - spent) / count)
    return times


async def _all(create: Callable[..., Awaitable[Any]], asked: list[Request]) -> None:
    """All requests by the client, at most 32 under way."""
    bodies = iter([request_body(r, MODEL, WireOptions()) for r in asked])

    async def work() -> None:
        for body in bodies:
            await create(**body)

    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))


async def _raw(client: openai.AsyncOpenAI, **body: Any) -> Any:
    path = "/chat/completions"
    return (await client.post(path, cast_to=httpx2.Response, body=body)).json()
