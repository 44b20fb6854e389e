"""Content codings of requests and answers, decoded piece by piece. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

# What a client may take is narrowed to these, so that an answer can be read.
CODINGS = ("gzip", "deflate", "zstd", "identity")


# 512 coded bytes decode to at most 16 MiB in any of these codings.
_STEP = 512


class Decoder(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class _Plain:
    def decompress(self, data: bytes, /) -> bytes:
        return data


class _Deflate:
    """With or without the header of zlib: vendors send both."""

    def __init__(self) -> None:
        self.inner = zlib.decompressobj()
        self.has_begun = False

    def decompress(self, data: bytes, /) -> bytes:
        try:
            found = self.inner.decompress(data)
        except zlib.error:
            if self.has_begun:
                raise
            self.inner = zlib.decompressobj(-zlib.MAX_WBITS)
            found = self.inner.decompress(data)
        self.has_begun = True
        return found


def decoder(coding: str) -> Decoder:
    """A decoder for this Content-Encoding; ValueError for one that is not known."""
    match coding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return zlib.decompressobj(16 + zlib.MAX_WBITS)
        case "deflate":
            return _Deflate()
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj()
        case _:
            raise ValueError(f"The coding {coding[:40]!r} is not known.")


def steps(unpacking: Decoder, data: bytes) -> Iterator[bytes]:
    """What a piece becomes, in steps so small that a bound can be kept between them.

    ValueError for one that is not coded as it says.
    """
    size = len(data) if isinstance(unpacking, _Plain) else _STEP
    for start in range(0, len(data), size or 1):
        try:
            found = unpacking.decompress(data[start : start + size])
        except (zlib.error, zstandard.ZstdError) as wrong:
            raise ValueError("The body is not coded as it says.") from wrong
        yield found


def decoded(data: bytes, coding: str, *, most: int) -> bytes:
    """A whole body, decoded; ValueError if that is not possible, or too large."""
    if coding.strip().lower() in ("", "identity"):
        return data
    unpacking = decoder(coding)
    found = bytearray()
    for piece in steps(unpacking, data):
        found += piece
        if len(found) > most:
            raise ValueError("The body is too large.")
    return bytes(found)


def accepted(wanted: str) -> str:
    """An Accept-Encoding without the codings that LCM cannot read."""
    kept = [each for each in wanted.split(",") if each.partition(";")[0].strip().lower() in CODINGS]
    return ",".join(kept).strip() or "identity"
