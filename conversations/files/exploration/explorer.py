"""Describe a file with the explorer of its kind, in a short text; it never fails."""

from __future__ import annotations

from collections.abc import Callable

from conversations.content.lossless_values import storable
from conversations.files.exploration import apart, archives, outlines, plain_text, structured, tables
from conversations.files.exploration.glance import MOST_CHARACTERS, Deadline, Seen, number
from conversations.files.exploration.kinds import FileKind, kind_of, mismatch_of

Explorer = Callable[[Seen, Deadline], list[str]]

_EXPLORERS: dict[FileKind, Explorer] = {
    FileKind.JSON: structured.explore_json,
    FileKind.JSON_LINES: structured.explore_json_lines,
    FileKind.YAML: structured.explore_yaml,
    FileKind.XML: structured.explore_xml,
    FileKind.CSV: tables.explore_table,
    FileKind.CODE: outlines.explore_code,
    FileKind.MARKDOWN: plain_text.explore_markdown,
    FileKind.HTML: plain_text.explore_html,
    FileKind.LOG: plain_text.explore_log,
    FileKind.PDF: lambda seen, _: apart.ask("pdf", _whole(seen)),
    FileKind.IMAGE: lambda seen, _: apart.ask("image", _whole(seen)),
    FileKind.ZIP: archives.explore_zip,
    FileKind.TAR: archives.explore_tar,
    FileKind.GZIP: archives.explore_gzip,
}


def explore(seen: Seen, *, gist: plain_text.Gist | None = None) -> str:
    """Describe a file; `gist` summarizes a plain text in a number of tokens."""
    kind = FileKind.TEXT if seen.text is not None else FileKind.BINARY
    lines: list[str] = []
    try:
        kind = kind_of(seen)
        mismatch = mismatch_of(seen, kind)
        lines += [mismatch] if mismatch else []
        explorer = plain_text.text_explorer(gist) if kind is FileKind.TEXT else _EXPLORERS.get(kind)
        seen.file.seek(0)
        if explorer is not None and seen.byte_size:
            lines += explorer(seen, Deadline())
    except Exception as failure:
        # A file is stored whatever its explorer does.
        lines.append(f"It could not be explored: {_reason(failure)}.")
    return storable(_within("\n".join([_facts(seen, kind), *lines]).replace("\r", "")))


def _facts(seen: Seen, kind: FileKind) -> str:
    facts = [kind.value, number(seen.byte_size, "byte")]
    if seen.text is not None:
        facts.append(number(seen.lines, "line"))
    return ", ".join(facts)


def _reason(failure: Exception) -> str:
    words = " ".join(str(failure).split())[:200].rstrip(".")
    return (
        words if isinstance(failure, apart.NotReadable) else f"{type(failure).__name__}{f', {words}' if words else ''}"
    )


def _within(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"


def _whole(seen: Seen) -> bytes:
    """Return as much of the file as a parser in a subprocess gets."""
    return seen.head if seen.is_whole else seen.file.read(apart.MOST_INPUT_BYTES)
