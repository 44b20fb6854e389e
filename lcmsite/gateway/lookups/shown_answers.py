"""Merge several answers of the model into the one that the agent sees. Pure.

Calls of LCM's tools are left out. Events pass unchanged until one is left out; later events are renumbered. The closing
events are held back until no further answer can follow.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from lcmsite.gateway.event_stream import END_OF_CHAT, event_of, named_event_of
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.surfaces_answer import index_of_call

Event = dict[str, Any]


@dataclass
class ShownAnswer(ABC):
    """The merged answer as the agent sees it; a subclass for each API."""

    hidden_names: Collection[str]
    # By index in the model's current answer: what is hidden, and the agent's index of the rest.
    hidden_indexes: set[int] = field(default_factory=set)
    shown_indexes: dict[int, int] = field(default_factory=dict)
    # The closing events, held back until it is known that no other answer follows.
    closing_events: list[Event] = field(default_factory=list)
    # How many blocks, calls or items the agent has been sent.
    shown_count: int = 0
    # How many answers of the model came before this one, and their tokens.
    rounds: int = 0
    spent_tokens: int = 0
    # Whether `data: [DONE]` has come.
    is_done: bool = False

    @abstractmethod
    def add_event(self, event: Event, raw: bytes) -> bytes:
        """Add an event; return what to send to the agent now."""

    def start_round(self, tokens_out: int | None) -> None:
        """Prepare for another answer of the model."""
        self.rounds += 1
        self.spent_tokens += tokens_out or 0
        self.hidden_indexes.clear()
        self.shown_indexes.clear()
        self.closing_events.clear()

    @abstractmethod
    def finish(self, *, is_only_hidden: bool) -> bytes:
        """Return the closing events; `is_only_hidden`: the last calls are all hidden."""

    @abstractmethod
    def merge_bodies(self, bodies: list[Event], *, is_only_hidden: bool) -> Event:
        """Merge the bodies of the model's answers into one."""

    def shown_index(self, index: int) -> int:
        """Map an index in the model's answer to the agent's; a new one gets the next."""
        if index not in self.shown_indexes:
            self.shown_indexes[index] = self.shown_count
            self.shown_count += 1
        return self.shown_indexes[index]

    def add_usage(self, usage: Any, *names: str) -> Any:
        """Add the tokens of the earlier answers to the named members of a usage object."""
        if not isinstance(usage, dict):
            return usage
        more = {name: usage[name] + self.spent_tokens for name in names if isinstance(usage.get(name), int)}
        return {**usage, **more}


class _Messages(ShownAnswer):
    def add_event(self, event: Event, raw: bytes) -> bytes:
        match event.get("type"):
            case "message_start":
                return b"" if self.rounds else raw
            case "message_delta" | "message_stop":
                self.closing_events.append(event)
                return b""
            case "content_block_start" if self._is_hidden(event["content_block"]):
                self.hidden_indexes.add(event["index"])
                return b""
            case "content_block_start" | "content_block_delta" | "content_block_stop":
                if event["index"] in self.hidden_indexes:
                    return b""
                index = self.shown_index(event["index"])
                return raw if index == event["index"] else named_event_of({**event, "index": index})
        return raw

    def _is_hidden(self, block: Mapping[str, Any]) -> bool:
        return block.get("type") == "tool_use" and block.get("name") in self.hidden_names

    def finish(self, *, is_only_hidden: bool) -> bytes:
        found = []
        for event in self.closing_events:
            if event["type"] == "message_delta":
                event = {**event, "usage": self.add_usage(event.get("usage"), "output_tokens")}
                if is_only_hidden:
                    event["delta"] = {**(event.get("delta") or {}), "stop_reason": "end_turn"}
            found.append(named_event_of(event))
        return b"".join(found)

    def merge_bodies(self, bodies: list[Event], *, is_only_hidden: bool) -> Event:
        blocks = [block for body in bodies for block in body.get("content") or () if not self._is_hidden(block)]
        usage = self.add_usage(bodies[-1].get("usage"), "output_tokens")
        ended = {"stop_reason": "end_turn"} if is_only_hidden else {}
        return {**bodies[-1], "content": blocks, "usage": usage, **ended}


