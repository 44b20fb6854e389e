"""Asks the explorer of a file's kind, and makes a short text of what it says. It never fails."""

from __future__ import annotations

from collections.abc import Callable

from conversations.content.lossless_values import storable
from conversations.files.exploration import apart, archives, documents, log_files, outlines, structured, tables
from conversations.files.exploration.bounds import MOST_CHARACTERS, Deadline, number
from conversations.files.exploration.glance import Seen
from conversations.files.exploration.kinds import FileKind, kind_of, lie_in

Explorer = Callable[[Seen, Deadline], list[str]]

_EXPLORERS: dict[FileKind, Explorer] = {
    FileKind.JSON: structured.explore_json,
    FileKind.JSON_LINES: structured.explore_json_lines,
    FileKind.YAML: structured.explore_yaml,
    FileKind.XML: structured.explore_xml,
    FileKind.CSV: tables.explore_table,
    FileKind.CODE: outlines.explore_code,
    FileKind.MARKDOWN: documents.explore_markdown,
    FileKind.HTML: documents.explore_html,
    FileKind.LOG: log_files.explore_log,
    FileKind.PDF: lambda seen, _: apart.ask("pdf", _whole(seen)),
    FileKind.IMAGE: lambda seen, _: apart.ask("image", _whole(seen)),
    FileKind.ZIP: archives.explore_zip,
    FileKind.TAR: archives.explore_tar,
    FileKind.GZIP: archives.explore_gzip,
}


def explore(seen: Seen, *, gist: documents.Gist | None = None) -> str:
    """Kind, size and, for a text, lines; then what its explorer says.

    `gist` gives back in so many tokens what a plain text says.
    """
    kind = FileKind.TEXT if seen.text is not None else FileKind.BINARY
    lines: list[str] = []
    try:
        kind = kind_of(seen)
        lie = lie_in(seen, kind)
        lines += [lie] if lie else []
        explorer = documents.text_explorer(gist) if kind is FileKind.TEXT else _EXPLORERS.get(kind)
        seen.file.seek(0)
        if explorer is not None and seen.byte_size:
            lines += explorer(seen, Deadline())
    except Exception as failure:
        # Whatever a file does to those who look into it, it is kept.
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
    """As much of the file as a parser in a process of its own is given."""
    return seen.head if seen.is_whole else seen.file.read(apart.MOST_INPUT_BYTES)
