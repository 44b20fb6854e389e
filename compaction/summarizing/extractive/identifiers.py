"""Find names that must survive verbatim: paths, URLs, symbols, codes.

Text is cut into pieces at blanks, quotes and brackets, and each piece is matched by itself. So the time is linear in
the text. One pattern for paths over the whole text would be quadratic in the longest word.
"""

from __future__ import annotations

import re
from functools import lru_cache

PIECE = re.compile(
    r"https?://[^\s\"'`<>()\[\]{}|\\“”‘’«»]+"  # a URL may contain characters that separate pieces elsewhere
    r"|[^\s\"'`<>()\[\]{},;|=*\\“”‘’«»、。，；：！？「」（）]+"
)

# Longer "names" are data, and one would fill the whole list of names.
LONGEST_NAME = 160
_SHORTEST_NAME = 4
_LONGEST_PIECE = 4 * LONGEST_NAME

_EDGES = ".,:;!?~#&+-^%$…@/"
_PUNCTUATION = ".,:;!?"
_URL = re.compile(r"https?://[\w.-]+[^\s]*")
_FLAG = re.compile(r"--[a-z][\w-]{2,}")
_SEGMENT = re.compile(r"[\w.@+%~-]+")
_HEX = re.compile(r"[0-9a-f]{7,64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Values that look like names: the colours and measures of style sheets.
_COLOUR = re.compile(r"#[0-9a-fA-F]{8}")
_MEASURE = re.compile(r"\d+\.\d+[A-Za-z]{1,3}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_SYMBOL = re.compile(
    r"[A-Za-z_$][\w$]*_\w+"  # snake_case
    r"|[A-Za-z]\w*[a-z0-9][A-Z]\w*"  # camelCase
    r"|(?=[A-Z0-9-]*[A-Z])(?=[A-Z0-9-]*\d)[A-Z0-9][A-Z0-9-]{3,}"  # E1101, JG7FMM, CVE-2024-1
    r"|[A-Za-z_][\w-]*(?:\.\w[\w-]*)+"  # module.name, file.ext, v1.2
    r"|(?=.{6})(?=[\w.-]*[A-Za-z]{2})(?=[\w.-]*\d)[A-Za-z0-9]+(?:[.-][A-Za-z0-9]+)+"  # gpt-4o-mini
    r"|[\w.+-]+@[\w-]+\.[\w.-]+"  # mail addresses
)

# The size of the cache, enough for a few chunks: a summary and its retention score need the same pieces.
_REMEMBERED = 1 << 13


@lru_cache(maxsize=_REMEMBERED)
def _names_of(piece: str) -> tuple[str, ...]:
    if "://" in piece:
        url = _URL.search(piece)
        return (url.group().rstrip(_EDGES),) if url and len(url.group()) <= LONGEST_NAME else ()
    found = (_name(part) for part in piece.split(":"))
    return tuple(name for name in found if name)


def names_of(piece: str) -> tuple[str, ...]:
    """Return the names in a piece of text, such as two in "tests/test_x.py::test_y"."""
    # A very long piece is not cached.
    return () if is_plain(piece) or len(piece) > _LONGEST_PIECE else _names_of(piece)


def is_plain(piece: str) -> bool:
    """Whether a piece is a plain word, and so no name; decided without a regex."""
    word = piece if piece.isalpha() else piece.rstrip(_PUNCTUATION)
    return word.isalpha() and (word.islower() or word[1:].islower())


def _name(piece: str) -> str:
    """Return the piece without its punctuation if it is a name, else ""."""
    if len(piece) < _SHORTEST_NAME:
        return ""
    if piece.startswith("--") and _FLAG.fullmatch(piece):
        return piece
    name = piece.rstrip(_EDGES)
    if _COLOUR.fullmatch(name):
        return ""
    # "/etc", "./run", "~/x" and ".env" keep a leading character that is punctuation elsewhere.
    if "/" not in name and not (name.startswith(".") and name[1:2].isalpha()):
        name = name.lstrip(_EDGES)
    name = name.removeprefix("self.").removeprefix("this.")
    if not _SHORTEST_NAME <= len(name) <= LONGEST_NAME or not any(map(str.isalpha, name)):
        return ""
    return name if _is_path(name) or _is_symbol(name) else ""


def _is_path(name: str) -> bool:
    if "/" not in name:
        return False
    segments = [segment for segment in name.split("/") if segment]
    if not segments or not all(map(_SEGMENT.fullmatch, segments)) or all(map(str.isdigit, segments)):
        return False
    # "and/or" and "input/output" are prose; a root, a dot, a digit or a third segment makes a path.
    return name[0] in "/.~@" or len(segments) > 2 or not all(map(str.isalpha, segments))


def _is_symbol(name: str) -> bool:
    if _DATE.match(name) or _MEASURE.fullmatch(name):
        return False
    if _HEX.fullmatch(name):
        return any(map(str.isdigit, name))
    return _SYMBOL.fullmatch(name) is not None