@dataclass
class _Chat(ShownAnswer):
    first_id: Any = None

    def add_event(self, event: Event, raw: bytes) -> bytes:
        self.first_id = self.first_id or event.get("id")
        choices = event.get("choices")
        if not choices:
            self.closing_events.append(event)
            return b""
        [choice, *_] = choices
        delta = choice.get("delta") or {}
        visible = self._visible_delta(delta)
        if choice.get("finish_reason"):
            self.closing_events.append({**event, "choices": [{**choice, "delta": {}}]})
            choice = {**choice, "finish_reason": None}
            event = {name: value for name, value in event.items() if name != "usage"}
        elif visible == delta and not self.rounds:
            return raw
        if not any(value for name, value in visible.items() if name != "role" or not self.rounds):
            return b""
        return event_of({**event, "id": self.first_id, "choices": [{**choice, "delta": visible}]})

    def _visible_delta(self, delta: Mapping[str, Any]) -> dict[str, Any]:
        """Return a delta without hidden calls, the others renumbered."""
        if not delta.get("tool_calls"):
            return dict(delta)
        calls = []
        for call in delta["tool_calls"]:
            index = index_of_call(call, count=len(self.hidden_indexes) + len(self.shown_indexes))
            if (call.get("function") or {}).get("name") in self.hidden_names:
                self.hidden_indexes.add(index)
            if index not in self.hidden_indexes:
                calls.append({**call, "index": self.shown_index(index)})
        rest = {name: value for name, value in delta.items() if name != "tool_calls"}
        return {**rest, "tool_calls": calls} if calls else {name: value for name, value in rest.items() if value}

    def finish(self, *, is_only_hidden: bool) -> bytes:
        found = []
        for event in self.closing_events:
            event = {**event, "id": self.first_id}
            if event.get("usage"):
                event["usage"] = self.add_usage(event["usage"], "completion_tokens", "total_tokens")
            if is_only_hidden and event.get("choices"):
                event["choices"] = [{**each, "finish_reason": "stop"} for each in event["choices"]]
            found.append(event_of(event))
        return b"".join([*found, END_OF_CHAT if self.is_done else b""])

    def merge_bodies(self, bodies: list[Event], *, is_only_hidden: bool) -> Event:
        messages = [body["choices"][0].get("message") or {} for body in bodies]
        texts = {
            name: "".join(each.get(name) or "" for each in messages) or messages[-1].get(name)
            for name in ("content", "reasoning_content", "reasoning")
            if any(name in each for each in messages)
        }
        calls = [
            call
            for call in messages[-1].get("tool_calls") or ()
            if (call.get("function") or {}).get("name") not in self.hidden_names
        ]
        message = {name: value for name, value in messages[-1].items() if name != "tool_calls"} | texts
        choice = {**bodies[-1]["choices"][0], "message": message | ({"tool_calls": calls} if calls else {})}
        if is_only_hidden:
            choice["finish_reason"] = "stop"
        usage = self.add_usage(bodies[-1].get("usage"), "completion_tokens", "total_tokens")
        return {**bodies[-1], "choices": [choice], "usage": usage}


@dataclass
class _Responses(ShownAnswer):
    # The id in the first event: clients refuse an answer that ends with another.
    first_id: Any = None
    next_number: int = 0
    # The items that the agent was sent.
    output: list[Event] = field(default_factory=list)

    def add_event(self, event: Event, raw: bytes) -> bytes:
        kind = str(event.get("type"))
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            self.closing_events.append(event)
            return b""
        if kind in ("response.created", "response.in_progress", "response.queued"):
            self.first_id = self.first_id or event["response"].get("id")
            if self.rounds:
                return b""
        changed = dict(event)
        if "output_index" in event:
            if kind == "response.output_item.added" and self._is_hidden(event["item"]):
                self.hidden_indexes.add(event["output_index"])
            if event["output_index"] in self.hidden_indexes:
                return b""
            changed["output_index"] = self.shown_index(event["output_index"])
            if kind == "response.output_item.done":
                self.output.append(event["item"])
        changed = self._renumber(changed)
        return raw if changed == event else named_event_of(changed)

    def _renumber(self, event: Event) -> Event:
        """Renumber an event by its position among those sent to the agent."""
        if "sequence_number" not in event:
            return event
        numbered = {**event, "sequence_number": self.next_number}
        self.next_number += 1
        return numbered

    def _is_hidden(self, item: Mapping[str, Any]) -> bool:
        return item.get("type") == "function_call" and item.get("name") in self.hidden_names

    def finish(self, *, is_only_hidden: bool) -> bytes:
        found = []
        for event in self.closing_events:
            response = event.get("response") or {}
            usage = self.add_usage(response.get("usage"), "output_tokens", "total_tokens")
            response = {**response, "id": self.first_id or response.get("id"), "output": self.output, "usage": usage}
            changed = {**event, "response": response}
            found.append(named_event_of(self._renumber(changed)))
        return b"".join(found)

    def merge_bodies(self, bodies: list[Event], *, is_only_hidden: bool) -> Event:
        output = [item for body in bodies for item in body.get("output") or () if not self._is_hidden(item)]
        usage = self.add_usage(bodies[-1].get("usage"), "output_tokens", "total_tokens")
        return {**bodies[-1], "output": output, "usage": usage}


def shown_answer(surface: Surface, hidden_names: Collection[str]) -> ShownAnswer:
    """Return an empty merged answer of this API."""
    kinds = {Surface.MESSAGES: _Messages, Surface.CHAT: _Chat, Surface.RESPONSES: _Responses}
    return kinds[surface](hidden_names)
