"""List the entries of archives without unpacking them. Pure."""

from __future__ import annotations

import gzip
import struct
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Protocol, cast

from conversations.files.exploration.glance import Seen, cut, number, shortened

SHOWN_ENTRIES = 30
MOST_ENTRIES = 10_000
# The directory of a zip file is read as a whole.
MOST_DIRECTORY_BYTES = 8 * 1024 * 1024
MOST_UNPACKED = 64 * 1024 * 1024
# Text seldom packs better than twenty to one.
SUSPICIOUS_RATIO = 100
SUSPICIOUS_BYTES = 512 * 1024 * 1024
_END_OF_DIRECTORY = b"PK\x05\x06"


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class TooMuch(Exception):
    """An exploration would have to read more than its limit."""


@dataclass
class Limited:
    """A stream that raises TooMuch after a number of bytes, whatever is unpacked."""

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
    names = [entry.filename for entry in entries]
    unpacked = sum(entry.file_size for entry in entries)
    encrypted = sum(bool(entry.flag_bits & 1) for entry in entries)
    lines = [f"{number(len(entries), 'entry')}, {unpacked:,} bytes unpacked"]
    if encrypted:
        lines.append(f"{number(encrypted, 'entry')} encrypted")
    return [*lines, *_warnings(names, unpacked, seen.byte_size), *_listed([(e.filename, e.file_size) for e in entries])]


def explore_tar(seen: Seen) -> list[str]:
    return _tar(seen.file, seen)


def explore_gzip(seen: Seen) -> list[str]:
    """List a compressed tar archive; of other contents show the first line."""
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
        # As a stream, so that no header can make it read more than the limit.
        limited = cast("IO[bytes]", Limited(file, MOST_UNPACKED))
        with tarfile.open(fileobj=limited, mode="r|") as archive:
            for member in archive:
                entries.append((member.name, member.size))
                # Otherwise it keeps every member in memory.
                archive.members = []  # type: ignore[attr-defined]
                if len(entries) >= MOST_ENTRIES or seen.is_late:
                    ending = " or more"
                    break
    except TooMuch:
        ending = f" in the first {MOST_UNPACKED:,} bytes"
    unpacked = sum(size for _, size in entries)
    names = [name for name, _ in entries]
    lines = [f"{number(len(entries), 'entry')}{ending}, {unpacked:,} bytes unpacked"]
    return [*lines, *_warnings(names, unpacked, seen.byte_size), *_listed(entries)]


def _warnings(names: list[str], unpacked: int, packed: int) -> list[str]:
    lines = []
    if unpacked > SUSPICIOUS_BYTES and unpacked > SUSPICIOUS_RATIO * packed:
        lines.append(f"Beware: it unpacks to {unpacked // max(packed, 1):,} times its size, as a zip bomb does.")
    leaving = [name for name in names if _leaves(name)]
    if leaving:
        lines.append(
            f"Beware: {number(len(leaving), 'name')} would leave the target directory, such as {cut(leaving[0])}"
        )
    return lines


def _leaves(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or path.parts[:1] == ("C:",)


def _listed(entries: list[tuple[str, int]]) -> list[str]:
    return shortened(
        [f"  {cut(name, 120)} ({size:,})" for name, size in entries], "entry", most=SHOWN_ENTRIES, indent="  "
    )
