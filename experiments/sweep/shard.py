"""What one process of a sweep does: its settings, one after another.

This is what submitit pickles and runs elsewhere, so it imports neither the catalogue of
experiments nor JAX. Run again, it goes on: finished settings are passed over, and runs
resume from their own folders.
"""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass
from typing import Any

from experiments.settings import Setting
from experiments.sweep.records import (
    Record,
    is_finished,
    read_record,
    results_of,
    write_record,
)
from jerp.errors import StorageError
from jerp.storage.locks import lock_folder

__all__ = ["Shard"]


@dataclass(frozen=True)
class Shard:
    """A job of a launcher.

    Attributes:
      settings: placed, see `Setting.placed`, in absolute folders.
    """

    settings: tuple[Setting, ...]

    def __call__(self) -> None:
        """Runs what is not finished, the least tried first.

        So one setting that kills its process every time does not keep the others of its
        shard from running. The lock tells a later session that this one still works.
        """
        import submitit

        paths = submitit.JobEnvironment().paths
        tries = {setting.id: read_record(setting).tries for setting in self.settings}
        with lock_folder(paths.folder):
            for setting in sorted(self.settings, key=lambda s: tries[s.id]):
                run_setting(setting, log=str(paths.stdout))

    def checkpoint(self) -> Any:
        """What a cluster queues again when its time is up or it is preempted."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


def run_setting(setting: Setting, *, log: str) -> None:
    """Runs one setting and notes what became of it; an exception of its own is caught.

    Not caught is what ends the process: an interrupt, and submitit's word that the time
    is up.
    """
    from submitit.core.utils import UncompletedJobError

    if is_finished(setting):
        return
    tries = read_record(setting).tries + 1
    record = write_record(setting, Record("running", tries, log=log))
    print(f"== {setting.id}, try {record.tries}", flush=True)
    begin = time.monotonic()
    try:
        setting.run(setting.config)
        if results_of(setting) is None:
            raise StorageError(f"{setting.config.out}: the run left no results.json")
    except UncompletedJobError:
        raise
    except Exception as error:
        traceback.print_exc()
        status, said = "failed", _last_line(error)
    else:
        status, said = "finished", None
    seconds = time.monotonic() - begin
    write_record(setting, Record(status, record.tries, seconds, said, log))


def _last_line(error: Exception) -> str:
    lines = "".join(traceback.format_exception_only(error)).strip().splitlines()
    return lines[-1].strip()
