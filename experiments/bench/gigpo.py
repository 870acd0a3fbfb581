"""How fast GiGPO's advantages come from raw rows, beside released code of GiGPO.

python -m experiments.bench.gigpo --peer PATH

PATH is a checkout of verl-agent, whose `gigpo/core_gigpo.py` runs unchanged, in this
process and on the same rows; that needs torch (the [parity] extra). Without it jerp is
measured alone. Both ways start from texts: jerp numbers the states and lays the rows
out as episodes in its time, and has compiled before. Values change every round.
Expected on 2 cores: 100 times as fast at 6,400 rows, 400 times at 25,600, and growth no
worse than n log n up to a million rows. Measured in processor time on a busy machine:
158 and 563 times; with `--spread 30`, where jerp pays for 1.6 times the rows, 121 and
373; growth n^1.0 to n^1.1, where n log n is n^1.08.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.table import Table

from experiments.bench.gigpo_rows import (
    DISCOUNT,
    ROWS_A_TASK,
    STEPS,
    Peer,
    Rows,
    make_rows,
)
from jerp.advantages.anchors import anchor_ids
from jerp.advantages.gigpo import gigpo_advantages
from jerp.errors import ConfigError

__all__ = ["Gigpo", "Jerp", "Seconds", "agreement", "growth_exponents", "measure"]

MODES = {"none": "mean_norm", "std": "mean_std_norm"}
TOLERANCE = 1e-4
REPEATS = 5


@dataclass(frozen=True)
class Gigpo:
    """Measures advantages.

    Attributes:
      peer: a checkout of verl-agent; None measures jerp alone.
      sizes: numbers of rows beside the peer, multiples of 400.
      growth: numbers of rows at which jerp alone is measured.
      spread: episodes have 50 steps, give or take up to so many: then jerp also pays
        for padding, up to 1 + spread / 50 times the rows.
      rounds: measurements of each; the tables show medians.
    """

    peer: Path | None = None
    sizes: tuple[int, ...] = (6_400, 25_600)
    growth: tuple[int, ...] = (64_000, 160_000, 400_000, 1_000_000)
    spread: int = 0
    rounds: int = 5

    def __post_init__(self):
        for name in ("sizes", "growth"):
            sizes = getattr(self, name)
            if any(n < 1 or n % ROWS_A_TASK for n in sizes):
                raise ConfigError(
                    f"{name}: expected multiples of {ROWS_A_TASK}, got {sizes}"
                )
        if not 0 <= self.spread < STEPS:
            raise ConfigError(f"spread: expected in [0, {STEPS}), got {self.spread}")
        if self.rounds < 1:
            raise ConfigError(f"rounds: expected >= 1, got {self.rounds}")


class Jerp:
    """This project's way, with the keywords of the released code.

    Attributes:
      traces: how often it was traced.
    """

    def __init__(self):
        self.traces = 0
        self._advantages = jax.jit(self._traced, static_argnames=("tasks", "scale"))

    def _traced(self, *batch: Any, tasks: int, scale: Any) -> Any:
        self.traces += 1
        found = gigpo_advantages(
            *batch,
            num_groups=tasks,
            discount=DISCOUNT,
            episode_scale=scale,
            step_scale=scale,
            weighting="step",
            ddof=1,
        )
        return found.total, (found.episode == 0) | (found.step == 0)

    def laid_out(self, rows: Rows) -> tuple[np.ndarray, ...]:
        """The rows by episode, `[N]`; mask and reward `[B, T]`, task `[B]`."""
        episode = anchor_ids(rows.episode)
        length = np.bincount(episode)
        order = np.argsort(episode, kind="stable")
        mask = np.arange(length.max()) < length[:, None]
        reward = np.zeros(mask.shape, np.float32)
        reward[mask] = rows.reward[order]
        first = order[np.cumsum(length) - length]
        return order, mask, reward, anchor_ids([rows.task[i] for i in first])

    def advantages(
        self, anchor: list[str], layout: tuple[np.ndarray, ...], *, scale: str = "std"
    ) -> tuple[np.ndarray, np.ndarray]:
        """`[N]` advantages, and whether a group of the row has equal returns."""
        order, mask, reward, task = layout
        states = np.zeros(mask.shape, np.int32)
        states[mask] = anchor_ids(anchor)[order]
        keywords = {"tasks": len(anchor) // ROWS_A_TASK, "scale": scale}
        found = self._advantages(reward, mask, task, task, states, **keywords)
        total, equal = np.empty(len(anchor), np.float32), np.empty(len(anchor), bool)
        total[order], equal[order] = (np.asarray(x)[mask] for x in found)
        return total, equal

    def whole(self, rows: Rows, *, scale: str = "std") -> tuple[np.ndarray, np.ndarray]:
        """From rows to advantages."""
        return self.advantages(rows.anchor, self.laid_out(rows), scale=scale)


@dataclass(frozen=True)
class Seconds:
    """Wall time, and processor time of all threads, of each round."""

    wall: list[float]
    processor: list[float]

    def __add__(self, other: Seconds) -> Seconds:
        return Seconds(
            [a + b for a, b in zip(self.wall, other.wall, strict=True)],
            [a + b for a, b in zip(self.processor, other.processor, strict=True)],
        )

    def __str__(self) -> str:
        return f"{median(self.wall):.4f} ({median(self.processor):.4f})"

    def over(self, other: Seconds) -> tuple[float, float]:
        """How many times as long as the other, in wall and in processor time."""
        return (
            median(self.wall) / median(other.wall),
            median(self.processor) / median(other.processor),
        )

    def clock(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """The result of the call; its time is added."""
        began, processor = time.perf_counter(), time.process_time()
        result = call(*arguments)
        self.wall.append(time.perf_counter() - began)
        self.processor.append(time.process_time() - processor)
        return result


def measure(
    config: Gigpo, ours: Jerp, peer: Peer | None, number: int
) -> dict[str, Seconds]:
    """Way to seconds; ways take turns, so that a busy machine slows all alike.

    jerp's few milliseconds are measured `REPEATS` times a round.
    """
    ours.whole(make_rows(number, 0, config.spread))
    ways = ("jerp whole", "jerp advantages", "peer returns", "peer advantages")
    seconds = {way: Seconds([], []) for way in ways}
    for seed in range(REPEATS * config.rounds):
        rows = make_rows(number, seed, config.spread)
        seconds["jerp whole"].clock(ours.whole, rows)
        # Texts anew: those of before know their hashes.
        rows = make_rows(number, seed, config.spread)
        layout = ours.laid_out(rows)
        seconds["jerp advantages"].clock(ours.advantages, rows.anchor, layout)
        if peer is not None and seed % REPEATS == 0:
            batch = peer.batch(make_rows(number, seed, config.spread))
            returns = seconds["peer returns"].clock(peer.returns, batch)
            seconds["peer advantages"].clock(peer.advantages, batch, returns)
    return seconds


def agreement(ours: Jerp, peer: Peer, rows: Rows) -> tuple[float, int]:
    """Largest difference from the peer, and rows in which its rounding shows.

    In a group of equal returns jerp gives 0, and the peer its rounding over epsilon.
    Only rows of such groups are left out, and only where that is more than `TOLERANCE`.
    """
    largest, noisy = 0.0, 0
    batch = peer.batch(rows)
    returns = peer.returns(batch)
    for scale, mode in MODES.items():
        total, equal = ours.whole(rows, scale=scale)
        expected = peer.advantages(batch, returns, mode=mode)
        difference = np.abs(total - expected) / (1 + np.abs(expected))
        noise = equal & (difference > TOLERANCE)
        noisy += int(noise.sum())
        largest = max(largest, float(difference[~noise].max()))
    return largest, noisy


def growth_exponents(seconds: dict[int, float]) -> tuple[float, float]:
    """Exponents p of the fits seconds = c n^p and n log n = c n^p, over the same n."""
    sizes = np.log(list(seconds))
    slope = [
        float(np.polyfit(sizes, np.log(y), 1)[0])
        for y in (list(seconds.values()), [n * math.log(n) for n in seconds])
    ]
    return slope[0], slope[1]


def _beside_the_peer(
    config: Gigpo, ours: Jerp, peer: Peer | None, console: Console
) -> bool:
    """Prints times and ratios at each size; whether both agree."""
    table = Table(title="seconds of wall time (of processor), medians")
    for column in ("rows", "part", "jerp", "verl-agent", "ratio", "of processor"):
        table.add_column(column, justify="left" if column == "part" else "right")
    agree = True
    for number in config.sizes:
        found = measure(config, ours, peer, number)
        theirs = {
            "whole": found["peer returns"] + found["peer advantages"],
            "advantages": found["peer advantages"],
        }
        for part, other in theirs.items():
            mine = found[f"jerp {part}"]
            row = [f"{number:,}", part, str(mine)]
            if peer is not None:
                row += [str(other), *(f"{ratio:.0f}" for ratio in other.over(mine))]
            table.add_row(*row)
        if peer is not None:
            rows = make_rows(number, 1, config.spread)
            largest, noisy = agreement(ours, peer, rows)
            agree = agree and largest <= TOLERANCE
            console.print(
                f"{number:,} rows: largest difference {largest:.1e}; in {noisy} of "
                f"{len(MODES) * number:,} the peer enlarges rounding of equal returns"
            )
    console.print(table)
    return agree


def _growth(config: Gigpo, ours: Jerp, console: Console) -> None:
    seconds = {}
    for number in config.growth:
        found = measure(config, ours, None, number)["jerp whole"]
        seconds[number] = median(found.processor)
        console.print(
            f"{number:,} rows: {found} s, "
            f"{1e9 * median(found.processor) / number:.0f} ns of processor a row"
        )
    if len(seconds) > 1:
        exponent, bound = growth_exponents(seconds)
        console.print(f"grows as n^{exponent:.2f}; n log n here is n^{bound:.2f}")


def main(config: Gigpo) -> int:
    """Measures and prints tables; 1 where the two ways disagree or jerp retraced."""
    console, ours = Console(width=100), Jerp()
    peer = None if config.peer is None else Peer(config.peer)
    if peer is None:
        console.print("no --peer: jerp alone, nothing to compare it with")
    console.print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    agree = _beside_the_peer(config, ours, peer, console)
    _growth(config, ours, console)
    shapes = len({*config.sizes, *config.growth}) + len(config.sizes) * bool(peer)
    console.print(
        f"traced {ours.traces} times for {shapes} shapes and scales; same results: "
        f"{'not compared' if peer is None else 'yes' if agree else 'NO'}"
    )
    return 0 if agree and ours.traces == shapes else 1


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Gigpo)))
