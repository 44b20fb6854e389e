"""Bodies are decoded within a bound, whatever is in them."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from lcmsite.gateway.decoding import decode_body, decode_in_steps, decoder_for


@pytest.mark.parametrize(
    ("coding", "pack", "size"),
    [
        ("gzip", gzip.compress, 16 * 1024**2),
        ("deflate", zlib.compress, 16 * 1024**2),
        # Of these a few hundred bytes may become 16 MiB.
        ("zstd", zstandard.ZstdCompressor().compress, 80 * 1024**2),
    ],
)
def test_what_would_be_too_large_is_not_decoded(coding, pack, size):
    packed = pack(bytes(size))

    tracemalloc.start()
    with pytest.raises(ValueError, match="too large"):
        decode_body(packed, coding, most=1024**2)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < size / 2
    assert decode_body(pack(b"Hello"), coding, most=1024**2) == b"Hello"


@pytest.mark.parametrize(
    ("coding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.ZstdCompressor().compress)], ids=("gzip", "zstd")
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_body_in_several_members_is_decoded_to_its_end(coding, pack, size):
    packed = b"".join(map(pack, (b"one, ", b"", b"two, ", b"three")))
    decoder = decoder_for(coding)

    pieces = [packed[start : start + size] for start in range(0, len(packed), size)]

    assert b"".join(found for piece in pieces for found in decode_in_steps(decoder, piece)) == b"one, two, three"
