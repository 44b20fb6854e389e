"""Messages as blocks of the transcript. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from conversations.types import MessageRecord, PartRecord, PartType
from lcmsite.dashboard.parts.marked_text import Line, diff_lines

# A longer text is shortened; a link shows the full text.
MOST_CHARACTERS = 20_000
LARGEST_IMAGE = 3_000_000

_DIFF = re.compile(r"^(diff --git |--- .*\n\+\+\+ |@@ -\d)", re.MULTILINE)
_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")


@dataclass(frozen=True)
class Block:
    """One part of a message; for a tool: its name, input, output and status.

    If a text is cut, `whole_in` holds the ids of the messages with the full text.
    """

    kind: Literal["text", "reasoning", "tool", "diff", "image", "file", "note"]
    text: str = ""
    title: str = ""
    given: str = ""
    status: str = ""
    result_seq: int | None = None
    lines: tuple[Line, ...] = ()
    whole_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A message with its blocks; a tool result that its call shows has none."""

    message: MessageRecord
    blocks: tuple[Block, ...]
    folded_into: int | None = None


Results = Mapping[str, tuple[MessageRecord, PartRecord]]


def turns(messages: Sequence[MessageRecord], *, most: int | None = MOST_CHARACTERS) -> list[Turn]:
    """The messages of a page, with tool results folded into their calls."""
    calls: dict[str, int] = {}
    results: dict[str, tuple[MessageRecord, PartRecord]] = {}
    for message in messages:
        for part in message.parts:
            if part.tool_call_id and _is_call(part):
                calls[part.tool_call_id] = message.seq
            elif part.tool_call_id and part.part_type is PartType.TOOL:
                results.setdefault(part.tool_call_id, (message, part))
    shown = []
    for message in messages:
        blocks = tuple(_blocks(message, calls, results, most))
        into = next((calls[part.tool_call_id] for part in message.parts if part.tool_call_id in calls), None)
        shown.append(Turn(message, blocks, folded_into=None if blocks else into))
    return shown


def _blocks(message: MessageRecord, calls: Mapping[str, int], results: Results, most: int | None) -> Iterator[Block]:
    parts = [part for part in message.parts if part.part_type is not PartType.COMPACTION]
    for part in parts:
        call_id = part.tool_call_id or ""
        if part.part_type is not PartType.TOOL:
            yield _block(message, part, most)
        elif _is_call(part):
            yield _call(message, part, *results.get(call_id, (message, part)), most)
        # The first result of a call is shown with the call.
        elif call_id not in calls or results[call_id][0] is not message:
            yield _call(message, part, message, part, most)
    if message.content and not any(part.text_content or part.part_type is PartType.TOOL for part in parts):
        yield _text(message, message.content, most)


def _block(message: MessageRecord, part: PartRecord, most: int | None) -> Block:
    """The block of a part that is not a tool call or result."""
    text = part.text_content or ""
    match part.part_type:
        case PartType.TEXT:
            return _text(message, text, most)
        case PartType.REASONING:
            return Block("reasoning", text=text[:most], whole_in=_id_if_cut(message, text, most))
        case PartType.PATCH:
            return Block("diff", title=", ".join(part.patch_files or ()) or "patch", lines=tuple(diff_lines(text)))
        case PartType.FILE:
            return _file(part)
        case _:
            text, title = _note(part), part.part_type.replace("_", " ")
            return Block("note", title=title, text=text[:most], whole_in=_id_if_cut(message, text, most))


def _text(message: MessageRecord, text: str, most: int | None) -> Block:
    shown, whole_in = text[:most], _id_if_cut(message, text, most)
    if _DIFF.search(text[:2_000]):
        return Block("diff", title="patch", lines=tuple(diff_lines(shown)), whole_in=whole_in)
    return Block("text", text=shown, whole_in=whole_in)


def _call(
    message: MessageRecord, call: PartRecord, there: MessageRecord, result: PartRecord, most: int | None
) -> Block:
    """The block of a call with its result (in message `there`), or of a lone result."""
    output = result.tool_error or result.tool_output or ""
    given = "" if call.tool_input is None else json.dumps(call.tool_input, ensure_ascii=False, indent=2)
    shown = output[:most]
    return Block(
        "tool",
        title=call.tool_title or call.tool_name or result.tool_name or "tool",
        given=given[:most],
        text=shown,
        status=result.tool_status or call.tool_status or "",
        result_seq=None if result is call else there.seq,
        lines=tuple(diff_lines(shown)) if _DIFF.search(shown[:2_000]) else (),
        whole_in=(*_id_if_cut(message, given, most), *_id_if_cut(there, output, most)),
    )


def _id_if_cut(message: MessageRecord, text: str, most: int | None) -> tuple[str, ...]:
    """The id of the message if this text is cut; empty otherwise."""
    return (message.id,) if most is not None and len(text) > most else ()


def _file(part: PartRecord) -> Block:
    url = part.file_url or ""
    name = part.file_name or part.file_mime or "file"
    if len(url) <= LARGEST_IMAGE and _IMAGE.fullmatch(url):
        return Block("image", title=name, text=url)
    # Shown as text, not as a link: pages do not link to other sites.
    shown = f"{url[:60]}…" if url.startswith("data:") else url
    return Block("file", title=name, text=part.text_content or shown, status=part.file_mime or "")


def _note(part: PartRecord) -> str:
    texts = (
        part.text_content, part.subtask_agent, part.subtask_desc, part.subtask_prompt, part.step_reason,
        part.snapshot_hash,
    )  # fmt: skip
    figures = (("tokens in", part.step_tokens_in), ("out", part.step_tokens_out), ("cost", part.step_cost))
    return " · ".join([*filter(None, texts), *(f"{name} {value}" for name, value in figures if value is not None)])


def _is_call(part: PartRecord) -> bool:
    return part.part_type is PartType.TOOL and part.tool_output is None and part.tool_error is None
