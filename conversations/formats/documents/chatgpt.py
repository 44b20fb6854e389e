"""Read conversations of ChatGPT from `conversations.json` of its export. Pure.

    {"id", "title", "create_time", "mapping": {id: {"parent", "children", "message"}}, "current_node"}

Each conversation is a tree of messages: an edited question or another answer is a branch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import (
    HostSession,
    Node,
    from_seconds,
    in_branches,
    name_of,
    object_of,
    text_of,
    without,
)
from conversations.formats.foreign_rows import Fields, a_call, a_result
from conversations.types import NewMessage, NewPart, PartType, Role

NOTE = "chatgpt"
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT, "system": Role.SYSTEM, "tool": Role.TOOL}
# An assistant's message to any other recipient is a call of the tool with that name.
_EVERYBODY = ("", "all")


def is_document(value: Any) -> bool:
    """Whether this is one conversation of such an export."""
    return isinstance(value, Mapping) and isinstance(value.get("mapping"), Mapping) and "current_node" in value


def sessions_of(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the conversation; ValueError names what is wrong in it."""
    passed_over: Counter[str] = Counter()
    nodes: list[Node] = []
    for id, value in document["mapping"].items():
        node = object_of(value, f"mapping.{id}")
        row = node.get("message")
        message = None if row is None else _message(object_of(row, f"mapping.{id}.message"), f"mapping.{id}.message.")
        if message is None and row is not None:
            passed_over["empty"] += 1
        nodes.append(Node(id, text_of(node.get("parent")), message, row))
    messages, head = in_branches(nodes, text_of(document.get("current_node")))
    yield HostSession(
        session_id=text_of(document.get("conversation_id")) or text_of(document.get("id")) or name_of(path),
        messages=messages,
        title=text_of(document.get("title")),
        head=head,
        passed_over=passed_over,
    )


def _message(row: Mapping[str, Any], where: str) -> NewMessage | None:
    """Read a message; None if it has nothing to show."""
    author = Fields(row, where).inner("author")
    role = author.choice("role", _ROLES)
    content = Fields(row, where).inner("content")
    parts = tuple(_parts(content, role, row))
    if not parts:
        return None
    return NewMessage(
        role=role,
        parts=parts,
        author=author.text("name") or None,
        created_at=from_seconds(row.get("create_time")),
        metadata={NOTE: without(row, "create_time", "content") | {"content": without(content.values, "parts", "text")}},
    )


def _parts(content: Fields, role: Role, row: Mapping[str, Any]) -> Iterator[NewPart]:
    recipient, name = text_of(row.get("recipient")), content.text("content_type")
    if name in ("thoughts", "reasoning_recap"):
        for thought in content.objects("thoughts"):
            lines = filter(None, (thought.text("summary"), thought.text("content")))
            yield NewPart(PartType.REASONING, text_content="\n".join(lines))
        if text := content.text("content"):
            yield NewPart(PartType.REASONING, text_content=text)
        return
    pieces = [content.values.get("text") or content.values.get("result"), *(content.read("parts", list) or ())]
    texts = [piece for piece in pieces if isinstance(piece, str) and piece]
    if role is Role.TOOL and texts:
        yield a_result("\n".join(texts), call_id=None, name=text_of(object_of(row["author"], "author").get("name")))
    elif role is Role.ASSISTANT and recipient not in _EVERYBODY and texts:
        yield a_call(None, recipient, "\n".join(texts))
    else:
        yield from (NewPart(PartType.TEXT, text_content=text) for text in texts)
    for piece in pieces:
        if isinstance(piece, Mapping):
            yield _attachment(piece)
    if not any(pieces) and name not in (None, "text", "multimodal_text", "code"):
        shown = without(content.values, "content_type")
        if any(shown.values()):
            yield NewPart(PartType.TEXT, text_content=json.dumps(shown, ensure_ascii=False))


def _attachment(piece: Mapping[str, Any]) -> NewPart:
    pointer, kind = text_of(piece.get("asset_pointer")), text_of(piece.get("content_type"))
    mime = "image/*" if kind.startswith("image") else "audio/*" if kind.startswith("audio") else None
    caption = text_of(piece.get("text")) or None
    return NewPart(
        PartType.FILE, text_content=caption, file_mime=mime, file_url=pointer or None, metadata={NOTE: piece}
    )
