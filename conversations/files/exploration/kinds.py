"""Detect the kind of a file: by content, then by name.

And whether both agree. Pure.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import PurePosixPath

from conversations.files.exploration import structured, tables
from conversations.files.exploration.glance import Seen
from conversations.files.exploration.plain_text import looks_like_log


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

_EXTENSIONS: dict[FileKind, str] = {
    FileKind.JSON: "json geojson ipynb",
    FileKind.JSON_LINES: "jsonl ndjson",
    FileKind.YAML: "yaml yml",
    FileKind.XML: "xml svg rss xsd",
    FileKind.CSV: "csv tsv",
    FileKind.MARKDOWN: "md markdown",
    FileKind.HTML: "html htm xhtml",
    FileKind.LOG: "log",
    FileKind.PDF: "pdf",
    FileKind.IMAGE: "png jpg jpeg gif webp bmp tif tiff",
    FileKind.ZIP: "zip jar whl docx xlsx pptx odt ods epub apk",
    FileKind.TAR: "tar",
    FileKind.GZIP: "gz tgz",
    FileKind.PROGRAM: "exe dll so",
    FileKind.TEXT: "txt text",
    FileKind.CODE: "py js mjs ts tsx jsx java kt go rs c h cc cpp hpp cs rb php swift scala sh bash sql lua pl r jl ex "
    "exs erl hs clj css scss vue dart zig toml ini",
}
_CLAIMS = {extension: kind for kind, extensions in _EXTENSIONS.items() for extension in extensions.split()}
_MIME_CLAIMS: dict[str, FileKind] = {
    "application/json": FileKind.JSON,
    "application/pdf": FileKind.PDF,
    "application/zip": FileKind.ZIP,
    "application/gzip": FileKind.GZIP,
    "application/x-tar": FileKind.TAR,
    "application/yaml": FileKind.YAML,
    "text/csv": FileKind.CSV,
    "text/html": FileKind.HTML,
    "text/markdown": FileKind.MARKDOWN,
    "text/xml": FileKind.XML,
    "application/xml": FileKind.XML,
}
# Kinds that any text may have: only the name decides among these.
_ANY_TEXT = frozenset({FileKind.CODE, FileKind.MARKDOWN, FileKind.LOG, FileKind.TEXT})

_HTML = re.compile(r"\s*(<!doctype html|<html|<head|<body)", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,6} \S", re.MULTILINE)
_SHEBANG = re.compile(r"#!\S*(python|bash|sh|node|perl|ruby)\b")


def extension_of(file_name: str) -> str:
    """Return the extension of a file name, without its path."""
    return PurePosixPath(file_name.replace("\\", "/")).suffix.lower().removeprefix(".")


def claimed_kind(seen: Seen) -> FileKind | None:
    """Return the kind by file name or, if unknown, by MIME type."""
    by_name = _CLAIMS.get(extension_of(seen.file_name))
    if by_name is not None:
        return by_name
    mime_type = seen.mime_type.partition(";")[0].strip().lower()
    return FileKind.IMAGE if mime_type.startswith("image/") else _MIME_CLAIMS.get(mime_type)


def kind_of(seen: Seen) -> FileKind:
    """Return the kind of the file."""
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
    if claimed is FileKind.TEXT and seen.text is not None:
        return None
    if {claimed, kind} <= {FileKind.GZIP, FileKind.TAR} or {claimed, kind} <= {FileKind.HTML, FileKind.XML}:
        return None
    if claimed in _ANY_TEXT and seen.text is not None:
        return None
    return f"It is labelled {claimed}, but its content is {'not' if kind in _VAGUE else kind}."


# The kinds of files without any recognized format.
_VAGUE = frozenset({FileKind.TEXT, FileKind.BINARY})
