"""Messages as people read them: each part by its kind, a tool's call beside its result. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conversations.types import MessageRecord, PartRecord, PartType

# A longer text is cut in the page, and can be opened whole.
MOST_CHARACTERS = 20_000
LARGEST_IMAGE = 3_000_000

_DIFF = re.compile(r"^(diff --git |--- .*\n\+\+\+ |@@ -\d)", re.MULTILINE)
_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")


class BlockKind(StrEnum):
    """How a piece of a message is shown."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL = "tool"
    DIFF = "diff"
    IMAGE = "image"
    FILE = "file"
    NOTE = "note"


@dataclass(frozen=True)
class Line:
    """One line of a patch, and whether it came in, went out, or is a heading."""

    text: str
    tone: str


@dataclass(frozen=True)
class Block:
    """One piece. A tool's has its name, what it was given, what it gave, and how it ended."""

    kind: BlockKind
    text: str = ""
    title: str = ""
    given: str = ""
    status: str = ""
    result_seq: int | None = None
    lines: tuple[Line, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True)
class Turn:
    """A message with its pieces. One that only brings results of calls that are shown above is `folded` into them."""

    message: MessageRecord
    blocks: tuple[Block, ...]
    folded_into: int | None = None


def turns(messages: Sequence[MessageRecord]) -> list[Turn]:
    """The messages of a page, results of tools folded into the calls on the same page."""
    calls = {
        part.tool_call_id: message.seq
        for message in messages
        for part in message.parts
        if part.tool_call_id and _is_call(part)
    }
    results: dict[str, tuple[int, PartRecord]] = {}
    for message in messages:
        for part in message.parts:
            if part.tool_call_id and not _is_call(part) and part.part_type is PartType.TOOL:
                results.setdefault(part.tool_call_id, (message.seq, part))
    shown = []
    for message in messages:
        blocks = tuple(_blocks(message, calls, results))
        into = next((calls[part.tool_call_id] for part in message.parts if part.tool_call_id in calls), None)
        shown.append(Turn(message=message, blocks=blocks, folded_into=None if blocks else into))
    return shown


def _blocks(
    message: MessageRecord, calls: Mapping[str, int], results: Mapping[str, tuple[int, PartRecord]]
) -> Iterator[Block]:
    if not message.parts:
        if message.content:
            yield _text(message.content)
        return
    said = [part for part in message.parts if part.part_type is not PartType.COMPACTION]
    for part in said:
        if part.part_type is PartType.TOOL:
            if _is_call(part):
                yield _call(part, results.get(part.tool_call_id or ""))
            elif part.tool_call_id not in calls or results[part.tool_call_id or ""][0] != message.seq:
                yield _call(part, None)
        else:
            yield _block(part)
    if message.content and not any(part.text_content or part.part_type is PartType.TOOL for part in said):
        yield _text(message.content)


def _block(part: PartRecord) -> Block:
    match part.part_type:
        case PartType.TEXT:
            return _text(part.text_content or "")
        case PartType.REASONING:
            text, is_cut = _short(part.text_content or "")
            return Block(BlockKind.REASONING, text=text, is_cut=is_cut)
        case PartType.PATCH:
            files = ", ".join(part.patch_files or ())
            return Block(BlockKind.DIFF, title=files or "patch", lines=tuple(_lines(part.text_content or "")))
        case PartType.FILE:
            return _file(part)
        case _:
            return Block(BlockKind.NOTE, title=part.part_type.replace("_", " "), text=_note(part))


def _text(text: str) -> Block:
    if _DIFF.search(text[:2_000]):
        return Block(BlockKind.DIFF, title="patch", lines=tuple(_lines(text[:MOST_CHARACTERS])), is_cut=_short(text)[1])
    shown, is_cut = _short(text)
    return Block(BlockKind.TEXT, text=shown, is_cut=is_cut)


def _call(part: PartRecord, result: tuple[int, PartRecord] | None) -> Block:
    seq, answered = result if result is not None else (None, part)
    output, is_cut = _short(answered.tool_error or answered.tool_output or "")
    given = "" if part.tool_input is None else json.dumps(part.tool_input, ensure_ascii=False, indent=2)
    return Block(
        BlockKind.TOOL,
        title=part.tool_title or part.tool_name or answered.tool_name or "tool",
        given=given[:MOST_CHARACTERS],
        text=output,
        status=answered.tool_status or part.tool_status or "",
        result_seq=seq,
        lines=tuple(_lines(output)) if _DIFF.search(output[:2_000]) else (),
        is_cut=is_cut,
    )


def _file(part: PartRecord) -> Block:
    url = part.file_url or ""
    name = part.file_name or part.file_mime or "file"
    if len(url) <= LARGEST_IMAGE and _IMAGE.fullmatch(url):
        return Block(BlockKind.IMAGE, title=name, text=url)
    # Shown, and no link: a page leads nowhere outside.
    shown = f"{url[:60]}…" if url.startswith("data:") else url
    return Block(BlockKind.FILE, title=name, text=part.text_content or shown, status=part.file_mime or "")


def _note(part: PartRecord) -> str:
    said: Iterable[object] = (
        part.text_content, part.subtask_agent, part.subtask_desc, part.subtask_prompt, part.step_reason,
        part.snapshot_hash,
    )  # fmt: skip
    figures = [
        f"{name} {value}"
        for name, value in (("tokens in", part.step_tokens_in), ("out", part.step_tokens_out), ("cost", part.step_cost))
        if value is not None
    ]
    return " · ".join([*(str(each) for each in said if each), *figures])[:MOST_CHARACTERS]


def _lines(text: str) -> Iterator[Line]:
    for line in text.split("\n"):
        tone = ""
        if line.startswith(("+++", "---", "diff ", "index ", "@@")):
            tone = "heading"
        elif line.startswith("+"):
            tone = "in"
        elif line.startswith("-"):
            tone = "out"
        yield Line(text=line, tone=tone)


def _is_call(part: PartRecord) -> bool:
    return part.part_type is PartType.TOOL and part.tool_output is None and part.tool_error is None


def _short(text: str) -> tuple[str, bool]:
    return text[:MOST_CHARACTERS], len(text) > MOST_CHARACTERS
