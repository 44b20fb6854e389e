"""Turn texts into sets of weighted terms: stems, pairs of CJK characters, names."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources

from compaction.summarizing.extractive.identifiers import PIECE, names_of


def _band(name: str) -> frozenset[str]:
    return frozenset((resources.files(__package__) / "english" / f"{name}.txt").read_text(encoding="utf-8").split())


# Lists of English words, by how informative they are. A part of one conversation is too short to learn which words are
# common: seen once in thirty messages, "awesome" looks as rare as "Lisbon". The lists are general knowledge of English,
# not fitted to any conversation. A word of another language is in no list; its weight depends on how many messages of
# the source use it.

# Grammar and interjections: they carry no fact by themselves, and are never terms. Negations are left out on purpose:
# "does not work" must not become "work".
FUNCTION_WORDS = _band("function_words")

# Words of almost every conversation: pleasantries, feelings, talk about talking, and verbs that have little meaning by
# themselves ("make a plan", "get well", "have a look").
SMALL_TALK = _band("small_talk")

# Words of every report: times, people in general, and the plainest actions. Times are often searched for.
PLAIN = _band("plain")

# Words for everyday things.
EVERYDAY = _band("everyday")

# Common verbs, qualities and abstractions, which qualify a statement but do not carry its main information.
COMMON = _band("common")

# Words that are frequent in terminals, files and the output of tools.
PROGRAMMING = _band("programming")

# Chinese and Japanese write without spaces, so two neighbouring CJK characters make a term.
CJK = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
_WORD = re.compile(r"[^\W_]+")
_CJK_RUN = re.compile(f"[{CJK}]+")
HAS_CJK = re.compile(f"[{CJK}]")

# A longer "word" is data; its beginning is enough to distinguish it.
_LONGEST_WORD = 48

# The worth of a word. Only the ratios matter, and the results are similar from 1:2:4 to 1:1.5:2. The steps are smaller
# than those of idf, because people often search later for an everyday thing.
SMALL_TALK_WORTH = 1.5
_COMMON_WORTH = 3.0
_TELLING_WORTH = 4.0

# A name cannot be paraphrased, so it is worth more than an informative word, in addition to the words in it. With much
# more worth, lines would be kept only for their names, at the cost of other content.
_NAME_WORTH = 6.0


def stem(word: str) -> str:
    """Strip endings of inflection from a lower-case English word."""
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
    """Return the term of one word, or "" if it is a function word."""
    return _term_of(word[:_LONGEST_WORD])


@lru_cache(maxsize=1 << 14)
def _term_of(word: str) -> str:
    word = word.lower()
    return "" if word in FUNCTION_WORDS else stem(word)


def worth(term: str) -> float:
    """Return the worth of a term in general, in any text."""
    if term in _SMALL_TALK_STEMS:
        return SMALL_TALK_WORTH
    if term in _COMMON_STEMS or term.endswith("ly") or (len(term) < 2 and term.isascii()):
        return _COMMON_WORTH
    return _TELLING_WORTH


def is_telling(term: str) -> bool:
    """Whether the term names something: "piano" does, "really" does not."""
    return term in _EVERYDAY_STEMS or worth(term) == _TELLING_WORTH


def words_of(text: str) -> list[str]:
    """Return the words of a text; for CJK, overlapping pairs of characters."""
    if text.isascii() or not HAS_CJK.search(text):
        return [text] if text.isalpha() else _WORD.findall(text)
    words = _WORD.findall(_CJK_RUN.sub(" ", text))
    for run in _CJK_RUN.findall(text):
        words += [run] if len(run) == 1 else map("".join, zip(run, run[1:], strict=False))
    return words


def terms_of(text: str) -> set[str]:
    """Return the distinct terms of a text."""
    found = {term_of(word) for word in words_of(text)}
    found.discard("")
    return found


class Vocabulary:
    """The terms of a text, numbered in order of appearance.

    The lists are indexed by these numbers; `spelling` is how the term was first written.
    """

    def __init__(self) -> None:
        self.term: list[str] = []
        self.spelling: list[str] = []
        self.worth: list[float] = []
        self.is_name: list[bool] = []
        self._numbers: dict[str, int] = {}
        # Caches the terms of each piece, because texts repeat words.
        self._pieces: dict[str, tuple[int, ...]] = {}

    def terms(self, text: str) -> tuple[int, ...]:
        """Return the distinct terms of a text in order of appearance, adding new ones."""
        found: dict[int, None] = {}
        # A closing tag such as "</p>" is no path.
        for piece in PIECE.findall(text.replace("</", "<")):
            numbers = self._pieces.get(piece)
            found.update(dict.fromkeys(self._read(piece) if numbers is None else numbers))
        return tuple(found)

    def names(self, text: str) -> list[int]:
        """Return the distinct names of a text, as numbers."""
        return [number for number in self.terms(text) if self.is_name[number]] if text else []

    def known(self, text: str) -> tuple[int, ...]:
        """Return the distinct terms of a text that are in the vocabulary already."""
        found: dict[int, None] = {}
        for piece in PIECE.findall(text):
            numbers = self._pieces.get(piece)
            if numbers is None:
                met = (self._numbers.get(term_of(word)) for word in words_of(piece))
                numbers = tuple(number for number in met if number is not None)
            found.update(dict.fromkeys(numbers))
        return tuple(found)

    def _read(self, piece: str) -> tuple[int, ...]:
        """Return the numbers of the terms in a piece of text; add new terms."""
        terms = ((term_of(word), word) for word in words_of(piece))
        numbers = [self._number(term, word, worth(term)) for term, word in terms if term]
        # The prefix distinguishes a name from the word that is spelt like it.
        numbers += [self._number(f"name:{name}", name, _NAME_WORTH, is_name=True) for name in names_of(piece)]
        self._pieces[piece] = tuple(numbers)
        return self._pieces[piece]

    def _number(self, term: str, spelling: str, worth: float, *, is_name: bool = False) -> int:
        if term not in self._numbers:
            self._numbers[term] = len(self.term)
            self.term.append(term)
            self.spelling.append(spelling)
            self.worth.append(worth)
            self.is_name.append(is_name)
        return self._numbers[term]
