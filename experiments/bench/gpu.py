"""How fast policies play and learn on an accelerator, as shares of what it can do.

python -m experiments.bench.gpu             # at most 8 minutes on a GPU
python -m experiments.bench.gpu --smoke     # the plumbing, anywhere, in a minute

GRPO in small households with three policies: `tiny` over pooled steps, `tiny` over
tokens, and SmolLM2-135M's sizes over tokens with random weights, products in bfloat16
and adapters on attention. Playing and learning go in turns, so that a busy
machine slows both alike; the table shows medians. Tokens are positions that were
computed, those of padding and of episodes that ended included. Work is counted by the
formulas of `experiments.bench.roofline`, and set beside what this device did in
the same run for a large product and a large copy. The last line is what many seeds cost
beside one, vmapped.

The largest program, the learning of SmolLM2's sizes, holds 6 GB. No part is begun after
six minutes. Parts that no time is left for, or that the device has no memory for, are
named and left out. Not measured on a GPU yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench.gpu_policies import POLICIES, Sizes, seeds_ways
from experiments.bench.roofline import Peaks, bound_and_share, measured_peaks
from jerp.errors import ConfigError
from jerp.storage.atomic import make_folder
from jerp.storage.documents import write_json
from jerp.storage.manifest import devices, versions

__all__ = ["Clock", "GpuBench", "measure"]

SMOKE = Sizes(groups=2, size=2, token_groups=1, seeds=3, peak=256, layers=1)


@dataclass(frozen=True)
class GpuBench:
    """Measures policies on the device at hand.

    Attributes:
      minutes: after which no part is begun.
      seconds: that a part measures, beside compiling.
      smoke: checks the plumbing with small sizes; numbers mean nothing.
      out: the JSON file; None gives `jerp-runs/bench-gpu.json`.
    """

    minutes: float = 6.0
    seconds: float = 15.0
    smoke: bool = False
    out: Path | None = None

    def __post_init__(self):
        for name in ("minutes", "seconds"):
            if not getattr(self, name) > 0:
                raise ConfigError(
                    f"{name}: expected more than 0, got {getattr(self, name)}"
                )

    @property
    def sizes(self) -> Sizes:
        """Of what is measured."""
        return SMOKE if self.smoke else Sizes()


class Clock:
    """The time that is left, for the whole and for a part."""

    def __init__(self, bench: GpuBench):
        self._end = time.monotonic() + 60 * bench.minutes
        self._part = 0.2 if bench.smoke else bench.seconds

    def is_over(self) -> bool:
        """Whether no part may begin any more."""
        return time.monotonic() >= self._end

    def in_turns(self, ways: dict[str, Callable[[int], Any]]) -> dict[str, list[float]]:
        """Seconds of each way, a round each, for a part's time; at least one round."""
        for run in ways.values():
            jax.block_until_ready(run(0))  # compiles
        end = min(time.monotonic() + self._part, self._end)
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        number = 1
        while number == 1 or time.monotonic() < end:
            for name, run in ways.items():
                start = time.perf_counter()
                jax.block_until_ready(run(number))
                seconds[name].append(time.perf_counter() - start)
            number += 1
        return seconds


def measure(bench: GpuBench, *, console: Console) -> dict[str, Any]:
    """Measures part by part; returns what the JSON file holds."""
    clock = Clock(bench)
    peaks = measured_peaks(bench.sizes.peak)
    found: dict[str, Any] = {
        **devices(),
        "versions": versions(),
        "smoke": bench.smoke,
        "sizes": asdict(bench.sizes),
        "peaks": asdict(peaks),
        "ways": [],
        "seeds": None,
        "left_out": {},
    }

    def policies(name: str) -> None:
        found["ways"] += _policy_rows(name, bench.sizes, peaks, clock)

    def seeds(_: str) -> None:
        found["seeds"] = _seeds(bench.sizes, clock)

    parts = {**{name: policies for name in POLICIES}, "seeds": seeds}
    for name, part in parts.items():
        if clock.is_over():
            found["left_out"][name] = "no time was left"
            continue
        console.print(f"measuring: {name}")
        try:
            part(name)
        except jax.errors.JaxRuntimeError as error:
            found["left_out"][name] = str(error).splitlines()[0]
    return found


def _policy_rows(
    name: str, sizes: Sizes, peaks: Peaks, clock: Clock
) -> list[dict[str, Any]]:
    measured = POLICIES[name](sizes)
    seconds = clock.in_turns(measured.ways)
    rows = []
    for way, work in measured.work.items():
        middle = median(seconds[way])
        bound, share = bound_and_share(work, peaks, measured.product, middle)
        rows.append(
            {
                "policy": name,
                "way": way,
                "product": measured.product,
                "tokens": measured.tokens[way],
                "tokens_per_second": measured.tokens[way] / middle,
                **asdict(work),
                "bound": bound,
                "share": share,
                "seconds": seconds[way],
            }
        )
    return rows


def _seeds(sizes: Sizes, clock: Clock) -> dict[str, Any]:
    seconds = clock.in_turns(seeds_ways(sizes))
    one, many = (median(seconds[name]) for name in ("one", "many"))
    return {"number": sizes.seeds, "times_one": many / one, "seconds": seconds}


def tables(found: dict[str, Any]) -> list[Table | str]:
    """What is printed."""
    kinds, peaks = found["devices"], found["peaks"]
    device = f"{len(kinds)} x {kinds[0]} ({found['backend']})"
    table = Table(title=device, box=None)
    names = ("policy", "way", "tokens/s", "ms", "of the roofline", "bound by")
    for place, name in enumerate(names):
        table.add_column(name, justify="right" if 1 < place < 5 else "left")
    for row in found["ways"]:
        table.add_row(
            row["policy"],
            row["way"],
            f"{row['tokens_per_second']:,.0f}",
            f"{1e3 * median(row['seconds']):,.1f}",
            f"{row['share']:.2%}",
            f"{row['bound']}, {row['product']}",
        )
    speeds = ", ".join(f"{v / 1e12:.3g} TFLOP/s {k}" for k, v in peaks["flops"].items())
    said: list[Table | str] = [
        table,
        f"the device: {speeds}, {peaks['bytes'] / 1e9:.4g} GB/s",
    ]
    if found["seeds"]:
        times, number = found["seeds"]["times_one"], found["seeds"]["number"]
        said.append(f"{number} seeds by vmap take {times:.1f} times one")
    for name, why in found["left_out"].items():
        said.append(f"left out: {name}: {why}")
    return said


def main(bench: GpuBench) -> None:
    """Measures, prints the table and writes the JSON file."""
    console = Console()
    found = measure(bench, console=console)
    for item in tables(found):
        console.print(item, soft_wrap=True)
    out = bench.out or Path("jerp-runs") / "bench-gpu.json"
    make_folder(out.parent)
    write_json(out, found)
    console.print(f"written: {out}", soft_wrap=True)


if __name__ == "__main__":
    main(tyro.cli(GpuBench))
