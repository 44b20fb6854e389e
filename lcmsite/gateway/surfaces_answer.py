"""Parse answers of the three vendor APIs, whole or streamed. Pure.

An answer is parsed in chunks while it is forwarded. If it breaks off, the part received is kept, marked as incomplete.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from lcmsite.gateway.event_stream import EventStream, data_of
from lcmsite.gateway.surfaces import Row, Surface, WireMessage, wire_message

# A larger answer is not parsed.
MOST_BYTES = 32 * 1024**2
# A stream gives each call its place in the answer: further ones are skipped.
MOST_CALLS = 1_000
# Larger counts of tokens do not fit into the database.
MOST_TOKENS = 10**15


@dataclass(frozen=True)
class ReadAnswer:
    """A parsed answer: rows in the form of its API, and its metadata."""

    surface: Surface
    rows: tuple[Row, ...] = ()
    response_id: str | None = None
    model: str = ""
    stop_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    is_complete: bool = False
    # The choices after the first, if the request set `n` above 1.
    alternatives: tuple[Row, ...] = ()

    @property
    def messages(self) -> tuple[WireMessage, ...]:
        return tuple(wire_message(self.surface, index, row) for index, row in enumerate(self.rows))

    def as_json(self) -> dict[str, Any]:
        return {**vars(self), "surface": self.surface.value}

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> ReadAnswer:
        lists = {name: tuple(given[name]) for name in ("rows", "alternatives")}
        return cls(**{**given, **lists, "surface": Surface(given["surface"])})


@dataclass
class AnswerReader:
    """Parses an answer: `feed` it the decoded bytes, then call `finish`."""

    surface: Surface
    is_stream: bool
    size: int = 0
    pieces: list[bytes] = field(default_factory=list)
    # The incomplete event of a stream, and the answer built so far.
    events: EventStream = field(default_factory=EventStream)
    state: Any = None
    # The type of the first error for which an event was skipped.
    skipped_by: str = ""

    def __post_init__(self) -> None:
        self.state = _STATES[self.surface]()

    def feed(self, data: bytes) -> None:
        """Add the next chunk. Raises ValueError above MOST_BYTES."""
        self.size += len(data)
        if self.size > MOST_BYTES:
            self.pieces.clear()
            self.events.rest.clear()
            raise ValueError("The answer is too large to be read.")
        if not self.is_stream:
            self.pieces.append(data)
            return
        for event in self.events.feed(data):
            self._read_event(event)

    def _read_event(self, event: bytes) -> None:
        """Add an event; one that cannot be read is skipped and noted in `skipped_by`."""
        try:
            self._read_data(data_of(event))
        except Exception as error:
            self.skipped_by = self.skipped_by or type(error).__name__

    def _read_data(self, data: bytes) -> None:
        if data == b"[DONE]":
            self.state.is_complete = True
        elif data:
            event = json.loads(data)
            if isinstance(event, dict):
                self.state.add_event(event)

    def finish(self) -> ReadAnswer:
        """Return the answer so far. Raises ValueError if its body is no JSON object."""
        if self.is_stream:
            self._read_event(self.events.take_rest())
            answer: ReadAnswer = self.state.answer()
            return replace(answer, is_complete=answer.is_complete and not self.skipped_by)
        body = json.loads(b"".join(self.pieces))
        if not isinstance(body, dict):
            raise ValueError("The answer is not a JSON object.")
        self.state.set_body(body)
        return self.state.answer()


class _GrowingTexts:
    """Texts in the rows of a stream; joined at the end, for linear time."""

    def __init__(self) -> None:
        self.pieces: dict[tuple[int, str], tuple[dict[str, Any], list[str]]] = {}

    def add(self, row: dict[str, Any], name: str, piece: str) -> None:
        """Append a piece to the text that the row has under this name."""
        self.pieces.setdefault((id(row), name), (row, [row[name]]))[1].append(piece)

    def join(self) -> None:
        for (_, name), (row, pieces) in self.pieces.items():
            if isinstance(row[name], str):
                row[name] = "".join(pieces)


@dataclass
class _MessagesAnswer:
    """An answer of the Messages API."""

    message: dict[str, Any] = field(default_factory=dict)
    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    inputs: dict[int, list[str]] = field(default_factory=dict)
    texts: _GrowingTexts = field(default_factory=_GrowingTexts)
    is_complete: bool = False

    def set_body(self, body: dict[str, Any]) -> None:
        self.message = body
        content = body.get("content")
        self.blocks = dict(enumerate(content if isinstance(content, list) else []))
        self.is_complete = body.get("type") == "message"

    def add_event(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "message_start":
                self.message = dict(event.get("message") or {})
            case "content_block_start":
                self.blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                self._add_delta(event["index"], event["delta"])
            case "message_delta":
                self.message |= event.get("delta") or {}
                self.message["usage"] = (self.message.get("usage") or {}) | (event.get("usage") or {})
            case "message_stop":
                self.is_complete = True

    def _add_delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self.blocks.setdefault(index, {})
        match delta.get("type"):
            case "input_json_delta":
                self.inputs.setdefault(index, []).append(delta["partial_json"])
            case "citations_delta":
                if not isinstance(block.get("citations"), list):
                    block["citations"] = []
                block["citations"].append(delta["citation"])
            case _:
                for name, value in delta.items():
                    if isinstance(block.get(name), str) and isinstance(value, str) and name != "type":
                        self.texts.add(block, name, value)
                    elif name != "type":
                        block[name] = value

    def answer(self) -> ReadAnswer:
        self.texts.join()
        for index, pieces in self.inputs.items():
            self.blocks[index]["input"] = _parse_input("".join(pieces))
        content = [self.blocks[index] for index in sorted(self.blocks)]
        usage = _object(self.message.get("usage"))
        input_counts = [usage.get(f"{name}input_tokens") for name in ("", "cache_creation_", "cache_read_")]
        return ReadAnswer(
            Surface.MESSAGES,
            rows=({"role": "assistant", "content": content},) if content else (),
            response_id=_text(self.message.get("id")),
            model=_text(self.message.get("model")) or "",
            stop_reason=_text(self.message.get("stop_reason")),
            tokens_in=sum(filter(None, map(_number, input_counts))) if _number(input_counts[0]) is not None else None,
            tokens_out=_number(usage.get("output_tokens")),
            is_complete=self.is_complete,
        )


@dataclass
class _ChatAnswer:
    """An answer of Chat Completions."""

    head: dict[str, Any] = field(default_factory=dict)
    choices: dict[int, dict[str, Any]] = field(default_factory=dict)
    reasons: dict[int, Any] = field(default_factory=dict)
    texts: _GrowingTexts = field(default_factory=_GrowingTexts)
    is_complete: bool = False

    def set_body(self, body: dict[str, Any]) -> None:
        self.head = body
        for choice in body.get("choices") or ():
            self.choices[choice.get("index", 0)] = choice.get("message") or {}
            self.reasons[choice.get("index", 0)] = choice.get("finish_reason")
        self.is_complete = bool(self.choices)

    def add_event(self, event: dict[str, Any]) -> None:
        self.head |= {name: event[name] for name in ("id", "model", "usage") if event.get(name)}
        for choice in event.get("choices") or ():
            index = choice.get("index", 0)
            _merge(self.choices.setdefault(index, {"role": "assistant"}), choice.get("delta") or {}, self.texts)
            if choice.get("finish_reason"):
                self.reasons[index] = choice["finish_reason"]
                # Some compatible servers send no [DONE].
                self.is_complete = len(self.reasons) == len(self.choices)

    def answer(self) -> ReadAnswer:
        self.texts.join()
        rows = [self.choices[index] for index in sorted(self.choices)]
        usage = _object(self.head.get("usage"))
        return ReadAnswer(
            Surface.CHAT,
            rows=tuple(row for row in rows[:1] if row.keys() - {"role"}),
            response_id=_text(self.head.get("id")),
            model=_text(self.head.get("model")) or "",
            stop_reason=_text(next(iter(self.reasons.values()), None)),
            tokens_in=_number(usage.get("prompt_tokens")),
            tokens_out=_number(usage.get("completion_tokens")),
            is_complete=self.is_complete,
            alternatives=tuple(rows[1:]),
        )


@dataclass
class _ResponsesAnswer:
    """An answer of the Responses API."""

    head: dict[str, Any] = field(default_factory=dict)
    items: dict[int, dict[str, Any]] = field(default_factory=dict)
    # Unfinished items: as they began, and their text so far.
    begun: dict[int, dict[str, Any]] = field(default_factory=dict)
    texts: dict[int, list[str]] = field(default_factory=dict)
    is_complete: bool = False

    def set_body(self, body: dict[str, Any]) -> None:
        self.head = body
        self.items = dict(enumerate(body.get("output") or []))
        self.is_complete = body.get("status", "completed") in ("completed", "incomplete")

    def add_event(self, event: dict[str, Any]) -> None:
        kind, index = str(event.get("type")), event.get("output_index", 0)
        if kind == "response.output_item.added":
            self.begun[index] = event["item"]
        elif kind == "response.output_item.done":
            self.items[index] = event["item"]
        elif kind.endswith(".delta") and isinstance(event.get("delta"), str):
            self.texts.setdefault(index, []).append(event["delta"])
        elif isinstance(event.get("response"), dict):
            self.head = event["response"]
            if kind in ("response.completed", "response.incomplete", "response.done"):
                self.is_complete = True
                self.items = dict(enumerate(self.head.get("output") or [])) or self.items

    def answer(self) -> ReadAnswer:
        items = dict(self.items)
        if not self.is_complete:
            items |= {index: item for index, item in self._incomplete_items() if index not in items}
        usage = _object(self.head.get("usage"))
        details = _object(self.head.get("incomplete_details"))
        return ReadAnswer(
            Surface.RESPONSES,
            rows=tuple(items[index] for index in sorted(items)),
            response_id=_text(self.head.get("id")),
            model=_text(self.head.get("model")) or "",
            stop_reason=_text(details.get("reason")) or _text(self.head.get("status")),
            tokens_in=_number(usage.get("input_tokens")),
            tokens_out=_number(usage.get("output_tokens")),
            is_complete=self.is_complete,
        )

    def _incomplete_items(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for index, item in self.begun.items():
            text = "".join(self.texts.get(index, ()))
            match item.get("type"):
                case "message" if text:
                    yield index, {**item, "content": [{"type": "output_text", "text": text, "annotations": []}]}
                case "reasoning" if text:
                    yield index, {**item, "summary": [{"type": "summary_text", "text": text}]}
                case "function_call":
                    yield index, {**item, "arguments": text}


_STATES: Mapping[Surface, type] = {
    Surface.MESSAGES: _MessagesAnswer,
    Surface.CHAT: _ChatAnswer,
    Surface.RESPONSES: _ResponsesAnswer,
}


def index_of_call(piece: Mapping[str, Any], *, count: int) -> int:
    """Return the index of a piece's call, after pieces of `count` calls.

    Some servers send calls without an index. Then only the first piece of a call has a name.
    """
    is_first = bool(_object(piece.get("function")).get("name"))
    index: int | None = piece.get("index")
    return index if index is not None else count if is_first else max(0, count - 1)


def _merge(row: dict[str, Any], delta: Mapping[str, Any], texts: _GrowingTexts) -> None:
    """Merge a delta of Chat Completions into the row built so far."""
    for name, value in delta.items():
        old: Any = row.get(name)
        if name == "role":
            row[name] = value or old
        elif name == "tool_calls" and isinstance(value, list):
            calls = row["tool_calls"] = old or []
            for piece in value:
                index = index_of_call(piece, count=len(calls))
                if index >= MOST_CALLS:
                    raise ValueError("The answer has too many calls.")
                while len(calls) <= index:
                    calls.append({})
                _merge(calls[index], {key: each for key, each in piece.items() if key != "index"}, texts)
        elif name in ("id", "type", "name"):
            row[name] = value or old
        elif isinstance(old, str) and isinstance(value, str):
            texts.add(row, name, value)
        elif isinstance(old, list) and isinstance(value, list):
            old += value
        elif isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value, texts)
        elif value is not None or name not in row:
            row[name] = dict(value) if isinstance(value, dict) else value


def _parse_input(text: str) -> Any:
    """Parse a call's input; return the text itself if it is no JSON, or cut off."""
    try:
        return json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _number(value: Any) -> int | None:
    return value if type(value) is int and abs(value) <= MOST_TOKENS else None
