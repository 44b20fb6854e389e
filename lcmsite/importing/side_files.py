"""Restore tool outputs that Claude Code keeps in files beside its transcript.

The transcript has this in place of such an output; only the file's name in the path is used:

    <persisted-output>
    Output too large (34.3KB). Full output saved to: .../SESSION/tool-results/CALL.txt

    Preview (first 2KB): ...
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from conversations.formats.anthropic import with_text
from conversations.types import NewMessage, NewPart

# A larger output is not read: the result keeps the placeholder.
MOST_BYTES = 16 * 1024**2
_NAMED = re.compile(r"<persisted-output>\n[^\n]* saved to: [^\n]*tool-results[/\\]([^/\\\n]+)\n")


def with_outputs(message: NewMessage, session: Path) -> NewMessage:
    """Return the message with its whole tool outputs; `session` is its folder."""
    return replace(message, parts=tuple(_with_output(part, session / "tool-results") for part in message.parts))


def _with_output(part: NewPart, folder: Path) -> NewPart:
    named = _NAMED.match(part.tool_output or "")
    if named is None:
        return part
    path = folder / named[1]
    try:
        # A link must not lead out of the session's folder.
        is_own = path.resolve().parent == folder.parent.resolve() / folder.name
        if is_own and path.is_file() and path.stat().st_size <= MOST_BYTES:
            return with_text(part, path.read_bytes().decode())
    except (OSError, ValueError):
        pass
    return part
