"""Read conversations of Claude.ai from `conversations.json` of its export. Pure.

    {"uuid", "name", "chat_messages": [{"uuid", "parent_message_uuid", "sender", "text", "content": [...], ...}]}

If messages name their parents, they form a tree: an edited question or another answer is a branch.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import HostSession, Node, in_branches, name_of, text_of, without
from conversations.formats.foreign_rows import Fields, a_call, a_result
from conversations.types import NewMessage, NewPart, PartType, Role

NOTE = "claude_ai"
_ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}


def is_document(value: Any) -> bool:
    """Whether this is one conversation of such an export."""
    return isinstance(value, Mapping) and isinstance(value.get("chat_messages"), list) and "uuid" in value


def sessions_of(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the conversation; ValueError names what is wrong in it."""
    nodes: list[Node] = []
    for fields in Fields(document).objects("chat_messages"):
        before = nodes[-1].id if nodes else ""
        parent = text_of(fields.values.get("parent_message_uuid")) or before
        nodes.append(Node(fields.required_text("uuid"), parent, _message(fields), fields.values))
    head = text_of(document.get("current_leaf_message_uuid")) or (nodes[-1].id if nodes else "")
    messages, head = in_branches(nodes, head)
    yield HostSession(
        session_id=text_of(document["uuid"]) or name_of(path),
        messages=messages,
        title=text_of(document.get("name")),
        head=head,
    )


def _message(fields: Fields) -> NewMessage:
    row = fields.values
    parts = tuple(part for block in fields.objects("content") for part in _of_block(block))
    if not parts and (text := fields.text("text")):
        parts = (NewPart(PartType.TEXT, text_content=text),)
    parts += tuple(_file(each) for each in (*fields.objects("attachments"), *fields.objects("files")))
    return NewMessage(
        role=fields.choice("sender", _ROLES),
        content=None if parts else "",
        parts=parts,
        created_at=fields.moment("created_at"),
        metadata={NOTE: without(row, "content", "text", "attachments", "sender", "created_at")},
    )


def _of_block(block: Fields) -> Iterator[NewPart]:
    row = block.values
    match block.text("type"):
        case "text":
            yield NewPart(PartType.TEXT, text_content=block.text("text"), metadata=_rest(row, "type", "text"))
        case "thinking":
            rest = _rest(row, "type", "thinking")
            yield NewPart(PartType.REASONING, text_content=block.text("thinking"), metadata=rest)
        case "tool_use":
            rest = _rest(row, "type", "id", "name", "input")
            yield a_call(block.text("id"), block.text("name"), row.get("input"), metadata=rest)
        case "tool_result":
            content = row.get("content")
            texts = [
                piece["text"]
                if isinstance(piece, Mapping) and isinstance(piece.get("text"), str)
                else json.dumps(piece)
                for piece in (content if isinstance(content, list) else [])
            ]
            text = content if isinstance(content, str) else "\n".join(texts)
            yield a_result(
                text, call_id=block.text("tool_use_id"), name=block.text("name"), is_error=row.get("is_error") is True
            )
        case _:
            yield NewPart(PartType.TEXT, text_content=json.dumps(row, ensure_ascii=False))


def _file(fields: Fields) -> NewPart:
    """Read an attachment with its extracted text, or a named file."""
    return NewPart(
        PartType.FILE,
        text_content=fields.text("extracted_content"),
        file_name=fields.text("file_name"),
        file_mime=fields.text("file_type"),
        metadata=_rest(fields.values, "file_name", "extracted_content", "file_type"),
    )


def _rest(row: Mapping[str, Any], *known: str) -> dict[str, Any] | None:
    """Return the metadata with the keys that have no column, if there are any."""
    rest = without(row, *known)
    return {NOTE: rest} if rest else None
