"""What can be said of a file without reading it: its kind, its size, and how it begins. Pure."""

from __future__ import annotations

import codecs
import mimetypes
from dataclasses import dataclass

HEAD_BYTES = 64 * 1024
HEAD_LINES = 20
LINE_CHARACTERS = 200


@dataclass
class Glance:
    """Looks at a file's bytes as they pass by."""

    byte_size: int = 0
    newlines: int = 0
    head: bytes = b""
    last: bytes = b""

    def add(self, chunk: bytes) -> None:
        self.byte_size += len(chunk)
        self.newlines += chunk.count(b"\n")
        if len(self.head) < HEAD_BYTES:
            self.head += chunk[: HEAD_BYTES - len(self.head)]
        self.last = chunk[-1:] or self.last

    def summary(self, *, file_name: str | None, mime_type: str | None) -> str:
        """A line of facts, and for a text its first lines."""
        text = _as_text(self.head)
        kind = mime_type or mimetypes.guess_type(file_name or "")[0]
        facts = [
            f"{'binary' if text is None else 'text'}{f' ({kind})' if kind else ''}",
            f"{self.byte_size:,} {'byte' if self.byte_size == 1 else 'bytes'}",
        ]
        if text is None:
            return ", ".join(facts)
        lines = self.newlines + (self.last not in (b"", b"\n"))
        facts.append(f"{lines:,} {'line' if lines == 1 else 'lines'}")
        shown = [_cut(line) for line in text.split("\n")[: min(lines, HEAD_LINES)]]
        return "\n".join([", ".join(facts), *shown, *(["…"] if len(shown) < lines else [])])


def _as_text(head: bytes) -> str | None:
    """The beginning as text; None for bytes that are none. The last character may have been cut in two."""
    if b"\x00" in head:
        return None
    try:
        return codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return None


def _cut(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS else f"{line[:LINE_CHARACTERS]} …"
