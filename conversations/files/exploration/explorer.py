"""Describe a file in a few lines: its kind, size and structure; never fails.

The kind is detected by the content, then by the name. If the two contradict each other, the text says so. Time and
memory are limited for any file.
"""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import PurePosixPath

from conversations.content.lossless_values import storable
from conversations.files.exploration import archives, outlines, plain_text, structured, subprocess_parsers, tables
from conversations.files.exploration.glance import MOST_CHARACTERS, Seen, cut
from conversations.files.exploration.plain_text import looks_like_log
from conversations.humanize import counted


class FileKind(StrEnum):
    JSON = "JSON"
    JSON_LINES = "JSON Lines"
    YAML = "YAML"
    XML = "XML"
    CSV = "table"
    CODE = "code"
    MARKDOWN = "Markdown"
    HTML = "HTML"
    LOG = "log"
    PDF = "PDF"
    IMAGE = "image"
    ZIP = "zip archive"
    TAR = "tar archive"
    GZIP = "gzip"
    PROGRAM = "program"
    TEXT = "text"
    BINARY = "binary"


# Kinds that the first bytes identify.
_SIGNATURES: dict[FileKind, tuple[bytes, ...]] = {
    FileKind.PDF: (b"%PDF-",),
    FileKind.IMAGE: (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\x00", b"MM\x00*"),
    FileKind.ZIP: (b"PK\x03\x04", b"PK\x05\x06"),
    FileKind.GZIP: (b"\x1f\x8b",),
    FileKind.PROGRAM: (b"\x7fELF", b"MZ\x90"),
}
_TAR_MARK = slice(257, 262)

# The extensions and the MIME types that claim a kind.
_LABELS: dict[FileKind, str] = {
    FileKind.JSON: "json geojson ipynb application/json",
    FileKind.JSON_LINES: "jsonl ndjson",
    FileKind.YAML: "yaml yml application/yaml",
    FileKind.XML: "xml svg rss xsd text/xml application/xml",
    FileKind.CSV: "csv tsv text/csv",
    FileKind.MARKDOWN: "md markdown text/markdown",
    FileKind.HTML: "html htm xhtml text/html",
    FileKind.LOG: "log",
    FileKind.PDF: "pdf application/pdf",
    FileKind.IMAGE: "png jpg jpeg gif webp bmp tif tiff",
    FileKind.ZIP: "zip jar whl docx xlsx pptx odt ods epub apk application/zip",
    FileKind.TAR: "tar application/x-tar",
    FileKind.GZIP: "gz tgz application/gzip",
    FileKind.PROGRAM: "exe dll so",
    FileKind.TEXT: "txt text",
    FileKind.CODE: "py js mjs ts tsx jsx java kt go rs c h cc cpp hpp cs rb php swift scala sh bash sql lua pl r jl ex "
    "exs erl hs clj css scss vue dart zig toml ini",
}
_CLAIMS = {label: kind for kind, labels in _LABELS.items() for label in labels.split()}
# Kinds that any text may have: only the name decides between them.
_ANY_TEXT = frozenset({FileKind.CODE, FileKind.MARKDOWN, FileKind.LOG, FileKind.TEXT})

# MIME types that say nothing about the content.
_SAYS_NOTHING = frozenset({"", "application/octet-stream", "binary/octet-stream"})
# Python's table of extensions, not the operating system's: it is the same on every machine.
_BY_NAME = mimetypes.MimeTypes()
_OF_KIND = {
    FileKind.JSON: "application/json",
    FileKind.JSON_LINES: "application/x-ndjson",
    FileKind.YAML: "application/yaml",
    FileKind.XML: "application/xml",
    FileKind.CSV: "text/csv",
    FileKind.MARKDOWN: "text/markdown",
    FileKind.HTML: "text/html",
    FileKind.PDF: "application/pdf",
    FileKind.ZIP: "application/zip",
    FileKind.TAR: "application/x-tar",
    FileKind.GZIP: "application/gzip",
    **dict.fromkeys((FileKind.CODE, FileKind.LOG, FileKind.TEXT), "text/plain"),
}
_OF_IMAGE = {b"\x89PNG": "png", b"\xff\xd8": "jpeg", b"GIF8": "gif", b"II*": "tiff", b"MM": "tiff", b"RIFF": "webp"}
_MEDIA = ("audio/", "video/", "font/", "image/")

_HTML = re.compile(r"\s*(<!doctype html|<html|<head|<body)", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_SHEBANG = re.compile(r"#!\S*(python|bash|sh|node|perl|ruby)\b")


def claimed_kind(seen: Seen) -> FileKind | None:
    """Return the kind that the file name, or else the MIME type, says."""
    extension = PurePosixPath(seen.file_name.replace("\\", "/")).suffix.lower().removeprefix(".")
    mime_type = seen.mime_type.partition(";")[0].strip().lower()
    by_type = FileKind.IMAGE if mime_type.startswith("image/") else _CLAIMS.get(mime_type)
    return _CLAIMS.get(extension) or (by_type if "/" in mime_type else None)


def kind_of(seen: Seen) -> FileKind:
    for kind, signatures in _SIGNATURES.items():
        if seen.head.startswith(signatures):
            return kind
    if seen.head[:4] == b"RIFF" and seen.head[8:12] == b"WEBP":
        return FileKind.IMAGE
    if seen.head[_TAR_MARK] == b"ustar":
        return FileKind.TAR
    if seen.text is None:
        return FileKind.BINARY
    return _kind_of_text(seen, seen.text, claimed_kind(seen))


def _kind_of_text(seen: Seen, text: str, claimed: FileKind | None) -> FileKind:
    if _HTML.match(text[:1000]):
        return FileKind.HTML
    if text.lstrip()[:5] == "<?xml":
        return FileKind.XML
    if structured.is_json_lines(text, is_whole=seen.is_whole):
        return FileKind.JSON_LINES
    if structured.is_json(text, is_whole=seen.is_whole):
        return FileKind.JSON
    if claimed in _ANY_TEXT and claimed is not FileKind.TEXT:
        return claimed
    if claimed is FileKind.HTML or (claimed is FileKind.XML and text.lstrip().startswith("<")):
        return claimed
    if tables.delimiter_of(text, is_named_so=claimed is FileKind.CSV) is not None:
        return FileKind.LOG if looks_like_log(text) else FileKind.CSV
    if (claimed is FileKind.YAML or text.startswith(("---\n", "%YAML"))) and structured.is_yaml(text):
        return FileKind.YAML
    if looks_like_log(text):
        return FileKind.LOG
    if _SHEBANG.match(text[:200]):
        return FileKind.CODE
    return FileKind.MARKDOWN if len(_HEADING.findall(text[:20_000])) >= 2 else FileKind.TEXT


def mismatch_of(seen: Seen, kind: FileKind) -> str | None:
    """Return a sentence if the name or the MIME type contradicts the content."""
    claimed = claimed_kind(seen)
    if claimed is None or claimed is kind or not seen.byte_size:
        return None
    if {claimed, kind} <= {FileKind.GZIP, FileKind.TAR} or {claimed, kind} <= {FileKind.HTML, FileKind.XML}:
        return None
    if claimed in _ANY_TEXT and seen.text is not None:
        return None
    return (
        f"It is labelled {claimed}, but its content is {'not' if kind in (FileKind.TEXT, FileKind.BINARY) else kind}."
    )


def mime_type_of(seen: Seen) -> str | None:
    """Return the given MIME type, or else one guessed from content and name.

    A given type that says nothing, such as application/octet-stream, is replaced if a better type is found.
    """
    given = seen.mime_type or None
    if seen.mime_type.partition(";")[0].strip().lower() not in _SAYS_NOTHING or not seen.byte_size:
        return given
    try:
        kind = kind_of(seen)
    except Exception:
        # A failure here must not prevent the storing of the file.
        return given
    by_name, encoding = _BY_NAME.guess_type(seen.file_name.rpartition("/")[2])
    is_media = by_name is not None and by_name.startswith(_MEDIA)
    match kind:
        case FileKind.IMAGE:
            return next(f"image/{name}" for begin, name in _OF_IMAGE.items() if seen.head.startswith(begin))
        case FileKind.BINARY | FileKind.PROGRAM:
            return by_name if is_media and kind is FileKind.BINARY else given
    # The name decides if the content does not contradict it. `.ts` is code here, but a video in Python's table.
    believed = claimed_kind(seen) is kind and encoding is None and not (is_media and kind is not FileKind.XML)
    return (by_name if believed else None) or _OF_KIND[kind]


_EXPLORERS: dict[FileKind, Callable[[Seen], list[str]]] = {
    FileKind.JSON: structured.explore_json,
    FileKind.JSON_LINES: structured.explore_json_lines,
    FileKind.YAML: structured.explore_yaml,
    FileKind.XML: structured.explore_xml,
    FileKind.CSV: tables.explore_table,
    FileKind.CODE: outlines.explore_code,
    FileKind.MARKDOWN: plain_text.explore_markdown,
    FileKind.HTML: lambda seen: subprocess_parsers.run_parser("html", seen.head) or ["no title and no headings"],
    FileKind.LOG: plain_text.explore_log,
    FileKind.PDF: lambda seen: subprocess_parsers.run_parser("pdf", _whole(seen)),
    FileKind.IMAGE: lambda seen: subprocess_parsers.run_parser("image", _whole(seen)),
    FileKind.ZIP: archives.explore_zip,
    FileKind.TAR: archives.explore_tar,
    FileKind.GZIP: archives.explore_gzip,
}


def explore(seen: Seen, *, gist: plain_text.Gist | None = None) -> str:
    """Describe a file; `gist(text, tokens)` summarizes plain text if given."""
    kind = FileKind.TEXT if seen.text is not None else FileKind.BINARY
    lines: list[str] = []
    try:
        kind = kind_of(seen)
        mismatch = mismatch_of(seen, kind)
        lines += [mismatch] if mismatch else []
        seen.file.seek(0)
        if seen.byte_size and kind is FileKind.TEXT:
            lines += plain_text.explore_text(seen, gist)
        elif seen.byte_size and kind in _EXPLORERS:
            lines += _EXPLORERS[kind](seen)
    except subprocess_parsers.NotReadable as failure:
        lines.append(f"It could not be explored: {_words(failure)}.")
    except Exception as failure:
        # A failure of an explorer must not prevent the storing of the file.
        lines.append(f"It could not be explored: {', '.join(filter(None, (type(failure).__name__, _words(failure))))}.")
    facts = [
        kind.value,
        counted(seen.byte_size, "byte"),
        *([counted(seen.lines, "line")] if seen.text is not None else []),
    ]
    return storable(cut("\n".join([", ".join(facts), *lines]).replace("\r", ""), MOST_CHARACTERS))


def _words(failure: Exception) -> str:
    # Addresses of objects are removed, because they differ each time.
    return " ".join(re.sub(r"<[\w.]+ object at 0x[0-9a-f]+>", "it", str(failure)).split())[:200].rstrip(".")


def _whole(seen: Seen) -> bytes:
    """Return the file, or as much of it as a parser in a subprocess may read."""
    return seen.head if seen.is_whole else seen.file.read(subprocess_parsers.MOST_INPUT_BYTES)
