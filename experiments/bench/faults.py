"""What the remote executor loses, holds and costs beside an endpoint that misbehaves.

python -m experiments.bench.faults [--parts exactness memory cancel throughput overhead]

The endpoint is a process of its own (`experiments.bench.fault_server`); throughput and
overhead are measured as `experiments.bench.client_cost` says.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench.client_cost import (
    LATENCY,
    Row,
    endpoint,
    executor,
    overhead,
    requests,
    throughput,
)
from experiments.bench.fault_server import FAULTS, expected_text
from jerp.bridge.executor import Completion
from jerp.bridge.request_records import request_seed
from jerp.bridge.store import ResponseStore
from jerp.bridge.stored import StoredExecutor
from jerp.errors import ConfigError

__all__ = ["Faults"]

Part = Literal["exactness", "memory", "cancel", "throughput", "overhead"]
PARTS: tuple[Part, ...] = ("exactness", "memory", "cancel", "throughput", "overhead")
QUICK = tuple(fault for fault in FAULTS if fault not in ("hang", "slow_body"))


@dataclass(frozen=True)
class Faults:
    """Measures the remote executor.

    Attributes:
      parts: of the measurement.
      requests: for exactness.
      rate: of attempts that meet a fault there.
      memory_requests: for memory, which is looked at after a tenth of them.
      rounds: blocks of each way, for overhead.
    """

    parts: tuple[Part, ...] = PARTS
    requests: int = 10_000
    rate: float = 0.3
    memory_requests: int = 100_000
    rounds: int = 10

    def __post_init__(self):
        for name in ("requests", "memory_requests", "rounds"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name}: expected >= 1, got {getattr(self, name)}")
        if not 0 <= self.rate < 1:
            raise ConfigError(f"rate: expected in [0, 1), got {self.rate}")


def without_seconds(completions: Sequence[Completion]) -> list[Completion]:
    """What two runs must agree on."""
    return [replace(completion, seconds=0.0) for completion in completions]


async def exactness(config: Faults) -> list[Row]:
    """A run among faults against one without."""
    asked, store = requests(0, config.requests), ResponseStore(None)
    async with endpoint() as (url, _), executor(url, attempt_seconds=60) as remote:
        calm = without_seconds(await remote.complete(asked))
    began = time.perf_counter()
    async with endpoint(rate=config.rate) as (url, did), executor(url) as remote:
        found = without_seconds(await StoredExecutor(remote, store).complete(asked))
        usage = remote.usage
    seconds = time.perf_counter() - began
    lost = sum(c.status != "ok" for c in found)
    differ = sum(a != b for a, b in zip(found, calm, strict=True))
    wrong = sum(
        c.text != expected_text(r.messages[0].content, request_seed(r))
        for c, r in zip(found, asked, strict=True)
    )
    # Replies that were no answer told their tokens too, and are charged.
    told = config.requests + usage.retries.get("empty", 0)
    told += usage.retries.get("other_model", 0)
    return [
        ("requests at faults", f"{config.requests:,} at {config.rate:.0%}", ""),
        ("faults met", f"{sum(did['met'].values()):,}", ""),
        ("kinds met", f"{len(did['met'])}", f"{len(FAULTS)}"),
        ("lost", f"{lost}", "0"),
        ("lost by the calm run", f"{sum(c.status != 'ok' for c in calm)}", "0"),
        ("answers of another request", f"{wrong}", "0"),
        ("differ from the calm run", f"{differ}", "0"),
        ("requests counted", f"{usage.requests:,}", f"{config.requests:,}"),
        ("attempts counted, sent", f"{usage.attempts:,}, {did['attempts']:,}", "equal"),
        ("tokens out counted", f"{usage.tokens_out:,}", f"{3 * told:,}"),
        ("answers stored", f"{len(store.entries()):,}", f"{config.requests:,}"),
        ("answered again by the server", f"{did['answered_again']}", "late ones"),
        ("seconds", f"{seconds:.0f}", ""),
    ]


async def memory(config: Faults) -> list[Row]:
    """Resident memory after a tenth and after all, with quick faults."""
    step, sizes = 1000, []
    count = max(10 * step, config.memory_requests)
    async with endpoint(rate=0.05, faults=QUICK) as (url, _), executor(url) as remote:
        for first in range(0, count, step):
            await remote.complete(requests(first, step))
            if (first + step) % (count // 10) == 0:
                gc.collect()
                sizes.append(_resident_mebibytes())
        assert remote.usage.requests == count
    return [
        (f"MiB after {count // 10:,} requests", f"{sizes[0]:.1f}", ""),
        (f"MiB after {count:,}", f"{sizes[-1]:.1f}", f"{sizes[0]:.1f} (flat)"),
        ("MiB at most, in between", f"{max(sizes):.1f}", ""),
    ]


def _resident_mebibytes() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def cancel(config: Faults) -> list[Row]:
    """What a run that is cancelled half-way leaves."""
    before = asyncio.all_tasks()
    settings = {"latency": LATENCY, "rate": config.rate}
    async with endpoint(**settings) as (url, _), executor(url) as remote:
        run = asyncio.create_task(remote.complete(requests(0, 1000)))
        await asyncio.sleep(3 * LATENCY)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        left = len(asyncio.all_tasks() - before)
        in_flight = remote.usage.in_flight
    return [("tasks, requests left", f"{left}, {in_flight}", "0, 0")]


async def measure(config: Faults) -> dict[str, list[Row]]:
    """The rows of each part."""
    parts = {
        "exactness": partial(exactness, config),
        "memory": partial(memory, config),
        "cancel": partial(cancel, config),
        "throughput": throughput,
        "overhead": partial(overhead, config.rounds),
    }
    return {name: await parts[name]() for name in config.parts}


def main(config: Faults) -> None:
    """Measures and prints a table."""
    table = Table("", "what", "found", "expected")
    for part, rows in asyncio.run(measure(config)).items():
        for row in rows:
            table.add_row(part, *row)
    console = Console()
    console.print(table)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    console.print(f"load averages: {load} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main(tyro.cli(Faults))
