"""Answers of a scripted model in the three protocols of vendors: whole, and as events of a stream.

One answer is thinking, then text, then tool calls. Each protocol renders it as its vendor does.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lcmsite.gateway.surfaces import Surface

_numbers = itertools.count(1)


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool; its id is made when none is given."""

    name: str
    arguments: dict[str, Any]
    id: str = ""
    # Of tools that are listed in one, in Responses.
    namespace: str = ""


@dataclass(frozen=True)
class Answer:
    """What the model says. Token counts are a quarter of the bytes."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    thinking: str = ""
    # In place of those of the request.
    input_tokens: int | None = None
    # The connection is cut after so many events of the stream.
    cut_after: int | None = None
    # Seconds before each event of the stream.
    pause: float = 0.0


@dataclass(frozen=True)
class Refusal:
    """An answer of another status."""

    status: int
    body: dict[str, Any]


Event = tuple[str, dict[str, Any] | str]


def pieces(text: str, size: int = 24) -> Iterator[str]:
    """The text as a stream brings it."""
    for start in range(0, len(text), size):
        yield text[start : start + size]


def call_id(call: ToolCall, prefix: str) -> str:
    return call.id or f"{prefix}{next(_numbers):06d}"


@dataclass(frozen=True)
class Rendering:
    """One answer to one request; ids are the same in the whole and in the stream."""

    answer: Answer
    model: str
    request_bytes: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "number", next(_numbers))
        object.__setattr__(self, "calls", [(call_id(call, self.prefix), call) for call in self.answer.calls])

    prefix = "call_"

    @property
    def tokens_in(self) -> int:
        given = self.answer.input_tokens
        return max(1, self.request_bytes // 4) if given is None else given

    @property
    def tokens_out(self) -> int:
        return max(1, len(self.answer.text) // 4)

    def whole(self) -> dict[str, Any]:
        raise NotImplementedError

    def events(self) -> Iterator[Event]:
        raise NotImplementedError

    def stream(self) -> Iterator[bytes]:
        """The events as they go over the wire."""
        for name, data in self.events():
            head = f"event: {name}\n" if name else ""
            value = {"type": name, **data} if name and isinstance(data, dict) else data
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield f"{head}data: {text}\n\n".encode()


class AnthropicMessage(Rendering):
    prefix = "toolu_"

    def blocks(self) -> list[dict[str, Any]]:
        blocks: list[dict[str, Any]] = []
        if self.answer.thinking:
            blocks.append({"type": "thinking", "thinking": self.answer.thinking, "signature": "c2lnbmVk"})
        if self.answer.text or not self.calls:
            blocks.append({"type": "text", "text": self.answer.text})
        blocks += [
            {"type": "tool_use", "id": made, "name": call.name, "input": call.arguments} for made, call in self.calls
        ]
        return blocks

    @property
    def stop_reason(self) -> str:
        return "tool_use" if self.calls else "end_turn"

    def whole(self) -> dict[str, Any]:
        return {
            "id": f"msg_{self.number:06d}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": self.blocks(),
            "stop_reason": self.stop_reason,
            "stop_sequence": None,
            "usage": self._usage(self.tokens_out),
        }

    def _usage(self, output: int) -> dict[str, int]:
        return {
            "input_tokens": self.tokens_in,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output,
        }

    def events(self) -> Iterator[Event]:
        start = {**self.whole(), "content": [], "stop_reason": None, "usage": self._usage(1)}
        yield "message_start", {"message": start}
        yield "ping", {}
        for index, block in enumerate(self.blocks()):
            yield "content_block_start", {"index": index, "content_block": _emptied(block)}
            for delta in _deltas(block):
                yield "content_block_delta", {"index": index, "delta": delta}
            yield "content_block_stop", {"index": index}
        end = {"stop_reason": self.stop_reason, "stop_sequence": None}
        yield "message_delta", {"delta": end, "usage": {"output_tokens": self.tokens_out}}
        yield "message_stop", {}


def _emptied(block: dict[str, Any]) -> dict[str, Any]:
    empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""}, "tool_use": {"input": {}}}
    return {**block, **empty[block["type"]]}


def _deltas(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    kind = block["type"]
    if kind == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
    elif kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        arguments = json.dumps(block["input"], ensure_ascii=False)
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments))


class ChatCompletion(Rendering):
    @property
    def finish_reason(self) -> str:
        return "tool_calls" if self.calls else "stop"

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.number:06d}", "object": kind, "created": int(time.time()), "model": self.model}

    def _usage(self) -> dict[str, int]:
        return {
            "prompt_tokens": self.tokens_in,
            "completion_tokens": self.tokens_out,
            "total_tokens": self.tokens_in + self.tokens_out,
        }

    def _calls(self) -> list[dict[str, Any]]:
        return [
            {
                "id": made,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for made, call in self.calls
        ]

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.answer.text or None}
        if self.answer.thinking:
            message["reasoning_content"] = self.answer.thinking
        if self.calls:
            message["tool_calls"] = self._calls()
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return {**self._head("chat.completion"), "choices": [choice], "usage": self._usage()}

    def events(self) -> Iterator[Event]:
        yield self._chunk({"role": "assistant", "content": ""})
        for piece in pieces(self.answer.thinking):
            yield self._chunk({"reasoning_content": piece})
        for piece in pieces(self.answer.text):
            yield self._chunk({"content": piece})
        for index, call in enumerate(self._calls()):
            function = call["function"]
            yield self._chunk(
                {"tool_calls": [{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}]}
            )
            for piece in pieces(function["arguments"]):
                yield self._chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
        yield self._chunk({}, self.finish_reason)
        yield "", {**self._head("chat.completion.chunk"), "choices": [], "usage": self._usage()}
        yield "", "[DONE]"

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", {**self._head("chat.completion.chunk"), "choices": [choice]}


class ResponseObject(Rendering):
    def items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        if self.answer.thinking:
            summary = [{"type": "summary_text", "text": self.answer.thinking}]
            items.append({"type": "reasoning", "id": f"rs_{self.number:06d}", "summary": summary})
        if self.answer.text or not self.calls:
            items.append(
                {
                    "type": "message",
                    "id": f"msg_{self.number:06d}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [{"type": "output_text", "text": self.answer.text, "annotations": []}],
                }
            )
        for made, call in self.calls:
            arguments = json.dumps(call.arguments, ensure_ascii=False)
            item = {"type": "function_call", "id": f"fc_{made}", "call_id": made, "name": call.name}
            spaced = {"namespace": call.namespace} if call.namespace else {}
            items.append({**item, **spaced, "arguments": arguments, "status": "completed"})
        return items

    def _response(self, status: str) -> dict[str, Any]:
        return {
            "id": f"resp_{self.number:06d}",
            "object": "response",
            "created_at": int(time.time()),
            "status": status,
            "model": self.model,
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": None,
        }

    def whole(self) -> dict[str, Any]:
        usage = {
            "input_tokens": self.tokens_in,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": self.tokens_out,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.tokens_in + self.tokens_out,
        }
        return {**self._response("completed"), "output": self.items(), "usage": usage}

    def events(self) -> Iterator[Event]:
        numbers = itertools.count()
        for name, data in self._plain_events():
            yield name, {**data, "sequence_number": next(numbers)}

    def _plain_events(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield "response.created", {"response": self._response("in_progress")}
        for index, item in enumerate(self.items()):
            at = {"output_index": index, "item_id": item["id"]}
            empty = {"message": {"content": []}, "function_call": {"arguments": ""}, "reasoning": {"summary": []}}
            begun = {**item, **empty[item["type"]]}
            if "status" in item:
                begun["status"] = "in_progress"
            yield "response.output_item.added", {"output_index": index, "item": begun}
            if item["type"] == "message":
                part = item["content"][0]
                at["content_index"] = 0
                yield "response.content_part.added", {**at, "part": {**part, "text": ""}}
                for piece in pieces(part["text"]):
                    yield "response.output_text.delta", {**at, "delta": piece}
                yield "response.output_text.done", {**at, "text": part["text"]}
                yield "response.content_part.done", {**at, "part": part}
            elif item["type"] == "function_call":
                for piece in pieces(item["arguments"]):
                    yield "response.function_call_arguments.delta", {**at, "delta": piece}
                yield "response.function_call_arguments.done", {**at, "arguments": item["arguments"]}
            yield "response.output_item.done", {"output_index": index, "item": item}
        yield "response.completed", {"response": self.whole()}


RENDERINGS: dict[Surface, type[Rendering]] = {
    Surface.MESSAGES: AnthropicMessage,
    Surface.CHAT: ChatCompletion,
    Surface.RESPONSES: ResponseObject,
}
