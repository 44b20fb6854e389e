"""A tool call in a message's flattened text, shown briefly: what was called on what, without the bodies it carried."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from compaction.summarizing.extractive.clean_text import clean, clip, one_line

_CALL = re.compile(r"\[tool_call ([^\]\n]{0,80})\] ?(.*)")

# Arguments that carry what is written, not what is asked: the text of files and edits.
_BODIES = frozenset(
    [
        "content",
        "contents",
        "file_text",
        "text",
        "new_text",
        "old_text",
        "new_string",
        "old_string",
        "new_str",
        "old_str",
        "insert_text",
        "body",
        "code",
        "patch",
        "diff",
        "edits",
        "changes",
        "data",
    ]
)
# One argument at this length already fills a line; what follows in it is detail.
_LONGEST_VALUE = 160
_LONGEST_CALL = 320


@dataclass(frozen=True, slots=True)
class Call:
    """A call as one short line, and what was left out of it."""

    text: str
    hidden: str


def read_call(line: str) -> Call | None:
    """The call that a line of flattened text holds, `[tool_call NAME] {json}`; None if it holds none."""
    if not line.startswith("[tool_call "):
        return None
    match = _CALL.fullmatch(line)
    if match is None:
        return None
    name, given = match.groups()
    try:
        arguments = json.loads(given)
    except (ValueError, RecursionError):
        arguments = given
    if not isinstance(arguments, dict):
        return Call(text=clip(f"{name}({one_line(given)})", _LONGEST_CALL), hidden=given)
    shown: list[str] = []
    hidden: list[str] = []
    # The first text says what is called on; its key would only cost tokens, and so do switches that are off.
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
    return Call(text=clip(f"{name}({', '.join(shown)})", _LONGEST_CALL), hidden="\n".join(hidden))


def _as_text(value: object) -> str:
    # JSON escapes can bring back what cleaning had removed, so the value is cleaned again.
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return clean(" ".join(value))
    return clean(json.dumps(value, ensure_ascii=False))
