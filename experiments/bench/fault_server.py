"""An endpoint that misbehaves on command: what it does follows from the request alone.

The fault of an attempt is a hash of the prompt and of how often it was asked, so that a
run meets the same faults whatever order its requests come in. Answers are a hash of the
prompt and the seed: an answer that went to another request shows.
"""

from __future__ import annotations

import asyncio
import email.utils
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import tyro

__all__ = ["FAULTS", "MODEL", "FaultServer", "Served", "expected_text", "planned"]

MODEL = "stand-in"

FAULTS = (
    "429_seconds",
    "429_date",
    "429_bare",
    "500",
    "502_html",
    "503",
    "200_html",
    "hang",
    "reset",
    "half_json",
    "cut_body",
    "wrong_type",
    "slow_body",
    "no_choices",
    "wrong_model",
    "duplicate_id",
)
"""`duplicate_id` is a good answer under the id of another one."""

_HTML = b"<html><body><h1>Bad gateway</h1></body></html>"
_TRICKLE = 0.05

Plan = Callable[[str, int], str | None]


def expected_text(prompt: str, seed: int) -> str:
    """What the endpoint answers."""
    return _hash(f"{prompt}|{seed}").hex()[:16]


def planned(rate: float, faults: Sequence[str] = FAULTS) -> Plan:
    """A fault in `rate` of all attempts, each of `faults` as often as the others."""

    def plan(prompt: str, attempt: int) -> str | None:
        digest = _hash(f"{prompt}/{attempt}")
        if int.from_bytes(digest[:6], "big") / 2**48 >= rate:
            return None
        return faults[int.from_bytes(digest[6:12], "big") % len(faults)]

    return plan


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


class FaultServer:
    """Serves chat completions on a free port of this machine.

    Args:
      plan: the fault of a prompt's attempt, counted from 0; None answers well.
      latency: seconds before each answer.

    Attributes:
      attempts: how often each prompt was asked.
      answered: how often each prompt was answered well.
      met: how often each fault was.
      in_flight: how many requests are being answered.
      most_in_flight: how many ever were at once.
    """

    def __init__(self, plan: Plan = lambda prompt, attempt: None, latency: float = 0.0):
        self._plan, self._latency = plan, latency
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()
        self.attempts: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        self.in_flight = self.most_in_flight = 0
        self.url = ""

    async def __aenter__(self) -> FaultServer:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Connection(self), "127.0.0.1", 0, backlog=1024
        )
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *exception: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._open):
            connection.transport.abort()
        await self._server.wait_closed()

    def opened(self, connection: _Connection) -> None:
        """Keeps a connection, to end it with the server."""
        self._open.add(connection)

    def closed(self, connection: _Connection) -> None:
        """Lets it go."""
        self._open.discard(connection)

    def take(self, connection: _Connection, body: dict[str, Any]) -> None:
        """A whole request has come."""
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        loop = asyncio.get_running_loop()
        loop.call_later(self._latency, self._answer, connection, body)

    def _answer(self, connection: _Connection, body: dict[str, Any]) -> None:
        self.in_flight -= 1
        prompt = body["messages"][-1]["content"]
        fault = self._plan(prompt, self.attempts[prompt])
        self.attempts[prompt] += 1
        if fault is not None:
            self.met[fault] += 1
        if fault in (None, "duplicate_id"):
            self.answered[prompt] += 1
        if connection.transport.is_closing():
            return
        misbehave(connection, fault, completion(body, fault))


def completion(body: dict[str, Any], fault: str | None) -> bytes:
    """The body of an answer."""
    prompt = body["messages"][-1]["content"]
    text = expected_text(prompt, body.get("seed", 0))
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    unique = "always-the-same" if fault == "duplicate_id" else _hash(text).hex()[:12]
    answer = {
        "id": unique,
        "object": "chat.completion",
        "created": 0,
        "model": "another" if fault == "wrong_model" else MODEL,
        "choices": [] if fault == "no_choices" else [choice],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    return json.dumps(answer).encode()


def misbehave(connection: _Connection, fault: str | None, body: bytes) -> None:
    """Sends an answer, spoilt in the way that the fault says."""
    send, transport = connection.send, connection.transport
    error = json.dumps({"error": {"message": f"planned {fault}"}}).encode()
    in_a_moment = email.utils.formatdate(time.time(), usegmt=True)
    if fault == "hang":
        return
    if fault == "reset":
        transport.abort()
    elif fault == "429_seconds":
        send(429, error, headers="retry-after: 0\r\n")
    elif fault == "429_date":
        send(429, error, headers=f"retry-after: {in_a_moment}\r\n")
    elif fault in ("429_bare", "500", "503"):
        send(int(fault[:3]), error)
    elif fault in ("502_html", "200_html"):
        send(int(fault[:3]), _HTML, kind="text/html")
    elif fault == "half_json":
        send(200, body[: len(body) // 2])
    elif fault == "cut_body":
        send(200, body[: len(body) // 2], length=len(body))
        transport.close()
    elif fault == "slow_body":
        send(200, b"", length=len(body))
        connection.trickle(body)
    else:
        send(200, body, kind="text/plain" if fault == "wrong_type" else None)


class _Connection(asyncio.Protocol):
    """Requests one after the other; what HTTP/1.1 with content lengths needs."""

    transport: asyncio.Transport

    def __init__(self, server: FaultServer):
        self._server, self._buffer = server, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._server.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.closed(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if not found:
            return
        lines = head.lower().split(b"\r\n")
        length = next(
            int(line.split(b":")[1])
            for line in lines
            if line.startswith(b"content-length:")
        )
        if len(rest) >= length:
            self._buffer = rest[length:]
            self._server.take(self, json.loads(rest[:length]))

    def send(
        self,
        status: int,
        body: bytes,
        *,
        headers: str = "",
        kind: str | None = None,
        length: int | None = None,
    ) -> None:
        """A response; `length` if the header shall not be true."""
        head = (
            f"HTTP/1.1 {status} Planned\r\n"
            f"content-type: {kind or 'application/json'}\r\n"
            f"content-length: {len(body) if length is None else length}\r\n"
            f"{headers}\r\n"
        )
        self.transport.write(head.encode() + body)

    def trickle(self, body: bytes) -> None:
        """A byte now and then, for as long as somebody listens."""
        if body and not self.transport.is_closing():
            self.transport.write(body[:1])
            loop = asyncio.get_running_loop()
            loop.call_later(_TRICKLE, self.trickle, body[1:])


@dataclass(frozen=True)
class Served:
    """A server of its own process, until standard input ends; then it says what it did.

    Attributes:
      rate: of attempts that meet a fault.
      latency: seconds before each answer.
      faults: which.
    """

    rate: float = 0.0
    latency: float = 0.0
    faults: tuple[str, ...] = FAULTS


async def serve(config: Served) -> None:
    """Prints the address, waits, and prints the counts as JSON."""
    plan = planned(config.rate, config.faults)
    async with FaultServer(plan, config.latency) as server:
        print(server.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)
        counts = {
            "attempts": sum(server.attempts.values()),
            "answered": len(server.answered),
            "answered_again": sum(n - 1 for n in server.answered.values()),
            "met": dict(server.met),
            "most_in_flight": server.most_in_flight,
        }
        print(json.dumps(counts), flush=True)


if __name__ == "__main__":
    asyncio.run(serve(tyro.cli(Served)))
