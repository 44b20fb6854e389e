"""The text of a message that comes as parts: what grep searches and a plain-text model reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from conversations.types import NewPart, PartType


def flattened(parts: Iterable[NewPart]) -> str:
    """The parts' texts in order, one below the other; reasoning, images and bookkeeping say nothing here."""
    return "\n".join(text for text in map(_text_of, parts) if text)


def _text_of(part: NewPart) -> str:
    match part.part_type:
        case PartType.TEXT | PartType.RETRY:
            return part.text_content or ""
        case PartType.TOOL:
            return _tool_text(part)
        case PartType.PATCH:
            return part.text_content or f"[patch {' '.join(part.patch_files or ())}]"
        case PartType.FILE:
            return f"[file {part.file_name}]" if part.file_name else ""
        case PartType.SUBTASK:
            return part.subtask_prompt or part.subtask_desc or ""
        case _:
            return ""


def _tool_text(part: NewPart) -> str:
    """The call as `[tool_call NAME] {json}`, then what came back."""
    lines = []
    if part.tool_name and part.tool_output is None and part.tool_error is None or part.tool_input is not None:
        arguments = (
            part.tool_input if isinstance(part.tool_input, str) else json.dumps(part.tool_input, ensure_ascii=False)
        )
        lines.append(f"[tool_call {part.tool_name}] {arguments}")
    lines += [text for text in (part.tool_output, part.tool_error) if text]
    return "\n".join(lines)
