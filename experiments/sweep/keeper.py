"""Keeps a sweep going: submits shards, waits, and submits again what died.

A setting is tried at most `1 + retries` times a session. What ends a try is an
exception of its own, or the end of its process however it came: a kill, a crash, a
cluster's preemption. A shard that ends before it began any of its settings counts as a
try of each, so that nothing is submitted for ever.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.settings import Setting
from experiments.sweep.launchers import Launcher
from experiments.sweep.records import Record, is_finished, read_record, write_record
from experiments.sweep.shard import Shard

__all__ = ["Keeper", "Submitted"]

POLL_SECONDS = {"local": 0.2, "slurm": 2.0}
GRACE_SECONDS = 2.0
"""In which local jobs end that Ctrl-C in a terminal has told already. Told twice,
submitit would leave without ending what it started."""
STOP_SECONDS = 10.0
"""A local job that is told to stop kills its process after one second."""


@dataclass(frozen=True)
class Submitted:
    """A shard in the launcher's hands.

    Attributes:
      place: among those side by side.
      shard: its settings.
      job: of submitit.
      tries: by id, of its settings before it.
    """

    place: int
    shard: Shard
    job: Any
    tries: dict[str, int]


class Keeper:
    """The shards of one session.

    Attributes:
      running: what the launcher has.
    """

    def __init__(
        self,
        launcher: Launcher,
        settings: tuple[Setting, ...],
        *,
        retries: int,
        on_change: Callable[[], Any] = lambda: None,
        say: Callable[[str], None] = lambda text: None,
    ):
        self.running: list[Submitted] = []
        self._launcher, self._retries = launcher, retries
        self._on_change, self._say = on_change, say
        self._begun = {s.id: read_record(s).tries for s in settings}

    def submit(self, shards: Iterable[tuple[Setting, ...]]) -> None:
        """Submits shards side by side."""
        for settings in shards:
            taken = {submitted.place for submitted in self.running}
            place = next(i for i in range(len(taken) + 1) if i not in taken)
            self._submit(place, settings)

    def attach(
        self,
        settings: tuple[Setting, ...],
        folder: str,
        job_id: str,
        tries: dict[str, int],
    ) -> None:
        """Takes on a job that an earlier session left; its tries count in this one."""
        self._begun |= {s.id: tries[s.id] for s in settings}
        job = self._launcher.attach(folder, job_id)
        place = len(self.running)
        self.running.append(Submitted(place, Shard(settings), job, tries))

    def wait(self, on_poll: Callable[[], None] = lambda: None) -> None:
        """Until every setting is finished or has failed for good."""
        while self.running:
            for submitted in [s for s in self.running if s.job.done()]:
                self.running.remove(submitted)
                again = self._settle(submitted)
                if again:
                    self._submit(submitted.place, again)
                self._on_change()
            on_poll()
            time.sleep(POLL_SECONDS[self._launcher.kind])

    def stop(self) -> None:
        """Ends local jobs that still run; those of a cluster go on."""
        if self._launcher.kind != "local" or not self.running:
            return
        if not self._all_done_in(GRACE_SECONDS):
            for submitted in self.running:
                submitted.job.cancel()
            self._all_done_in(STOP_SECONDS)
        for submitted in self.running:
            for setting in submitted.shard.settings:
                record = read_record(setting)
                if record.status == "running":
                    write_record(setting, replace(record, status="waiting"))
        self.running.clear()
        self._on_change()

    def _all_done_in(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if all(submitted.job.done() for submitted in self.running):
                return True
            time.sleep(POLL_SECONDS["local"])
        return False

    def _submit(self, place: int, settings: tuple[Setting, ...]) -> None:
        tries = {s.id: read_record(s).tries for s in settings}
        shard = Shard(settings)
        job = self._launcher.submit(shard, place)
        self.running.append(Submitted(place, shard, job, tries))
        self._on_change()

    def _settle(self, submitted: Submitted) -> tuple[Setting, ...]:
        """Notes what became of a shard's settings; those that are to be tried again."""
        records = {s.id: read_record(s) for s in submitted.shard.settings}
        tries = submitted.tries
        idle = all(record.tries == tries[name] for name, record in records.items())
        again = []
        for setting in submitted.shard.settings:
            record = records[setting.id]
            if is_finished(setting):
                continue
            if record.tries == tries[setting.id] and not idle:
                again.append(setting)  # its shard died before its turn
                continue
            if record.status == "running" or idle:
                record = _died(submitted.job, record, began=not idle)
                write_record(setting, record)
            used = record.tries - self._begun[setting.id]
            if used <= self._retries:
                again.append(setting)
            then = "is tried again" if used <= self._retries else "is given up"
            self._say(f"{setting.id} {then} after try {used}: {record.error}")
        return tuple(again)


def _died(job: Any, record: Record, *, began: bool) -> Record:
    log = Path(job.paths.stdout)
    how = "its process ended early" if began else "its shard ended before it began"
    state = "" if job.state in ("FINISHED", "UNKNOWN") else f" ({job.state})"
    return Record(
        status="failed",
        tries=record.tries + (not began),
        error=f"{how}{state}; its log ends: {_last_line(log) or 'nothing'}",
        log=str(log),
    )


def _last_line(path: Path) -> str:
    """The last line of a file that is not empty, of which only the end is read."""
    if not path.exists():
        return ""
    with open(path, "rb") as file:
        file.seek(max(path.stat().st_size - 4096, 0))
        text = file.read().decode(errors="replace").strip()
    return text.rpartition("\n")[2].strip()
