"""One writer a folder: a lock that the operating system keeps.

It ends with the process that holds it, however that ends, so nothing stale is left to
clear away.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import IO

from jerp.errors import StorageError

__all__ = ["lock_folder"]


def lock_folder(folder: Path) -> IO[str]:
    """An exclusive lock on the folder, which exists; closing the file gives it free.

    Raises:
      StorageError: another process has it, or the folder cannot be written.
    """
    path = folder / ".lock"
    try:
        file = open(path, "a+")  # noqa: SIM115  (closing it would release the lock)
    except OSError as error:
        raise StorageError(
            f"{folder}: cannot be written ({error.strerror}); name another folder"
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip() or "another process"
        file.close()
        raise StorageError(
            f"{folder}: in use by {holder}; wait for it, or name another folder"
        ) from error
    file.truncate(0)
    file.write(f"process {os.getpid()}")
    file.flush()
    return file
