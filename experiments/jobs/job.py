"""A job: one training or cloning of one arm and seed, with a folder of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["Job", "is_done", "iterations_done", "part_of"]


class Job(NamedTuple):
    """One training or cloning; its folder is `<run>/<world>/seed-<seed>/<arm>`."""

    world: str
    arm: str
    seed: int

    def folder(self, run: Path) -> Path:
        """Where its files are."""
        return run / self.world / f"seed-{self.seed}" / self.arm

    def is_done(self, run: Path) -> bool:
        """Whether its results are all there."""
        return is_done(self.folder(run))


def is_done(folder: Path) -> bool:
    """Whether the results are all there, of which these are written last."""
    return (folder / "evaluation.safetensors").exists()


def part_of(jobs: Sequence[Job], part: tuple[int, int]) -> Sequence[Job]:
    """The part `(index, count)` of the jobs, neighbours together."""
    index, count = part
    first, last = (len(jobs) * i // count for i in (index, index + 1))
    return jobs[first:last]


def iterations_done(run: Path, jobs: Iterable[Job], each: int) -> int:
    """Iterations behind us: those of finished jobs, and rows of the others."""
    total = 0
    for job in jobs:
        rows = job.folder(run) / "metrics.jsonl"
        if job.is_done(run):
            total += each
        elif rows.exists():
            total += rows.read_bytes().count(b"\n")
    return total
