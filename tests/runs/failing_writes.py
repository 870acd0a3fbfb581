"""A disk that is full at the n-th write."""

import errno
import os
from contextlib import contextmanager
from functools import partial
from pathlib import Path

__all__ = ["POINTS", "failing"]

POINTS = ("fsync", "replace", "rename", "mkdir")
"""Calls of the system that a write needs; besides, lines that are appended."""


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Torn:
    """A file that takes half of what it is given before the disk is full."""

    def __init__(self, file):
        self.file = file

    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        full()

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()


@contextmanager
def failing(monkeypatch, number):
    """The `number`-th write inside fails; what was written by then, by name."""
    made = []

    def fails(name):
        made.append(name)
        return len(made) - 1 == number

    def called(name, real, *arguments, **settings):
        return (full if fails(name) else real)(*arguments, **settings)

    with monkeypatch.context() as patch:
        for name in POINTS:
            patch.setattr(os, name, partial(called, name, getattr(os, name)))

        def opened(path, mode="r", *arguments, real=Path.open, **settings):
            file = real(path, mode, *arguments, **settings)
            return Torn(file) if mode == "ab" and fails("append") else file

        patch.setattr(Path, "open", opened)
        yield made
