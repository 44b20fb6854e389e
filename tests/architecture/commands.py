"""Commands and links, as they stand in documents."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.S | re.M)
_INDENTED = re.compile(r"(?:^(?: {4}.*)?\n)+", re.M)
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)\s]*)\)")
_COMMENT = re.compile(r"(?:^|\s)#\s.*$", re.M)
_ENDS = ";|&()\n"
# What may stand before a program's name and runs it.
_RUNNERS = {"$", "exec", "--", "sudo"}


def code_blocks(text: str) -> list[str]:
    """What stands apart as code, fenced or indented."""
    fenced = [match[2] for match in _FENCED.finditer(text)]
    indented = [re.sub(r"^ {4}", "", block, flags=re.M) for block in _INDENTED.findall(_FENCED.sub("", text))]
    return [*fenced, *(block for block in indented if block.strip())]


def inline_code(text: str) -> list[str]:
    return _INLINE.findall(_FENCED.sub("", text))


def links(text: str) -> list[str]:
    """The targets of links and pictures within the project: a path, an anchor, or both."""
    return _LINK.findall(_INLINE.sub("", _FENCED.sub("", text)))


def anchors(document: Path) -> set[str]:
    """What the headings of a document can be reached by."""
    headings = re.findall(r"^#+ (.+)$", _FENCED.sub("", document.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def calls(block: str, program: str) -> Iterator[list[str]]:
    """The words behind each call of a program in a piece of shell."""
    if not re.search(rf"(?:^|[\s/(]){program}\b", block, re.M):
        return
    reader = shlex.shlex(_COMMENT.sub("", block), posix=True, punctuation_chars=_ENDS)
    reader.whitespace, reader.whitespace_split, reader.commenters = " \t", True, ""
    call: list[str] | None = None
    before = "\n"
    for word in reader:
        if set(word) <= set(_ENDS):
            if call is not None:
                yield call
            call = None
        elif call is not None:
            call.append(word)
        elif word.rpartition("/")[2] == program and (set(before[-1]) <= set(_ENDS) or before in _RUNNERS):
            call = []
        before = word
    if call is not None:
        yield call
