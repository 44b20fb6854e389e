"""The text of a message that comes as parts: what grep searches and a plain-text model reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable

from conversations.types import NewPart, PartType

# Characters of content times parts: a second's work.
MOST_COMPARED = 1_000_000_000
# Made once: `json.dumps` makes a new one for every call.
_as_json = json.JSONEncoder(ensure_ascii=False).encode


def flattened(parts: Iterable[NewPart]) -> str:
    """The parts' texts in order, one below the other; reasoning, images and bookkeeping say nothing here."""
    return "\n".join([text for part in parts for _, text in _texts_of(part)])


def searchable(content: str, parts: Iterable[NewPart]) -> str:
    """What is searched, counted and summarized of a message: its content, and what only its parts say."""
    return "\n".join(text for text in (content, said_beyond(content, parts)) if text)


def said_beyond(content: str, parts: Iterable[NewPart]) -> str:
    """What the parts say that the content does not: for a caller whose content is not the text of the parts.

    Where looking would take long, all of it: what is said twice costs room, what is missed is never found.
    """
    parts = tuple(parts)
    if len(content) * len(parts) > MOST_COMPARED:
        content = ""
    return "\n".join(
        text for part in parts for said, text in _texts_of(part) if said not in content and text not in content
    )


def reasoning_in(parts: Iterable[NewPart]) -> str:
    """The reasoning in parts: it costs tokens where it is shown, and no search finds it."""
    return "\n".join(part.text_content for part in parts if part.part_type is PartType.REASONING and part.text_content)


def _texts_of(part: NewPart) -> list[tuple[str, str]]:
    """Each text of a part, and the same as it is written in a flattened message."""
    texts: list[tuple[str | None, str | None]]
    match part.part_type:
        case PartType.TEXT | PartType.RETRY:
            texts = [(part.text_content, part.text_content)]
        case PartType.TOOL:
            texts = [_call(part), (part.tool_output, part.tool_output), (part.tool_error, part.tool_error)]
        case PartType.PATCH:
            files = " ".join(part.patch_files or ())
            texts = [(part.text_content, part.text_content)] if part.text_content else [(files, f"[patch {files}]")]
        case PartType.FILE:
            texts = [(part.file_name, f"[file {part.file_name}]")]
        case PartType.SUBTASK:
            text = part.subtask_prompt or part.subtask_desc
            texts = [(text, text)]
        case _:
            texts = []
    return [(said, text) for said, text in texts if said and text]


def _call(part: NewPart) -> tuple[str | None, str | None]:
    """A tool call as `[tool_call NAME] {json}`; none where the part is only what came back."""
    if part.tool_input is None and (not part.tool_name or part.tool_output is not None or part.tool_error is not None):
        return None, None
    arguments = part.tool_input if isinstance(part.tool_input, str) else _as_json(part.tool_input)
    text = f"[tool_call {part.tool_name}] {arguments}"
    # An empty call says no more than its name.
    return (arguments if part.tool_input else text), text
