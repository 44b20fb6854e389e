"""Messages as blocks of the transcript. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from conversations.types import MessageRecord, PartRecord, PartType
from lcmsite.dashboard.parts.marked_text import Line, diff_lines

# A longer text is cut; a link shows all of it.
MOST_CHARACTERS = 20_000
LARGEST_IMAGE = 3_000_000

_DIFF = re.compile(r"^(diff --git |--- .*\n\+\+\+ |@@ -\d)", re.MULTILINE)
_IMAGE = re.compile(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")


class BlockKind(StrEnum):
    """How a part of a message is shown."""

    TEXT = "text"
    REASONING = "reasoning"
    TOOL = "tool"
    DIFF = "diff"
    IMAGE = "image"
    FILE = "file"
    NOTE = "note"


@dataclass(frozen=True)
class Block:
    """One part of a message; for a tool: its name, input, output and status.

    `whole_in` are the ids of the messages with the full text, where it is cut.
    """

    kind: BlockKind
    text: str = ""
    title: str = ""
    given: str = ""
    status: str = ""
    result_seq: int | None = None
    lines: tuple[Line, ...] = ()
    whole_in: tuple[str, ...] = ()


@dataclass(frozen=True)
class Turn:
    """A message with its blocks; if it only has results of calls above, it is folded."""

    message: MessageRecord
    blocks: tuple[Block, ...]
    folded_into: int | None = None


def turns(messages: Sequence[MessageRecord], *, most: int | None = MOST_CHARACTERS) -> list[Turn]:
    """The messages of a page, with tool results folded into their calls."""
    calls = {
        part.tool_call_id: message.seq
        for message in messages
        for part in message.parts
        if part.tool_call_id and _is_call(part)
    }
    results: dict[str, tuple[MessageRecord, PartRecord]] = {}
    for message in messages:
        for part in message.parts:
            if part.tool_call_id and not _is_call(part) and part.part_type is PartType.TOOL:
                results.setdefault(part.tool_call_id, (message, part))
    shown = []
    for message in messages:
        blocks = tuple(_Writer(message, most).blocks(calls, results))
        into = next((calls[part.tool_call_id] for part in message.parts if part.tool_call_id in calls), None)
        shown.append(Turn(message=message, blocks=blocks, folded_into=None if blocks else into))
    return shown


@dataclass(frozen=True)
class _Writer:
    """Makes the blocks of one message."""

    message: MessageRecord
    most: int | None

    def blocks(
        self, calls: Mapping[str, int], results: Mapping[str, tuple[MessageRecord, PartRecord]]
    ) -> Iterator[Block]:
        content = self.message.content
        if not self.message.parts:
            if content:
                yield self._text(content)
            return
        parts = [part for part in self.message.parts if part.part_type is not PartType.COMPACTION]
        for part in parts:
            if part.part_type is PartType.TOOL:
                if _is_call(part):
                    yield self._call(part, results.get(part.tool_call_id or ""))
                elif part.tool_call_id not in calls or results[part.tool_call_id or ""][0] is not self.message:
                    yield self._call(part, None)
            else:
                yield self._block(part)
        if content and not any(part.text_content or part.part_type is PartType.TOOL for part in parts):
            yield self._text(content)

    def _block(self, part: PartRecord) -> Block:
        match part.part_type:
            case PartType.TEXT:
                return self._text(part.text_content or "")
            case PartType.REASONING:
                text = part.text_content or ""
                return Block(BlockKind.REASONING, text=text[: self.most], whole_in=self._whole_in(text))
            case PartType.PATCH:
                files = ", ".join(part.patch_files or ())
                return Block(BlockKind.DIFF, title=files or "patch", lines=tuple(diff_lines(part.text_content or "")))
            case PartType.FILE:
                return _file(part)
            case _:
                text = _note(part)
                title = part.part_type.replace("_", " ")
                return Block(BlockKind.NOTE, title=title, text=text[: self.most], whole_in=self._whole_in(text))

    def _text(self, text: str) -> Block:
        shown, whole_in = text[: self.most], self._whole_in(text)
        if _DIFF.search(text[:2_000]):
            return Block(BlockKind.DIFF, title="patch", lines=tuple(diff_lines(shown)), whole_in=whole_in)
        return Block(BlockKind.TEXT, text=shown, whole_in=whole_in)

    def _call(self, part: PartRecord, result: tuple[MessageRecord, PartRecord] | None) -> Block:
        there, answered = result if result is not None else (None, part)
        output = answered.tool_error or answered.tool_output or ""
        given = "" if part.tool_input is None else json.dumps(part.tool_input, ensure_ascii=False, indent=2)
        shown = output[: self.most]
        return Block(
            BlockKind.TOOL,
            title=part.tool_title or part.tool_name or answered.tool_name or "tool",
            given=given[: self.most],
            text=shown,
            status=answered.tool_status or part.tool_status or "",
            result_seq=there.seq if there else None,
            lines=tuple(diff_lines(shown)) if _DIFF.search(shown[:2_000]) else (),
            whole_in=(*self._whole_in(given), *self._whole_in(output, there)),
        )

    def _whole_in(self, text: str, there: MessageRecord | None = None) -> tuple[str, ...]:
        is_cut = self.most is not None and len(text) > self.most
        return ((there or self.message).id,) if is_cut else ()


def _file(part: PartRecord) -> Block:
    url = part.file_url or ""
    name = part.file_name or part.file_mime or "file"
    if len(url) <= LARGEST_IMAGE and _IMAGE.fullmatch(url):
        return Block(BlockKind.IMAGE, title=name, text=url)
    # Text, not a link: pages do not link to other sites.
    shown = f"{url[:60]}…" if url.startswith("data:") else url
    return Block(BlockKind.FILE, title=name, text=part.text_content or shown, status=part.file_mime or "")


def _note(part: PartRecord) -> str:
    texts: Iterable[object] = (
        part.text_content, part.subtask_agent, part.subtask_desc, part.subtask_prompt, part.step_reason,
        part.snapshot_hash,
    )  # fmt: skip
    figures = [
        f"{name} {value}"
        for name, value in (("tokens in", part.step_tokens_in), ("out", part.step_tokens_out), ("cost", part.step_cost))
        if value is not None
    ]
    return " · ".join([*(str(each) for each in texts if each), *figures])


def _is_call(part: PartRecord) -> bool:
    return part.part_type is PartType.TOOL and part.tool_output is None and part.tool_error is None
