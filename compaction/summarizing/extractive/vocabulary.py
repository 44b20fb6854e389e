"""Numbers for the terms of a text, given out as they are met, with what each is worth in general."""

from __future__ import annotations

from itertools import chain

from compaction.summarizing.extractive.identifiers import PIECE, names_of
from compaction.summarizing.extractive.terms import term_of, words_of, worth

# A name is the one thing that cannot be said in other words: worth more than a telling word, beside the words in it.
# Much more would keep a few more names, but lines for their names' sake only, at the cost of what people said.
_NAME_WORTH = 6.0


class Vocabulary:
    """The terms met so far. Lists run by term number; `spelling` is how the term was first written."""

    def __init__(self) -> None:
        self.term: list[str] = []
        self.spelling: list[str] = []
        self.worth: list[float] = []
        self.is_name: list[bool] = []
        self._numbers: dict[str, int] = {}
        # Text repeats its words: what one means is worked out once, and is then one look-up.
        self._pieces: dict[str, tuple[int, ...]] = {}
        self._words: dict[str, tuple[int, ...]] = {}

    def terms(self, text: str) -> tuple[int, ...]:
        """The distinct terms of a text, in the order of their first mention."""
        known = self._words
        # No piece has a blank in it, so what stands between two can be looked up whole.
        words = text.split()
        for word in words:
            if word not in known:
                known[word] = self._read(word)
        return tuple(dict.fromkeys(chain.from_iterable([known[word] for word in words])))

    def names(self, text: str) -> list[int]:
        """The distinct names of a text."""
        return [number for number in self.terms(text) if self.is_name[number]] if text else []

    def known(self, text: str) -> tuple[int, ...]:
        """The distinct terms of a text, as far as they were met before."""
        found: dict[int, None] = {}
        for piece in PIECE.findall(text):
            numbers = self._pieces.get(piece)
            if numbers is None:
                met = (self._numbers.get(term_of(word)) for word in words_of(piece))
                numbers = tuple(number for number in met if number is not None)
            for number in numbers:
                found[number] = None
        return tuple(found)

    def _read(self, word: str) -> tuple[int, ...]:
        """The numbers of the terms of what stands between two blanks, given out where they are new."""
        if word.isascii() and word.isalpha() and (word.islower() or word[1:].islower()):
            # Two in three: one word, and no name in it.
            term = term_of(word)
            numbers = self._pieces[word] = (self._number(term, word),) if term else ()
            return numbers
        # The end of a tag is no path.
        pieces = PIECE.findall(word.replace("</", "<"))
        if len(pieces) == 1:
            return self._numbers_of(pieces[0])
        return tuple(number for piece in pieces for number in self._numbers_of(piece))

    def _numbers_of(self, piece: str) -> tuple[int, ...]:
        numbers = self._pieces.get(piece)
        if numbers is None:
            met = [self._number(term, word) for word in words_of(piece) if (term := term_of(word))]
            met += [self._number_of_name(name) for name in names_of(piece)]
            numbers = self._pieces[piece] = tuple(met)
        return numbers

    def _number(self, term: str, word: str) -> int:
        number = self._numbers.get(term)
        return self._new(term, word, worth(term), is_name=False) if number is None else number

    def _number_of_name(self, name: str) -> int:
        # The mark keeps a name apart from the word that is spelt like it.
        term = f"name:{name}"
        number = self._numbers.get(term)
        return self._new(term, name, _NAME_WORTH, is_name=True) if number is None else number

    def _new(self, term: str, spelling: str, worth: float, *, is_name: bool) -> int:
        number = self._numbers[term] = len(self.term)
        self.term.append(term)
        self.spelling.append(spelling)
        self.worth.append(worth)
        self.is_name.append(is_name)
        return number
