"""Read the outputs that Claude Code keeps in files beside its transcript.

    <persisted-output>
    Output too large (34.3KB). Full output saved to: .../SESSION/tool-results/CALL.txt

    Preview (first 2KB): ...

Of the path, only the name of the file counts.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from conversations.formats.anthropic import with_text
from conversations.types import NewMessage, NewPart

# Of larger ones, the result keeps the name alone.
MOST_BYTES = 16 * 1024**2
_NAMED = re.compile(r"<persisted-output>\n[^\n]* saved to: [^\n]*tool-results[/\\]([^/\\\n]+)\n")


def with_outputs(message: NewMessage, session: Path) -> NewMessage:
    """Return the message with all of its results; `session` is the session's folder."""
    return replace(message, parts=tuple(_with_output(part, session / "tool-results") for part in message.parts))


def _with_output(part: NewPart, folder: Path) -> NewPart:
    named = _NAMED.match(part.tool_output or "")
    if named is None:
        return part
    path = folder / named[1]
    try:
        # Nothing leads out of the session's folder.
        is_own = path.resolve().parent == folder.parent.resolve() / folder.name
        if is_own and path.is_file() and path.stat().st_size <= MOST_BYTES:
            return with_text(part, path.read_bytes().decode())
    except (OSError, ValueError):
        pass
    return part
