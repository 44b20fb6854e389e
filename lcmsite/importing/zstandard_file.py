"""Read a Zstandard file that may be truncated."""

from __future__ import annotations

import io
from typing import BinaryIO

import zstandard

# Four bytes can be a block of 128 KiB, so these are at most 8 MiB of text.
_AT_ONCE = 256


class ZstandardFile(io.RawIOBase):
    """The decompressed bytes of a file; EOFError if its last frame is incomplete.

    The readers of the package zstandard end without an error there.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._packed = b""
        self._unpacked = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._unpacked:
            self._packed = self._packed or self._file.read(_AT_ONCE)
            if not self._packed and self._frame is None:
                return 0
            if not self._packed:
                raise EOFError("The last frame is incomplete.")
            self._frame = self._frame or zstandard.ZstdDecompressor().decompressobj()
            self._unpacked = memoryview(self._frame.decompress(self._packed))
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(buffer), len(self._unpacked))
        buffer[:size] = self._unpacked[:size]
        self._unpacked = self._unpacked[size:]
        return size
