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
    """One piece. A tool's has its name, what it was given, what it gave, and how it ended.

    Where something of it is cut, `whole_in` are the messages, by their ids, that have all of it.
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
    """A message with its pieces. One that only brings results of calls that are shown above is `folded` into them."""

    message: MessageRecord
    blocks: tuple[Block, ...]
    folded_into: int | None = None


def turns(messages: Sequence[MessageRecord], *, most: int | None = MOST_CHARACTERS) -> list[Turn]:
    """The messages of a page, results of tools folded into the calls on the same page; longer texts than `most` cut."""
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
    """Writes down the pieces of one message, each text to so many characters."""

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
        said = [part for part in self.message.parts if part.part_type is not PartType.COMPACTION]
        for part in said:
            if part.part_type is PartType.TOOL:
                if _is_call(part):
                    yield self._call(part, results.get(part.tool_call_id or ""))
                elif part.tool_call_id not in calls or results[part.tool_call_id or ""][0] is not self.message:
                    yield self._call(part, None)
            else:
                yield self._block(part)
        if content and not any(part.text_content or part.part_type is PartType.TOOL for part in said):
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
                return Block(BlockKind.DIFF, title=files or "patch", lines=tuple(_lines(part.text_content or "")))
            case PartType.FILE:
                return _file(part)
            case _:
                text = _note(part)
                title = part.part_type.replace("_", " ")
                return Block(BlockKind.NOTE, title=title, text=text[: self.most], whole_in=self._whole_in(text))

    def _text(self, text: str) -> Block:
        shown, whole_in = text[: self.most], self._whole_in(text)
        if _DIFF.search(text[:2_000]):
            return Block(BlockKind.DIFF, title="patch", lines=tuple(_lines(shown)), whole_in=whole_in)
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
            lines=tuple(_lines(shown)) if _DIFF.search(shown[:2_000]) else (),
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
    return " · ".join([*(str(each) for each in said if each), *figures])


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
