"""Bodies are decoded within a bound, whatever is in them."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from lcmsite.gateway.decoding import decode_body


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
