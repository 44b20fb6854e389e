"""Parse full-text queries: words, "phrases", alternatives (or) and -exclusions. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

# More words than any query needs; a pasted page is searched by its first words.
MOST_TERMS = 100

# One character of a script that puts no space between words.
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")

_QUOTES = str.maketrans("“”„«»", '"""""')
# A quote opens a phrase only where a word could begin, and only if it is closed: 5" is a size.
_TOKEN = re.compile(r'(?P<without>-)?"(?P<phrase>[^"]*)"|(?P<word>\S+)')
_EXCLUDED_WORD = re.compile(r"-(?=[^\W_])")
_IDENTIFIER = re.compile(
    r"[^\W_][_/\\]+[^\W_]"  # a_b, a/b
    r"|[^\W_](?:::|->|#)[^\W_]"
    r"|[^\W\d_][\w-]*\.[^\W\d_]\w"  # name.ext
    r"|^[._/~$@-]+\w+"  # .env, __init__, ./x, --flag
    r"|[a-z0-9][A-Z]\w"  # camelCase
    r"|^(?=\w*\d)(?=\w*[a-zA-Z])[\w-]{6,}$"  # a hash, a ticket
    r"|\w\(\)?$"  # a call
)
# A file and a line of it, as traces and compilers write: `src/x.ts:42`, `x.py:42:7:`.
_LINE = re.compile(r"(?P<file>.*\.[^\W\d_]\w*):\d+(?::\d+)?[:,]?")
# So many words, some of which only hold the others together, are a sentence.
_SENTENCE_WORDS = 6
_HOLDING = """
    a an and are as at be by can did do does for from had has have how i if in is it me my of on our should so that the
    their them there they this to was we were what when where which who why will with would you your
"""
_FUNCTION_WORDS = frozenset(_HOLDING.split())


class Term(NamedTuple):
    """One word, or several that stand in a row."""

    text: str
    is_phrase: bool = False


@dataclass(frozen=True)
class ParsedQuery:
    """Every clause has to hold, each by one of its terms; none of the excluded terms may occur."""

    text: str
    clauses: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """All terms but the excluded ones, in their order."""
        return tuple(term for clause in self.clauses for term in clause)

    @property
    def is_sentence(self) -> bool:
        """Whether this is a sentence, not a few words to be found together."""
        if self.text.rstrip().endswith(("?", "？")):
            return True
        return len(self.clauses) >= _SENTENCE_WORDS and any(term.text.lower() in _FUNCTION_WORDS for term in self.terms)

    @property
    def is_one_word(self) -> bool:
        """Whether this is a single word; without spaces between them, several look like one."""
        if len(self.terms) != 1 or self.terms[0].is_phrase:
            return False
        # Two signs of such a script are one word at most.
        signs = len(UNSPACED.findall(self.terms[0].text))
        return signs == 0 or (signs <= 2 and len(self.terms[0].text) == signs)

    @property
    def is_look_up(self) -> bool:
        """Whether this looks for an identifier, not for what surrounds it."""
        return not self.is_sentence and any(is_identifier(term.text) for term in self.terms)


def is_identifier(text: str) -> bool:
    """Whether a word looks like the name of something in a program: a path, a call, camelCase, a hash."""
    return _IDENTIFIER.search(text) is not None


def parse(text: str) -> ParsedQuery:
    """The query of a text in websearch syntax; nothing in it is an error."""
    clauses: list[list[Term]] = []
    excluded: list[Term] = []
    joins_last = False
    for found in _TOKEN.finditer(text.translate(_QUOTES)):
        if len(clauses) + len(excluded) >= MOST_TERMS:
            break
        word, phrase = found["word"], found["phrase"]
        if word is not None and word.lower() == "or":
            joins_last = bool(clauses)
            continue
        if word is not None:
            is_excluded = _EXCLUDED_WORD.match(word) is not None
            term = Term(word[1:] if is_excluded else word)
        else:
            is_excluded = found["without"] is not None
            term = Term(phrase, is_phrase=len(phrase.split()) > 1)
        if not term.text.strip():
            continue
        alternatives = _alternatives(term)
        if is_excluded:
            excluded.append(term)
        elif joins_last:
            clauses[-1] += alternatives
        elif alternatives not in clauses:
            clauses.append(alternatives)
        joins_last = False
    return ParsedQuery(text, tuple(tuple(clause) for clause in clauses), tuple(excluded))


def _alternatives(term: Term) -> list[Term]:
    """A term and its alternatives: of a line of a file, the file."""
    line = None if term.is_phrase else _LINE.fullmatch(term.text)
    return [term, Term(line["file"])] if line else [term]


def interpretations(text: str) -> tuple[ParsedQuery, ...]:
    """The query of a text and, if it has phrases, the same with their words, for when no text holds the phrases."""
    query = parse(text)
    has_phrases = any(term.is_phrase for term in query.terms)
    return (query, loosened(query)) if has_phrases else (query,)


def loosened(query: ParsedQuery) -> ParsedQuery:
    """The same query with each phrase taken apart into its words."""
    clauses = []
    for clause in query.clauses:
        for term in clause:
            clauses += [(Term(word),) for word in term.text.split()] if term.is_phrase else [(term,)]
    return ParsedQuery(query.text, tuple(dict.fromkeys(clauses)), query.excluded)
