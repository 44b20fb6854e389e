"""Read sessions of Gemini CLI: a JSON object, or JSON Lines that build it. Pure.

    {"sessionId", "projectHash", "startTime", "kind", "messages": [{"id", "type": "user" | "gemini", "content", ...}]}

In JSON Lines, the object without messages is the first line; each message has a line, and a later line with the same id
replaces it. A line `{"$set": {...}}` changes the object. `{"$rewindTo": id}` rewinds to before that message; the
messages from it on stay as a branch. The program's notes to its user (`info`, `warning`, `error`) are not messages.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import HostSession, Node, in_branches, name_of, text_of, without
from conversations.formats.foreign_rows import Fields
from conversations.types import NewMessage, NewPart, PartType, Role

NOTE = "gemini"
_ROLES = {"user": Role.USER, "gemini": Role.ASSISTANT}
_FINAL = ("success", "error", "cancelled")
# The key that `built` adds to each message: the id of its predecessor.
_AFTER = "$after"


def is_head(value: Any) -> bool:
    """Whether this is the first line of a session in JSON Lines."""
    return isinstance(value, Mapping) and {"sessionId", "projectHash"} <= value.keys() and "messages" not in value


def is_document(value: Any) -> bool:
    """Whether this is such a session as one object."""
    return (
        isinstance(value, Mapping)
        and {"sessionId", "projectHash", "messages"} <= value.keys()
        and isinstance(value["messages"], list)
    )


def built(lines: Iterable[Any]) -> dict[str, Any]:
    """Build the object of a session from its lines, with all branches."""
    document: dict[str, Any] = {}
    messages: dict[str, dict[str, Any]] = {}
    # The ids on the active path in order, each with its predecessor.
    path: dict[str, str] = {}
    newest = ""
    for line in lines:
        if not isinstance(line, Mapping):
            raise ValueError("A line of a session must be an object.")
        if isinstance(back := line.get("$rewindTo"), str):
            while path:
                taken_back, newest = path.popitem()
                if taken_back == back:
                    break
        elif isinstance(line.get("id"), str):
            if line["id"] not in path:
                path[line["id"]], newest = newest, line["id"]
            messages[line["id"]] = {**line, _AFTER: path[line["id"]]}
        else:
            document |= line["$set"] if isinstance(line.get("$set"), Mapping) else line
    if isinstance(document.get("messages"), list) and document["messages"]:
        return document
    return {**document, "messages": list(messages.values()), "$head": newest}


def sessions_of(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the session; ValueError names what is wrong in it.

    A sub-agent's file is in a folder named after its parent session.
    """
    passed_over: Counter[str] = Counter()
    nodes: list[Node] = []
    for fields in _finished(Fields(document).objects("messages"), passed_over):
        row = fields.values
        id = text_of(row.get("id")) or f"#{len(nodes)}"
        after = row.get(_AFTER, nodes[-1].id if nodes else "")
        message = _message(fields) if row.get("type") in _ROLES else None
        if message is None:
            passed_over[text_of(row.get("type")) or "message"] += 1
        nodes.append(Node(id, after, message, without(row, _AFTER)))
    messages, head = in_branches(nodes, text_of(document.get("$head")))
    directories = document.get("directories")
    yield HostSession(
        session_id=text_of(document["sessionId"]) or name_of(path),
        messages=messages,
        title=text_of(document.get("summary")),
        project=text_of(directories[0]) if isinstance(directories, list) and directories else "",
        parent_session_id=path.parent.name if document.get("kind") == "subagent" else "",
        head=head,
        passed_over=passed_over,
    )


def _finished(rows: tuple[Fields, ...], passed_over: Counter[str]) -> tuple[Fields, ...]:
    """Leave out the last message while its tools run; a later import includes it."""
    calls = rows[-1].values.get("toolCalls") if rows else None
    if isinstance(calls, list) and any(isinstance(each, dict) and each.get("status") not in _FINAL for each in calls):
        passed_over["unfinished"] += 1
        return rows[:-1]
    return rows


def _message(fields: Fields) -> NewMessage:
    row = fields.values
    thoughts = tuple(
        NewPart(
            PartType.REASONING, text_content="\n".join(filter(None, (each.text("subject"), each.text("description"))))
        )
        for each in fields.objects("thoughts")
    )
    calls = tuple(_call(each) for each in fields.objects("toolCalls"))
    rest = without(row, "type", "timestamp", _AFTER)
    if isinstance(row.get("content"), str):
        rest.pop("content")
    content = tuple(_parts(row.get("content")))
    return NewMessage(
        role=fields.choice("type", _ROLES),
        content=None if thoughts or calls or content else "",
        parts=(*thoughts, *content, *calls),
        created_at=fields.moment("timestamp"),
        metadata={NOTE: rest},
    )


def _parts(content: Any) -> Iterator[NewPart]:
    """Read content of the Gemini API: a text, a piece, or a list of these."""
    for piece in content if isinstance(content, list) else [content]:
        if isinstance(piece, str):
            yield from [NewPart(PartType.TEXT, text_content=piece)] if piece else []
        elif isinstance(piece, Mapping) and isinstance(piece.get("text"), str):
            yield NewPart(
                PartType.REASONING if piece.get("thought") is True else PartType.TEXT, text_content=piece["text"]
            )
        elif isinstance(piece, Mapping) and isinstance(data := piece.get("inlineData"), Mapping):
            mime = text_of(data.get("mimeType"))
            yield NewPart(PartType.FILE, file_mime=mime, file_url=f"data:{mime};base64,{text_of(data.get('data'))}")
        elif isinstance(piece, Mapping) and isinstance(data := piece.get("fileData"), Mapping):
            mime, url = text_of(data.get("mimeType")), text_of(data.get("fileUri"))
            yield NewPart(PartType.FILE, file_mime=mime, file_url=url)


def _call(fields: Fields) -> NewPart:
    row = fields.values
    result = None if row.get("result") is None else _result_text(row["result"])
    is_error = row.get("status") == "error"
    return NewPart(
        PartType.TOOL,
        tool_call_id=fields.text("id"),
        tool_name=fields.text("name"),
        tool_status={"success": "completed"}.get(text_of(row.get("status")), fields.text("status")),
        tool_input=row.get("args"),
        tool_output=None if is_error else result,
        tool_error=(result or "") if is_error else None,
    )


def _result_text(result: Any) -> str:
    """Return the text of a result: the functions' responses, or pieces as JSON."""
    texts: list[str] = []
    for piece in result if isinstance(result, list) else [result]:
        answer = piece.get("functionResponse") if isinstance(piece, Mapping) else None
        response = answer.get("response") if isinstance(answer, Mapping) else None
        shown = response.get("output", response.get("error")) if isinstance(response, Mapping) else piece
        if isinstance(shown, Mapping) and isinstance(shown.get("text"), str):
            shown = shown["text"]
        texts.append(shown if isinstance(shown, str) else json.dumps(piece, ensure_ascii=False))
    return "\n".join(texts)
