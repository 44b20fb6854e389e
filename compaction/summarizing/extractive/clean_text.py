"""Clean text of control characters, and cut it to size."""

from __future__ import annotations

import re
from collections.abc import Callable

# A summary of a few hundred tokens holds a few thousand characters. Of a message longer than this only the beginning
# and the end are read, so that a 5 MB tool result costs no more time than a large file.
LONGEST_READ = 200_000

# Colours and cursor movements of terminals, whole; then every other control character, and what is not a character.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def clean(text: str) -> str:
    """The text without what a database, an XML reader or a tokenizer would choke on."""
    if len(text) > LONGEST_READ:
        half = LONGEST_READ // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return _CONTROLS.sub(" ", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """The text on one line, single spaces between its words."""
    return " ".join(text.split())


def clip(text: str, longest: int) -> str:
    """The text, or its beginning and an ellipsis, in at most `longest` characters."""
    return text if len(text) <= longest else text[: max(0, longest - 1)].rstrip() + "…"


def estimate_tokens(text: str) -> float:
    """About what the text costs; good enough to rank by, not to decide by."""
    # Four bytes to a token in prose. By bytes, because a CJK character is three of them and most of a token.
    return 1 + (len(text) if text.isascii() else len(text.encode(errors="replace"))) / 4


def fit(text: str, limit: int, count_tokens: Callable[[str], int]) -> str:
    """The longest beginning that costs at most `limit` tokens, or ""."""
    # A token of ordinary text is far shorter than this, so what lies beyond need not be counted at all.
    text = text[: 64 * max(0, limit)]
    if text and count_tokens(text) <= limit:
        return text
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if count_tokens(text[:middle].rstrip()) <= limit:
            low = middle
        else:
            high = middle
    kept = text[:low].rstrip()
    # Counting is not quite monotonic in the length, and an answer over the limit is never acceptable.
    return kept if kept and count_tokens(kept) <= limit else ""
