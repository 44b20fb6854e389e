"""Decode compressed bodies (Content-Encoding) chunk by chunk. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

import zstandard

# A client's accept-encoding is narrowed to these, so that LCM can decode the answer.
CODINGS = ("gzip", "deflate", "zstd", "identity")
# 512 coded bytes decode to at most 16 MiB in any of these codings.
_STEP_BYTES = 512
_GZIP_MAGIC = b"\x1f\x8b"


class Decoder(Protocol):
    def decompress(self, data: bytes, /) -> bytes: ...


class _Plain:
    def decompress(self, data: bytes, /) -> bytes:
        return data


class _Gzip:
    """Decodes gzip, also in several members one after another."""

    def __init__(self) -> None:
        self.inner = zlib.decompressobj(16 + zlib.MAX_WBITS)

    def decompress(self, data: bytes, /) -> bytes:
        found = self.inner.decompress(data)
        while (rest := self.inner.unused_data).startswith(_GZIP_MAGIC):
            self.inner = zlib.decompressobj(16 + zlib.MAX_WBITS)
            found += self.inner.decompress(rest)
        return found


class _Deflate:
    """Decodes deflate with or without the zlib header: vendors send both."""

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


def decoder_for(coding: str) -> Decoder:
    """Return a decoder for a Content-Encoding. Raises ValueError if it is unknown."""
    match coding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Gzip()
        case "deflate":
            return _Deflate()
        case "zstd":
            return zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        case _:
            raise ValueError(f"The coding {coding[:40]!r} is not known.")


def decode_in_steps(decoder: Decoder, data: bytes) -> Iterator[bytes]:
    """Yield a chunk's decoded bytes in small steps, so a caller can stop at a limit.

    Raises ValueError if the data does not match its encoding.
    """
    size = len(data) if isinstance(decoder, _Plain) else _STEP_BYTES
    for start in range(0, len(data), size or 1):
        try:
            found = decoder.decompress(data[start : start + size])
        except (zlib.error, zstandard.ZstdError) as wrong:
            raise ValueError("The body is not coded as it says.") from wrong
        yield found


def decode_body(data: bytes, coding: str, *, most: int) -> bytes:
    """Decode a whole body. Raises ValueError if that fails or exceeds `most` bytes."""
    decoder = decoder_for(coding)
    found = bytearray()
    for piece in decode_in_steps(decoder, data):
        found += piece
        if len(found) > most:
            raise ValueError("The body is too large.")
    return bytes(found)


def narrow_accept_encoding(accept_encoding: str) -> str:
    """Narrow an Accept-Encoding to the encodings that LCM can decode."""
    known = [each for each in accept_encoding.split(",") if each.partition(";")[0].strip().lower() in CODINGS]
    return ",".join(known).strip() or "identity"
