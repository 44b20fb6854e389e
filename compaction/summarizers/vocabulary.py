"""Numbers for the terms of a text, given out as they are met, with what each is worth in general."""

from __future__ import annotations

from compaction.summarizers.identifiers import PIECE, names_of
from compaction.summarizers.terms import term_of, words_of, worth

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
        # Text repeats its words: what a piece means is worked out once, and is then one look-up.
        self._pieces: dict[str, tuple[int, ...]] = {}

    def terms(self, text: str) -> tuple[int, ...]:
        """The distinct terms of a text, in the order of their first mention."""
        pieces = self._pieces
        found: dict[int, None] = {}
        # The end of a tag is no path.
        for piece in PIECE.findall(text.replace("</", "<")):
            numbers = pieces.get(piece)
            if numbers is None:
                numbers = self._read(piece)
            for number in numbers:
                found[number] = None
        return tuple(found)

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

    def _read(self, piece: str) -> tuple[int, ...]:
        numbers = []
        for word in words_of(piece):
            term = term_of(word)
            if term:
                numbers.append(self._number(term, word, worth(term), is_name=False))
        # The mark keeps a name apart from the word that is spelt like it.
        numbers += [self._number(f"name:{name}", name, _NAME_WORTH, is_name=True) for name in names_of(piece)]
        self._pieces[piece] = tuple(numbers)
        return self._pieces[piece]

    def _number(self, term: str, spelling: str, worth: float, *, is_name: bool) -> int:
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self.term)
            self.term.append(term)
            self.spelling.append(spelling)
            self.worth.append(worth)
            self.is_name.append(is_name)
        return number
