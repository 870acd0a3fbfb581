"""The members of a zip file, also where Zstandard compressed them.

Python reads method 93 from 3.14 on. Before that the bytes of a member are found by the
format's own local header and given to the package zstandard.
"""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

from jerp.errors import MissingExtraError, StorageError

__all__ = ["ZipMembers"]

ZSTANDARD = 93
LOCAL_HEADER = 30
"""Bytes before a member's name; two lengths of two bytes each end it."""


class ZipMembers:
    """A zip file that is open for reading.

    Attributes:
      names: of the members; the last of one name counts, as for every zip reader.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(path)
        except zipfile.BadZipFile as error:
            raise StorageError(
                f"{path}: not a whole zip file ({error}); it was cut off or is "
                "something else, take it from where it was written again"
            ) from error
        self.names = [*dict.fromkeys(self._zip.namelist())]

    def __enter__(self) -> ZipMembers:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def read(self, name: str) -> bytes:
        """The bytes of a member.

        Raises:
          StorageError: they are not whole.
          MissingExtraError: Zstandard compressed them, and zstandard is not installed.
        """
        info = self._zip.getinfo(name)
        try:
            if info.compress_type == ZSTANDARD and not hasattr(
                zipfile, "ZIP_ZSTANDARD"
            ):
                return self._zstandard(info)
            return self._zip.read(info)
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise self._broken(name, str(error)) from error
        # What `zipfile` raises of a compression or an encryption that it does not know.
        except NotImplementedError as error:
            raise StorageError(
                f"{self.path}, {name}: {error}; write the file with another compression"
            ) from error

    def _zstandard(self, info: zipfile.ZipInfo) -> bytes:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError("zstandard", "inspect") from error
        with open(self.path, "rb") as file:
            file.seek(info.header_offset)
            header = file.read(LOCAL_HEADER)
            if len(header) < LOCAL_HEADER or header[:4] != b"PK\x03\x04":
                raise self._broken(info.filename, "no header where one should be")
            lengths = (header[26:28], header[28:30])
            file.seek(sum(int.from_bytes(each, "little") for each in lengths), 1)
            packed = file.read(info.compress_size)
        try:
            # Large members are several frames, one after the other.
            with zstandard.ZstdDecompressor().stream_reader(
                packed, read_across_frames=True
            ) as stream:
                data = stream.read()
        except zstandard.ZstdError as error:
            raise self._broken(info.filename, str(error)) from error
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise self._broken(info.filename, "the bytes are not those it promises")
        return data

    def _broken(self, name: str, what: str) -> StorageError:
        return StorageError(
            f"{self.path}, {name}: cannot be unpacked ({what}); take the file from "
            "where it was written again"
        )
