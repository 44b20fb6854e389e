"""Write and check a message's references to files. Pure.

An entry is `[file_id, sha256, part_ordinal, field, start_at, length]`: the element of the file is at these characters
of the field (of the message itself if `part_ordinal` is null). If `start_at` is null, the field contains only the
file's id. The message's record_hash covers its entries. Any text may quote an element: only the positions that an entry
names are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from conversations.content.large_texts.cutting import CONTENT

FileEntry = list[Any]

NAMING = "file_url"
# The fields that may refer to a file: the content, a text of a part, or the URL of a FILE part.
FIELDS = (CONTENT, "text_content", "tool_output", "tool_error", NAMING)

_ELEMENT = re.compile(
    r"""<large_file id="(?P<file_id>[A-Za-z0-9_-]+)"(?: name=(?P<name>"[^"]*"|'[^']*'))?"""
    r""" bytes="(?P<byte_size>[0-9]{1,19})" sha256="(?P<sha256>[0-9a-f]{64})" trust="untrusted">"""
    r"""\n[^<]*\n</large_file>"""
)


def element(*, file_id: str, file_name: str | None, byte_size: int | None, sha256: str, summary: str) -> str:
    """Build the element that a model sees for a file: data, not instructions."""
    name = f" name={quoteattr(file_name)}" if file_name else ""
    return (
        f'<large_file id="{file_id}"{name} bytes="{byte_size}" '
        f'sha256="{sha256}" trust="untrusted">\n{escape(summary)}\n</large_file>'
    )


def in_order(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """Sort entries by part, field and position: the order that record_hash covers."""
    return sorted(entries, key=_place)


def _place(entry: FileEntry) -> tuple[Any, ...]:
    file_id, _, ordinal, field, start_at, _ = entry
    return (-1 if ordinal is None else ordinal, field, -1 if start_at is None else start_at, file_id)


def misplaced(
    entry: FileEntry, content: object, parts: Mapping[int, Mapping[str, Any]], *, byte_size: int | None = None
) -> str:
    """Describe what is wrong at an entry's position; an empty string if nothing is.

    At this position, the text must have the element of the file, with its hash, and with `byte_size` if that is given.
    `parts` has the values of the parts that came with the message, by ordinal.
    """
    file_id, sha256, ordinal, field, start_at, length = entry
    is_named = field == NAMING
    if (
        field not in FIELDS
        or (ordinal is None) != (field == CONTENT)
        or not (start_at is None) == (length is None) == is_named
    ):
        return f"{file_id} is needed in a place where no file can be"
    if ordinal is not None and ordinal not in parts:
        return f"{file_id} is needed by part {ordinal}, which the message did not come with"
    text = content if ordinal is None else parts[ordinal].get(field)
    if is_named:
        return "" if text == file_id else f"part {ordinal} does not name {file_id}"
    found = _ELEMENT.fullmatch(text, start_at, start_at + length) if isinstance(text, str) else None
    if found is None or found["file_id"] != file_id:
        return f"what stands for {file_id} is not in its place"
    if found["sha256"] != sha256 or byte_size not in (None, int(found["byte_size"])):
        return f"{file_id} is not the file that the message names: hash or size differ"
    return ""
