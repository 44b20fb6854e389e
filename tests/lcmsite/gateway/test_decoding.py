"""Bodies are decoded within a bound, whatever is in them."""

import gzip
import tracemalloc
import zlib

import pytest
import zstandard

from lcmsite.gateway.decoding import decode_body


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_what_would_be_too_large_is_not_decoded(coding):
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[coding]
    packed = pack(bytes(80 * 1024**2))

    tracemalloc.start()
    with pytest.raises(ValueError, match="too large"):
        decode_body(packed, coding, most=1024**2)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert most < 40 * 1024**2
    assert decode_body(pack(b"Hello"), coding, most=1024**2) == b"Hello"
