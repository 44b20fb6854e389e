"""Parse a request into entries, or return why it is forwarded unchanged. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lcmsite.gateway.surfaces import LIST_KEY, Surface, most_output_tokens, objects_in
from lcmsite.gateway.window.breakpoints import count_breakpoints
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.json_spans import Span, elements, members
from lcmsite.gateway.window.types import Entry, Kind, Untouched, WindowRequest

# The members of a request that a model reads beside the entries.
_HEAD_KEYS = ("system", "instructions", "tools", "functions", "response_format", "text", "output_config")
# With one of these, the request continues a conversation that the vendor stores.
_DELTA = ("previous_response_id", "conversation")


class _Classified(NamedTuple):
    kind: Kind
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()


def parse_entries(
    surface: Surface, body: bytes, *, counter: RequestCounter, seqs: Sequence[int | None] = ()
) -> WindowRequest | Untouched:
    """Parse a request, or return why it stays untouched; `seqs`: of its entries."""
    try:
        text = body.decode()
        found = members(text)
    except ValueError:
        return Untouched.UNREADABLE
    values = {key: span.value for key, span in found.items()}
    listed = found.get(LIST_KEY[surface])
    if any(values.get(key) is not None for key in _DELTA) or _type_of(values.get("thread")) == "continue":
        return Untouched.DELTA
    if listed is None or not isinstance(listed.value, list):
        return Untouched.UNREADABLE
    if _demands_compaction(values):
        return Untouched.VENDOR_COMPACTION
    spans = elements(text, listed)
    if not all(isinstance(span.value, dict) for span in spans):
        return Untouched.UNREADABLE
    if any(span.value.get("type") == "item_reference" for span in spans):
        return Untouched.DELTA
    if any(_has_compacted(span.value) for span in spans):
        return Untouched.VENDOR_COMPACTION
    filled = _fill_seqs(seqs, len(spans))
    head = {key: values[key] for key in _HEAD_KEYS if key in values}
    return WindowRequest(
        surface=surface,
        body=text,
        start=listed.start,
        end=listed.end,
        entries=tuple(_parse_entry(surface, text, span, seq, counter) for span, seq in zip(spans, filled, strict=True)),
        head_tokens=counter.tokens(head),
        breakpoints=count_breakpoints([values.get("system"), values.get("tools")])
        + (values.get("cache_control") is not None),
        answer_tokens=most_output_tokens(values),
        needs_thoughts=_type_of(values.get("thinking")) == "enabled",
    )


def _fill_seqs(seqs: Sequence[int | None], length: int) -> list[int | None]:
    """Return the seq of each entry; one not stored by itself gets the seq before it."""
    given = [*seqs[:length], *[None] * (length - len(seqs))]
    stored = max((index for index, seq in enumerate(given) if seq is not None), default=-1)
    for index in range(1, stored):
        if given[index] is None:
            given[index] = given[index - 1]
    return given


def build_entry(surface: Surface, value: Any, seq: int | None, counter: RequestCounter) -> Entry:
    """Build the entry of a message or item that the gateway adds."""
    text = json.dumps(value)
    entry = _parse_entry(surface, text, Span(0, len(text), value), seq, counter)
    return replace(entry, looked_up=entry.answers)


def _parse_entry(surface: Surface, text: str, span: Span, seq: int | None, counter: RequestCounter) -> Entry:
    kind, calls, answers = _CLASSIFIERS[surface](span.value)
    tokens = counter.entry_tokens(span.value)
    return Entry(text[span.start : span.end], span.value, kind, tokens, calls, answers, seq=seq)


def _classify_message(message: Mapping[str, Any]) -> _Classified:
    """Classify a message of the Messages API."""
    blocks = list(objects_in(message.get("content")))
    calls = tuple(str(block["id"]) for block in blocks if _has_type(block, "tool_use") and "id" in block)
    answers = tuple(
        str(block["tool_use_id"]) for block in blocks if _has_type(block, "tool_result") and "tool_use_id" in block
    )
    match message.get("role"):
        case "assistant":
            return _Classified(Kind.MODEL, calls, answers)
        case "system":
            return _Classified(Kind.SYSTEM)
        case _:
            return _Classified(Kind.RESULT if answers else Kind.QUESTION, (), answers)


def _classify_chat(message: Mapping[str, Any]) -> _Classified:
    """Classify a message of Chat Completions."""
    match message.get("role"):
        case "assistant":
            calls = tuple(str(call["id"]) for call in objects_in(message.get("tool_calls")) if "id" in call)
            return _Classified(Kind.MODEL, calls)
        case "system" | "developer":
            return _Classified(Kind.SYSTEM)
        case "tool" | "function":
            call_id = message.get("tool_call_id")
            return _Classified(Kind.RESULT, (), (call_id,) if isinstance(call_id, str) else ())
        case _:
            return _Classified(Kind.QUESTION)


def _classify_item(item: Mapping[str, Any]) -> _Classified:
    """Classify an item of Responses."""
    kind = item.get("type") or "message"
    call_id = item.get("call_id") or item.get("id")
    ids = (call_id,) if isinstance(call_id, str) else ()
    role = item.get("role")
    if role in ("system", "developer"):
        return _Classified(Kind.SYSTEM)
    if kind == "message":
        return _Classified(Kind.MODEL if role == "assistant" else Kind.QUESTION)
    if str(kind).endswith(("_output", "_response")):
        return _Classified(Kind.RESULT, (), ids)
    return _Classified(Kind.MODEL, ids)


_CLASSIFIERS: Mapping[Surface, Callable[[Mapping[str, Any]], _Classified]] = {
    Surface.MESSAGES: _classify_message,
    Surface.CHAT: _classify_chat,
    Surface.RESPONSES: _classify_item,
}


def _has_type(block: Mapping[str, Any], ending: str) -> bool:
    """Whether a block has this type, or one of a vendor's tools (`mcp_tool_use`)."""
    return str(block.get("type")).endswith(ending)


def _has_compacted(value: Mapping[str, Any]) -> bool:
    """Whether a row is or has a compaction by the vendor or the client."""
    kinds = [value.get("type"), *(block.get("type") for block in objects_in(value.get("content")))]
    return any(str(kind).startswith("compaction") for kind in kinds if kind is not None)


def _demands_compaction(values: Mapping[str, Any]) -> bool:
    """Whether the request makes the vendor compact; clearing old results is allowed."""
    if values.get("compaction") is not None:
        return True
    management = values.get("context_management")
    edits = management.get("edits") if isinstance(management, dict) else management
    return any(str(edit.get("type")).startswith("compact") for edit in objects_in(edits))


def _type_of(value: Any) -> Any:
    return value.get("type") if isinstance(value, dict) else None
