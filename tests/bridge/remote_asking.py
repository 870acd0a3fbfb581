"""Requests to a server that misbehaves as it is told."""

import asyncio

from experiments.bench.fault_server import (
    MODEL,
    FaultServer,
    expected_text,
)
from jerp.bridge.budget import Price
from jerp.bridge.executor import Message, Request, Sampling, complete_checked
from jerp.bridge.remote import RemoteExecutor
from jerp.bridge.remote_settings import RemoteSettings
from jerp.bridge.request_records import request_seed
from jerp.bridge.retry import RetryPolicy

KEY = "sk-do-not-show-me-42"
PRICE = Price(1e6, 1e6)  # a dollar a token
FAST = RetryPolicy(base_seconds=0.002, cap_seconds=0.02, attempt_seconds=0.25)


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
