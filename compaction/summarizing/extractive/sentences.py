"""Cut a message into units that a summary keeps or drops whole."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import NamedTuple

from compaction.summarizing.extractive.clean_text import clean, clip, one_line
from compaction.summarizing.extractive.terms import CJK

# In characters, about four lines. Longer text (minified code, JSON, prose without full stops) is cut at its commas, or
# at any character, so that a summary can keep a part of it.
LONGEST_UNIT = 320

_FENCE = re.compile(r"\s{0,9}(?:```|~~~)")
# These are removed from the start of a line: a list mark in prose, a line number in a printed file.
_LIST_MARK = re.compile(r"(?:(?:[-*•+]|#{1,6}|>|\d{1,2}[.)])\s)?")
_LINE_NUMBER = re.compile(r"(?:\s{0,9}\d{1,9}(?:→|\t))?")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")

# ".", "!" and "?" end a sentence only before a blank; their CJK equivalents need none. A bracketed remark ("[shared
# image: a dog]") is a unit of its own.
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]*_]*\s+|[。！？][”’」』）]*(?=.)|\s(?=\[[^\]]{1,40}: )")
_ABBREVIATION = re.compile(r"\b(?:[A-Za-z]|Mr|Mrs|Ms|Dr|St|Prof|vs|etc|No|Jr|Sr|approx|e\.g|i\.e)\.$")
_CLAUSE_END = re.compile(rf"(?<=[,;:])\s+|(?<=[,;])(?=[\"{{\[\\])|(?<=[，、；：])(?=[{CJK}])|\s+[-–—]\s+")

_TOOL_CALL = re.compile(r"\[tool_call ([^\]\n]{0,80})\] ?(.*)")

# Arguments of tool calls that contain the text of files and edits.
_BODIES = frozenset(
    {"content", "contents", "file_text", "text", "new_text", "old_text", "new_string", "old_string", "new_str"}
    | {"old_str", "insert_text", "body", "code", "patch", "diff", "edits", "changes", "data"}
)
# Maximum number of characters that are shown of one argument, and of a call.
_LONGEST_VALUE = 160
_LONGEST_CALL = 320


class Unit(NamedTuple):
    """A piece of text that a summary keeps or drops whole, such as a sentence.

    `hidden` is text that is too long to show, such as the body of an edit: it is only searched for names. This is a
    NamedTuple, not a frozen dataclass, because a chunk has thousands of units.
    """

    text: str
    is_prose: bool
    is_call: bool = False
    hidden: str = ""


def units_of(text: str, *, prose: bool) -> Iterator[Unit]:
    """Yield the units of a cleaned text.

    With `prose`, lines consist of sentences. Otherwise each line is a unit, as in tool output.
    """
    for line, is_prose in _paragraphs(text) if prose else ((line, False) for line in text.split("\n")):
        call = _call_in(line) if line.startswith("[") else None
        if call is not None:
            yield call
        elif is_prose:
            line = line.strip()
            for sentence in sentences(_LIST_MARK.sub("", line, count=1)):
                yield from _pieces(sentence, is_prose=True)
        else:
            yield from _pieces(_LINE_NUMBER.sub("", line, count=1), is_prose=False)


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of one paragraph."""
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if _ABBREVIATION.search(text[max(start, end.start() - 8) : end.start() + 1]):
            continue
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]


def _paragraphs(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a text, and whether each is prose; fenced lines are not.

    A line of prose that begins in lower case is joined to the one before.
    """
    held, fenced = "", False
    for line in text.split("\n"):
        fence = _FENCE.match(line)
        if not fence and not fenced and line[:1].islower() and held[-1:].isalpha() and len(held) < LONGEST_UNIT:
            held = f"{held} {line}"
            continue
        if held:
            yield held, True
            held = ""
        if fence:
            fenced = not fenced
        elif fenced:
            yield line, False
        else:
            held = line
    if held:
        yield held, True


def _pieces(text: str, *, is_prose: bool) -> Iterator[Unit]:
    """Yield the text as units of limited length; none without a letter or digit."""
    text = one_line(text)
    if len(text) <= LONGEST_UNIT:
        if text[:1].isalnum() or _LETTER_OR_DIGIT.search(text):
            yield Unit(text, is_prose)
        return
    held = ""
    for clause in _clauses(text, longest=LONGEST_UNIT // 2):
        if held and len(held) + len(clause) > LONGEST_UNIT:
            yield from _pieces(held, is_prose=is_prose)
            held = ""
        held += clause
    yield from _pieces(held, is_prose=is_prose)


def _clauses(text: str, *, longest: int) -> Iterator[str]:
    start = 0
    for cut in [*(end.end() for end in _CLAUSE_END.finditer(text)), len(text)]:
        while cut - start > longest:
            blank = text.rfind(" ", start + longest // 2, start + longest)
            middle = start + longest if blank < 0 else blank + 1
            yield text[start:middle]
            start = middle
        yield text[start:cut]
        start = cut


def _call_in(line: str) -> Unit | None:
    """Parse a line `[tool_call NAME] {json}` into a short unit; None for other lines."""
    match = _TOOL_CALL.fullmatch(line)
    if match is None:
        return None
    name, given = match.groups()
    try:
        arguments = json.loads(given)
    except (ValueError, RecursionError):
        arguments = given
    if not isinstance(arguments, dict):
        return _call(name, one_line(given), hidden=given)
    shown: list[str] = []
    hidden: list[str] = []
    # The first string is the main argument: it is shown without its key. Falsy arguments are left out.
    main = next((key for key, value in arguments.items() if value and isinstance(value, str)), None)
    for key, value in arguments.items():
        if not value:
            continue
        text = _as_text(value)
        brief = "" if key in _BODIES and "\n" in text else clip(one_line(text), _LONGEST_VALUE)
        if len(brief) < len(text):
            hidden.append(text)
        if brief:
            shown.insert(0 if key == main else len(shown), brief if key == main else f"{one_line(key)}={brief}")
    return _call(name, ", ".join(shown), hidden="\n".join(hidden))


def _call(name: str, shown: str, *, hidden: str) -> Unit:
    return Unit(clip(f"{name}({shown})", _LONGEST_CALL), is_prose=False, is_call=True, hidden=hidden)


def _as_text(value: object) -> str:
    # Decoding JSON escapes can produce what cleaning had removed, so the value is cleaned again.
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return clean(" ".join(value))
    return clean(json.dumps(value, ensure_ascii=False))
