"""What a text says, as a set of terms with weights: words without their endings, and pairs of CJK characters."""

from __future__ import annotations

import re
from functools import lru_cache

from compaction.summarizing.extractive.english_words import (
    COMMON,
    EVERYDAY,
    FUNCTION_WORDS,
    PLAIN,
    PROGRAMMING,
    SMALL_TALK,
)

# Chinese, Japanese and Korean write without spaces: two neighbouring characters are the smallest thing that means.
CJK = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(r"[^\W_]+")
_CJK_RUN = re.compile(f"[{CJK}]+")
HAS_CJK = re.compile(f"[{CJK}]")

# A "word" longer than this is data; its beginning is enough to tell it from another.
_LONGEST_WORD = 48

# What meeting a word is worth. Only the ratios matter, and not delicately: anything between 1:2:4 and 1:1.5:2 does. The
# steps are smaller than those of idf, because what people ask for later is often an everyday thing.
SMALL_TALK_WORTH = 1.5
_COMMON_WORTH = 3.0
_TELLING_WORTH = 4.0

# The words that come again and again, a few megabytes of them. Numbers and hashes mostly come once.
_REMEMBERED = 1 << 14


def stem(word: str) -> str:
    """A lower-case word without the endings that do not change what it is about."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        root = word[: -len(ending)]
        if word.endswith(ending) and len(root) > 2 and any(vowel in root for vowel in "aeiouy"):
            word = root[:-1] if root[-1] == root[-2] and root[-1] not in "lsz" else root
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


def _stems(words: frozenset[str]) -> frozenset[str]:
    return frozenset(stem(word) for word in words)


_SMALL_TALK_STEMS = _stems(SMALL_TALK) - _stems(PLAIN)
_EVERYDAY_STEMS = _stems(EVERYDAY)
_COMMON_STEMS = _stems(PLAIN | COMMON | PROGRAMMING) | _EVERYDAY_STEMS


def term_of(word: str) -> str:
    """The term of one word as written, or the empty string if the word only holds a sentence together."""
    return _term_of_word(word) if word.isalpha() and len(word) <= _LONGEST_WORD else _term_of(word)


def _term_of(word: str) -> str:
    word = word[:_LONGEST_WORD].lower()
    return "" if word in FUNCTION_WORDS else stem(word)


_term_of_word = lru_cache(maxsize=_REMEMBERED)(_term_of)


def worth(term: str) -> float:
    """How much meeting this term tells, before anything is known of the text it stands in."""
    if term in _SMALL_TALK_STEMS:
        return SMALL_TALK_WORTH
    if term in _COMMON_STEMS or term.endswith("ly") or (len(term) < 2 and term.isascii()):
        return _COMMON_WORTH
    return _TELLING_WORTH


def is_telling(term: str) -> bool:
    """Whether the term names something by itself: what "piano" and "kitchen" do, and "start" and "really" do not."""
    return term in _EVERYDAY_STEMS or worth(term) == _TELLING_WORTH


def words_of(text: str) -> list[str]:
    """The words of a text as written; of CJK runs, the overlapping pairs of characters."""
    if text.isascii() or not HAS_CJK.search(text):
        return [text] if text.isalpha() else _WORD.findall(text)
    words = _WORD.findall(_CJK_RUN.sub(" ", text))
    for run in _CJK_RUN.findall(text):
        words += [run] if len(run) == 1 else map("".join, zip(run, run[1:], strict=False))
    return words


def terms_of(text: str) -> set[str]:
    """The distinct terms of a text."""
    found = {term_of(word) for word in words_of(text)}
    found.discard("")
    return found
