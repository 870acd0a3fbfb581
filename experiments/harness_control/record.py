"""Records SmolLM2's response to every request that any controller can reach.

python -m experiments.harness_control.record --domain coding --out recording/coding

It walks the reachable states of each task wave by wave and keeps the responses and the
sandbox's verdicts in a response store; killed, it continues. With all tasks done it
writes the store as the package data that `jerp run harness` replays.
"""

from __future__ import annotations

import json
import lzma
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.console import Console

from experiments.executors.opened import OpenExecutor
from experiments.harness_control.config import GENERATOR_SEEDS, SIZES
from experiments.harness_control.domains import DOMAINS, NUM_TASKS, make_domain
from experiments.harness_control.executors import RECORDED, open_executor
from jerp.bridge.store import compact
from jerp.domains.explore import TaskReach, explore
from jerp.errors import ConfigError, JerpError, UnknownNameError

__all__ = ["Record", "main"]


@dataclass(frozen=True)
class Record:
    """Records every reachable response of one domain.

    Attributes:
      domain: name of a controlled domain.
      out: folder of the growing store.
      num_tasks: the first so many tasks; fewer than all are recorded but not shipped.
      batch: tasks that are walked side by side.
    """

    domain: str
    out: Path
    num_tasks: int = NUM_TASKS
    batch: int = 50

    def __post_init__(self):
        if self.domain not in DOMAINS:
            raise UnknownNameError("domain", self.domain, DOMAINS)
        for name in ("num_tasks", "batch"):
            if getattr(self, name) < 1:
                raise ConfigError(
                    f"{name}: expected at least 1, got {getattr(self, name)}"
                )


def main(record: Record, console: Console) -> None:
    """Records; writes the package data once every task is recorded."""
    with open_executor("smollm2", record.out, console) as opened:
        reach = _walk(record, opened, console)
    if record.num_tasks >= NUM_TASKS:
        _ship(record, reach, console)


def _walk(record: Record, opened: OpenExecutor, console: Console) -> list[TaskReach]:
    domain: Any = make_domain(record.domain, opened.store)
    tasks = domain.generate(GENERATOR_SEEDS["recorded"], NUM_TASKS)[: record.num_tasks]
    samples = range(SIZES["recorded", "default"].samples)
    begin = time.monotonic()
    reach: list[TaskReach] = []
    for start in range(0, len(tasks), record.batch):
        part = tasks[start : start + record.batch]
        reach += explore(domain, part, samples, opened.executor).tasks
        opened.store.flush()
        elapsed = time.monotonic() - begin
        left = elapsed / len(reach) * (len(tasks) - len(reach))
        console.print(
            f"{record.domain}: {len(reach)}/{len(tasks)} tasks, "
            f"{_requests(reach) / len(reach):.1f} requests a task, "
            f"{elapsed:.0f} s, about {left:.0f} s left"
        )
    return reach


def _requests(reach: Sequence[TaskReach]) -> int:
    return sum(task.requests for task in reach)


def _ship(record: Record, reach: Sequence[TaskReach], console: Console) -> None:
    RECORDED.mkdir(exist_ok=True)
    path = RECORDED / f"{record.domain}.jsonl.xz"
    compact([record.out / "store"], path)
    summary = {
        "tasks": len(reach),
        "requests": _requests(reach),
        "requests_per_task": _requests(reach) / len(reach),
        "most_requests_of_a_task": max(task.requests for task in reach),
        "executor_seconds": round(_executor_seconds(path), 1),
    }
    text = json.dumps(summary, indent=1) + "\n"
    path.with_name(f"{record.domain}.json").write_text(text, encoding="utf-8")
    console.print(f"{path}: {path.stat().st_size / 1e6:.2f} MB, {summary}")


def _executor_seconds(path: Path) -> float:
    """What the recorded completions took; rows of a batch share its time."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        records = [json.loads(line).get("record", {}) for line in lines]
    return sum(r["completion"]["seconds"] for r in records if "completion" in r)


if __name__ == "__main__":
    try:
        main(tyro.cli(Record), Console())
    except JerpError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
