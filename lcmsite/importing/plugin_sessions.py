"""Convert messages in files of OpenCode and pi as LCM's plugins do. Pure.

A plugin gives sessions its own names and messages its own keys. With the same names and keys, an import of a session's
file continues what the plugin recorded, and stores nothing twice. This must match `clients/plugins/opencode/lcm.js`
and `clients/plugins/pi/lcm.ts`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from conversations.formats.neutral import from_neutral
from conversations.types import NewMessage

Row = Mapping[str, Any]

# By program, the prefix of the session names of its plugin.
PREFIXES = {"OpenCode": "opencode:", "pi": "pi:"}
_ENDED = ("completed", "error")
_KEY_OF_PI = ("role", "content", "timestamp", "toolCallId", "command", "output", "summary")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING_OR_SMALL = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<digits>-?[\d.]+)e-(?P<exponent>\d+)')


def plugin_messages(program: str, row: Row) -> list[NewMessage]:
    """Convert one message of a host to what its plugin stores, with its keys.

    Returns [] for a message that the plugin leaves out or cannot read.
    """
    try:
        rows = list(_of_opencode(row) if program == "OpenCode" else _of_pi(row))
        return [replace(from_neutral(neutral), idempotency_key=key) for key, neutral in rows]
    except (ArithmeticError, AttributeError, KeyError, OSError, TypeError, ValueError):
        # A time that is out of range may raise OverflowError or OSError.
        return []


def _of_opencode(row: Row) -> Iterator[tuple[str, Row]]:
    info, parts = row["info"], row["parts"]
    tools = [part for part in parts if part["type"] == "tool"]
    is_done = info["time"].get("completed") and all(part["state"]["status"] in _ENDED for part in tools)
    if info["role"] != "user" and not is_done:
        return
    shown, results = [], []
    for part in parts:
        match part["type"]:
            case "text" if not part.get("ignored"):
                shown.append({"type": "text", "text": part["text"]})
            case "reasoning":
                shown.append({"type": "reasoning", "text": part["text"]})
            case "file":
                shown.append(_given(type="image", mime=part["mime"], url=part["url"], name=part.get("filename")))
            case "tool":
                state, named = part["state"], {"id": part["callID"], "name": part["tool"]}
                shown.append({"type": "tool_call", **named, "input": state.get("input") or {}})
                is_error = state["status"] == "error"
                text = state.get("error" if is_error else "output") or ""
                results.append({"type": "tool_result", **named, "text": text, "is_error": is_error})
    begun = {"created_at": _moment(info["time"]["created"])}
    key = f"opencode:{info['id']}"
    yield key, {"role": info["role"], **begun, "content": _texts(shown, "text"), "parts": shown}
    if results:
        content = "\n".join(each["text"] for each in results)
        yield f"{key}:results", {"role": "tool", **begun, "content": content, "parts": results}


def _of_pi(line: Row) -> Iterator[tuple[str, Row]]:
    if line["type"] != "message" or line["message"]["role"] == "system":
        return
    message = line["message"]
    given = message.get("content")
    if given is None:
        given = "\n".join(filter(None, (message.get(name) for name in ("command", "output", "summary"))))
    blocks = [{"type": "text", "text": given}] if isinstance(given, str) else given
    parts = [_block_of_pi(block) for block in blocks]
    row: dict[str, Any] = {"created_at": _moment(message["timestamp"])}
    if message["role"] == "toolResult":
        text = _texts(blocks, "text")
        named = {"id": message["toolCallId"], "name": message["toolName"]}
        result = {"type": "tool_result", **named, "text": text, "is_error": bool(message.get("isError"))}
        images = [part for part in parts if part["type"] == "image"]
        row |= {"role": "tool", "content": text, "parts": [result, *images]}
    else:
        role = "assistant" if message["role"] == "assistant" else "user"
        row |= {"role": role, "content": _texts(parts, "text"), "parts": parts}
    yield _key_of_pi(message), row


def _block_of_pi(block: Row) -> dict[str, Any]:
    match block["type"]:
        case "thinking":
            return {"type": "reasoning", "text": block["thinking"]}
        case "toolCall":
            return {"type": "tool_call", "id": block["id"], "name": block["name"], "input": block["arguments"]}
        case "image":
            mime = block["mimeType"]
            return {"type": "image", "mime": mime, "url": f"data:{mime};base64,{block['data']}"}
    return {"type": "text", "text": block.get("text") or ""}


def _key_of_pi(message: Row) -> str:
    """Return a message's key in the extension: a hash of JSON in JavaScript's form."""
    known = [_as_javascript(message.get(name)) for name in _KEY_OF_PI]
    text = json.dumps(known, ensure_ascii=False, separators=(",", ":"))
    text = _STRING_OR_SMALL.sub(_small_as_javascript, text)
    text = _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return f"pi:{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def _as_javascript(value: Any) -> Any:
    """Convert floats to ints where JavaScript writes them as integers."""
    if isinstance(value, dict):
        return {key: _as_javascript(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_javascript(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


def _small_as_javascript(found: re.Match[str]) -> str:
    """Write a number below 0.0001 as JavaScript does; a string stays as it is."""
    if found["exponent"] is None:
        return found[0]
    exponent = int(found["exponent"])
    return f"{found['digits']}e-{exponent}" if exponent > 6 else format(Decimal(found[0]), "f")


def _texts(pieces: list[Any], kind: str) -> str:
    return "\n".join(each.get("text") or "" for each in pieces if each["type"] == kind)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _moment(milliseconds: float) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
