"""Clean text of control characters, and cut it to size."""

from __future__ import annotations

import re
from collections.abc import Callable

# If a text has more characters than this, only the beginning and the end are read: a summary has only a few thousand
# characters, and a tool result of 5 MB must not take long.
LONGEST_READ = 200_000

# Whole escape sequences of terminals; then every other control character, and code points that are no characters.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,8}[@-~]|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")


def clean(text: str) -> str:
    """Remove what a database, an XML parser or a tokenizer would reject; cut to size."""
    if len(text) > LONGEST_READ:
        half = LONGEST_READ // 2
        text = f"{text[:half]}\n{text[-half:]}"
    return _CONTROLS.sub(" ", _ESCAPES.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """Put the text on one line, with single spaces between its words."""
    return " ".join(text.split())


def clip(text: str, longest: int) -> str:
    """Return the text, or its beginning and "…", in at most `longest` characters."""
    return text if len(text) <= longest else text[: max(0, longest - 1)].rstrip() + "…"


def estimate_tokens(text: str) -> float:
    """Estimate the tokens of a text: good enough for ranking, not for limits."""
    # Prose has four bytes per token. Bytes are counted, because a CJK character has three and is most of a token.
    return 1 + (len(text) if text.isascii() else len(text.encode(errors="replace"))) / 4


def fit(text: str, limit: int, count_tokens: Callable[[str], int]) -> str:
    """Return the longest beginning that costs at most `limit` tokens, or ""."""
    # A token of ordinary text has far fewer characters than this, so the rest need not be counted.
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
    # The count is not strictly monotonic in the length, and the limit must never be exceeded.
    return kept if kept and count_tokens(kept) <= limit else ""
