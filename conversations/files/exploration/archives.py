"""List the entries of archives without unpacking them. Pure."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Protocol, cast

from conversations.files.exploration.glance import Seen, cut, shortened
from conversations.humanize import counted

SHOWN_ENTRIES = 30
MOST_ENTRIES = 10_000
# The directory of a zip file is read as a whole, so its size is limited.
MOST_DIRECTORY_BYTES = 8 * 1024 * 1024
MOST_UNPACKED = 64 * 1024 * 1024
# Text is seldom compressed to less than a twentieth. More than this ratio is suspicious.
SUSPICIOUS_RATIO = 100
SUSPICIOUS_BYTES = 512 * 1024 * 1024
_END_OF_DIRECTORY = b"PK\x05\x06"


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TooMuch(Exception):
    """An exploration would have to read more than its limit."""


@dataclass
class Limited:
    """A stream that raises TooMuch once more than `left` bytes are read."""

    file: Readable
    left: int

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self.left:
            size = self.left + 1
        data = self.file.read(size)
        self.left -= len(data)
        if self.left < 0:
            raise TooMuch
        return data


def explore_zip(seen: Seen) -> list[str]:
    at = seen.tail.rfind(_END_OF_DIRECTORY)
    if at < 0 or len(seen.tail) < at + 16:
        return ["its directory is missing: the file is incomplete"]
    (directory_bytes,) = struct.unpack_from("<L", seen.tail, at + 12)
    if directory_bytes > MOST_DIRECTORY_BYTES:
        return ["not listed: its directory is too long"]
    with zipfile.ZipFile(seen.file) as archive:
        entries = archive.infolist()
    encrypted = sum(bool(entry.flag_bits & 1) for entry in entries)
    notes = [f"{counted(encrypted, 'entry')} encrypted"] if encrypted else []
    return _described([(entry.filename, entry.file_size) for entry in entries], seen, notes=notes)


def explore_tar(seen: Seen) -> list[str]:
    return _tar(seen.file, seen)


def explore_gzip(seen: Seen) -> list[str]:
    """List a compressed tar archive; show the first line of a compressed text."""
    with gzip.GzipFile(fileobj=seen.file, mode="rb") as unpacked:
        head = unpacked.read(512)
        if head[257:262] == b"ustar":
            unpacked.seek(0)
            return ["a tar archive, compressed", *_tar(unpacked, seen)]
    if b"\x00" in head:
        return ["binary data, compressed"]
    return ["a text, compressed, that begins:", cut(head.decode("utf-8", "replace").split("\n")[0])]


def _tar(file: Readable, seen: Seen) -> list[str]:
    entries: list[tuple[str, int]] = []
    ending = ""
    try:
        # Read as a stream, so that no header can cause more than the limit to be read.
        limited = cast("IO[bytes]", Limited(file, MOST_UNPACKED))
        with tarfile.open(fileobj=limited, mode="r|") as archive:
            for member in archive:
                entries.append((member.name, member.size))
                # Otherwise tarfile keeps every member in memory.
                archive.members = []  # type: ignore[attr-defined]
                if len(entries) >= MOST_ENTRIES or seen.is_late:
                    ending = " or more"
                    break
    except TooMuch:
        ending = f" in the first {MOST_UNPACKED:,} bytes"
    return _described(entries, seen, ending=ending)


def _described(entries: list[tuple[str, int]], seen: Seen, *, ending: str = "", notes: Iterable[str] = ()) -> list[str]:
    """Count and list names with their sizes, and warn of entries that may do harm."""
    unpacked = sum(size for _, size in entries)
    lines = [f"{counted(len(entries), 'entry')}{ending}, {unpacked:,} bytes unpacked", *notes]
    if unpacked > SUSPICIOUS_BYTES and unpacked > SUSPICIOUS_RATIO * seen.byte_size:
        lines.append(f"Beware: it unpacks to {unpacked // seen.byte_size:,} times its size, as a zip bomb does.")
    leaving = [name for name, _ in entries if _leaves(name)]
    if leaving:
        lines.append(
            f"Beware: {counted(len(leaving), 'name')} would leave the target directory, such as {cut(leaving[0])}"
        )
    shown = [f"  {cut(name, 120)} ({size:,})" for name, size in entries]
    return lines + shortened(shown, "entry", most=SHOWN_ENTRIES, indent="  ")


def _leaves(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or path.parts[:1] == ("C:",)
