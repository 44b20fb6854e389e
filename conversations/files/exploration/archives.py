"""List the entries of archives without unpacking them. Pure."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Protocol, Self, cast

from conversations.files.exploration.glance import Seen, cut, shortened
from conversations.humanize import counted

SHOWN_ENTRIES = 30
MOST_ENTRIES = 10_000
# The directory of a zip file and the extended header of a tar entry are read as a whole, so their size is limited. Of a
# gzip file, any number of names and empty parts may come before its first byte.
MOST_DIRECTORY_BYTES = 8 * 1024 * 1024
MOST_HEADER_BYTES = 1024 * 1024
MOST_UNPACKED = 64 * 1024 * 1024
# Text is seldom compressed to less than a twentieth. More than this ratio is suspicious.
SUSPICIOUS_RATIO = 100
SUSPICIOUS_BYTES = 512 * 1024 * 1024
_END_OF_DIRECTORY = b"PK\x05\x06"
_EXTENDED = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK
)  # fmt: skip


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...
    def seek(self, offset: int, whence: int = 0, /) -> int: ...
    def tell(self) -> int: ...


class TooMuch(Exception):
    """An exploration would have to read more than its limit, or for too long."""


@dataclass
class Limited:
    """A file that raises TooMuch after `left` bytes, or at the end of the time."""

    file: Readable
    left: int
    seen: Seen

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self.left:
            size = self.left + 1
        data = self.file.read(size)
        self.left -= len(data)
        if self.left < 0 or self.seen.is_late:
            raise TooMuch
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


class Entry(tarfile.TarInfo):
    """An entry of a tar archive; raises TooMuch for a long extended header."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.size > MOST_HEADER_BYTES and entry.type in _EXTENDED:
            raise TooMuch
        return entry


def explore_zip(seen: Seen) -> list[str]:
    if _END_OF_DIRECTORY not in seen.tail:
        return ["its directory is missing: the file is incomplete"]
    try:
        with zipfile.ZipFile(cast("IO[bytes]", Limited(seen.file, MOST_DIRECTORY_BYTES, seen))) as archive:
            entries = archive.infolist()
    except TooMuch:
        return ["not listed: its directory is too long"]
    encrypted = sum(bool(entry.flag_bits & 1) for entry in entries)
    notes = [f"{counted(encrypted, 'entry')} encrypted"] if encrypted else []
    return _described([(entry.filename, entry.file_size) for entry in entries], seen, notes=notes)


def explore_tar(seen: Seen) -> list[str]:
    return _tar(seen.file, seen)


def explore_gzip(seen: Seen) -> list[str]:
    """List a compressed tar archive; show the first line of a compressed text."""
    packed = Limited(seen.file, MOST_HEADER_BYTES, seen)
    try:
        with gzip.GzipFile(fileobj=cast("IO[bytes]", packed), mode="rb") as unpacked:
            head = unpacked.read(512)
            if head[257:262] == b"ustar":
                packed.left = seen.byte_size
                unpacked.seek(0)
                return ["a tar archive, compressed", *_tar(unpacked, seen)]
    except TooMuch:
        return ["not listed: its headers are too long"]
    if b"\x00" in head:
        return ["binary data, compressed"]
    return ["a text, compressed, that begins:", cut(head.decode("utf-8", "replace").split("\n")[0])]


def _tar(file: Readable, seen: Seen) -> list[str]:
    entries: list[tuple[str, int]] = []
    ending = ""
    # Read as a stream, so that no header can cause more than the limit to be read.
    limited = Limited(file, MOST_UNPACKED, seen)
    try:
        with tarfile.open(fileobj=cast("IO[bytes]", limited), mode="r|", tarinfo=Entry) as archive:
            for member in archive:
                entries.append((member.name, member.size))
                # Otherwise tarfile keeps every member in memory.
                archive.members = []  # type: ignore[attr-defined]
                if len(entries) >= MOST_ENTRIES or seen.is_late:
                    ending = " or more"
                    break
    except TooMuch:
        ending = f" in the first {MOST_UNPACKED:,} bytes" if limited.left < 0 else " or more"
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
