"""Files of the response store: newline-delimited JSON, one writer a file.

The first line is a header, every other line one entry; each ends with a CRC-32 of what
stands before it, so that a changed byte is found and not replayed. Lines are ASCII and
split at newlines alone: U+2028 or NEL in a completion cannot break a record. A shard
is created exclusively and locked while its process lives; what a killed process left
half-written is cut, everything before it is kept.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import lzma
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from jerp import __version__
from jerp.errors import StorageError

__all__ = [
    "Entry",
    "Shard",
    "ShardWriter",
    "entry_line",
    "read_shard",
    "shard_paths",
    "write_packed",
]

FORMAT = "jerp-response-store"
VERSION = 1
_CRC = b',"crc":"'
_ENCODE = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False
).encode


class Entry(NamedTuple):
    """One recorded answer: `record` is JSON-able, `key` hashes what was asked."""

    kind: str
    key: str
    record: dict[str, Any]


class Shard(NamedTuple):
    """What one file holds.

    Attributes:
      fingerprint: of the executor that answered; None where none was attached.
      entries: in the order they were written.
      problem: what was cut or ignored, in words; empty if nothing was.
    """

    fingerprint: str | None
    entries: list[Entry]
    problem: str = ""


def shard_paths(folder: Path) -> list[Path]:
    """The store files in `folder`, oldest first."""
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.jsonl.xz")])


def read_shard(path: Path, *, repair: bool) -> Shard:
    """Reads one store file.

    Args:
      path: a `.jsonl` or `.jsonl.xz` file.
      repair: cut a half-written tail off the file, unless its writer still lives.

    Raises:
      StorageError: the file is unreadable, no response store, of another version, or
        has a corrupt line that is not a half-written tail.
    """
    try:
        if path.suffix == ".xz":
            data, problem = _unpack(path), ""
        else:
            data, problem = _read_lines(path, repair=repair)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path}: cannot read this store file: {error}") from error
    lines = data.split(b"\n")[:-1]
    if not lines:
        return Shard(None, [], problem)
    fingerprint = _parse_header(path, lines[0])
    entries = [_parse_entry(path, n, line) for n, line in enumerate(lines[1:], start=2)]
    return Shard(fingerprint, entries, problem)


class ShardWriter:
    """Appends entries to a new shard of `folder` that no other process writes to.

    Raises:
      StorageError: the folder cannot be written to.
    """

    def __init__(self, folder: Path, fingerprint: str | None):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path, self._file = _create(folder)
        except OSError as error:
            raise StorageError(
                f"{folder}: cannot open a store file here: {error}"
            ) from error
        # Where a file system has no locks, no reader gets one either and none cuts.
        with contextlib.suppress(OSError):
            fcntl.flock(self._file, fcntl.LOCK_EX)
        self._length = 0
        self._header = _header_line(fingerprint)

    def append(self, lines: Iterable[bytes]) -> None:
        """Writes lines of `entry_line` in one piece and waits until they are on disk.

        Raises:
          StorageError: for example a full disk. What was written before stays valid;
            nothing of this call is kept.
        """
        head = b"" if self._length else self._header
        data = head + b"".join(lines)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            os.fsync(self._file)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise StorageError(
                f"{self.path}: cannot store responses: {error}. What was stored before "
                "is kept; make room and run the same command again to go on."
            ) from error
        self._length += len(data)

    def close(self) -> None:
        """Releases the file; an empty one is removed."""
        if not self._length:
            self.path.unlink(missing_ok=True)
        os.close(self._file)


def write_packed(path: Path, fingerprint: str | None, entries: Iterable[Entry]) -> None:
    """Writes a read-only `.jsonl.xz` store; equal entries give equal bytes."""
    lines = [_header_line(fingerprint), *map(entry_line, entries)]
    data = lzma.compress(b"".join(lines), preset=9 | lzma.PRESET_EXTREME)
    partial = path.with_name(path.name + ".part")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise StorageError(f"{path}: cannot write the packed store: {error}") from error


def entry_line(entry: Entry) -> bytes:
    """One entry as it stands in a file, newline included."""
    return _line(entry._asdict())


def _header_line(fingerprint: str | None) -> bytes:
    return _line(
        {
            "format": FORMAT,
            "version": VERSION,
            "created_by": f"jerp {__version__}",
            "fingerprint": fingerprint,
        }
    )


def _line(value: dict[str, Any]) -> bytes:
    body = _ENCODE(value).encode("ascii")[:-1]
    return b'%b%b%08x"}\n' % (body, _CRC, zlib.crc32(body))


def _create(folder: Path) -> tuple[Path, int]:
    number = len(shard_paths(folder))
    while True:
        number += 1
        path = folder / f"shard-{number:06d}.jsonl"
        try:
            flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND
            return path, os.open(path, flags, 0o644)
        except FileExistsError:
            continue


def _unpack(path: Path) -> bytes:
    try:
        data = lzma.decompress(path.read_bytes())
    except (lzma.LZMAError, EOFError) as error:
        raise StorageError(
            f"{path}: not a complete .xz file ({error}); get the file again"
        ) from error
    if not data.endswith(b"\n"):
        raise StorageError(f"{path}: its last line is cut; get the file again")
    return data


def _read_lines(path: Path, *, repair: bool) -> tuple[bytes, str]:
    """The complete lines of a plain file, and what became of a half-written tail."""
    with _open_shard(path, repair=repair) as file:
        finished = _is_finished(file.fileno())
        data = file.read()
        length = data.rfind(b"\n") + 1
        tail = len(data) - length
        if not tail or not finished:
            return data[:length], ""
        if file.writable():
            os.ftruncate(file.fileno(), length)
            os.fsync(file.fileno())
        done = "cut" if file.writable() else "ignored"
    return data[:length], f"{path}: half-written last line of {tail} bytes {done}"


def _open_shard(path: Path, *, repair: bool):
    if repair:
        # A store that others own may be readable only: then nothing is cut.
        with contextlib.suppress(PermissionError):
            return path.open("r+b")
    return path.open("rb")


def _is_finished(file: int) -> bool:
    """Whether no living process still appends; its tail is then only in flight."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _parse_line(path: Path, number: int, line: bytes) -> dict[str, Any]:
    body, mark, check = line.rpartition(_CRC)
    if mark and check == b'%08x"}' % zlib.crc32(body):
        return json.loads(body + b"}")
    raise StorageError(
        f"{path}, line {number}: expected an entry with its checksum, got "
        f"{line[:60]!r}. The file was changed or damaged: delete this line (what it "
        "held is then asked again), or restore the file."
    )


def _parse_header(path: Path, line: bytes) -> str | None:
    if f'"format":"{FORMAT}"'.encode() not in line:
        raise StorageError(
            f"{path}, line 1: expected the header of a response store, got "
            f"{line[:60]!r}. Move the file out of the store's folder."
        )
    header = _parse_line(path, 1, line)
    if header["version"] != VERSION:
        raise StorageError(
            f"{path}: response store of version {header['version']}, this jerp reads "
            f"version {VERSION}: update jerp"
        )
    return header["fingerprint"]


def _parse_entry(path: Path, number: int, line: bytes) -> Entry:
    value = _parse_line(path, number, line)
    return Entry(value["kind"], value["key"], value["record"])
