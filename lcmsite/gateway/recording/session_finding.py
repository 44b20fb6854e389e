"""Find the session that a request belongs to, by what hosts send. Pure.

Without any of these, the messages themselves say it: the session in which their beginning is stored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from lcmsite.gateway.surfaces import Row

OWN_HEADER = "x-lcm-session-id"
_VENDOR_HEADER = re.compile(r"x-(?!lcm-|parent-)[a-z0-9-]+-session-id")
_VALUE = re.compile(r"[A-Za-z0-9_-]{8,200}")
# Subagents have the session of the thread that began them, and a thread of their own.
_OF_CODEX = ("thread-id", "session-id", "session_id", "conversation_id")
_OF_METADATA = re.compile(r"_session_([A-Za-z0-9_-]{8,200})$")
# What is kept of a request's headers to find its session; never a credential.
_HINTS = re.compile(
    r"user-agent|baggage|session[-_]id|thread-id|conversation_id|x-lcm-(?!api-key).+|x-(litellm|claude-code|codex|openai"
    r"|opencode|parent|session)[a-z-]*|x-[a-z0-9-]+-session-id"
)
_LONGEST = 400


@dataclass(frozen=True)
class Session:
    """The name of a session, what named it, and whose subagent it is."""

    name: str
    source: str
    # Of the session that opened this one for a subagent.
    parent: str | None = None


def hints_of(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that say something of the session."""
    return {name: value[:4000] for name, value in headers.items() if _HINTS.fullmatch(name)}


def session_of(headers: Mapping[str, str], body: Row) -> Session | None:
    """The session that a request names; None for one that names none."""
    found = next(_named(headers, body), None)
    if found is None:
        return None
    source, value = found
    name = value if source == OWN_HEADER else f"gateway/{value}"
    agent = headers.get("x-claude-code-agent-id", "")
    if _VALUE.fullmatch(agent) and agent != value:
        above = headers.get("x-claude-code-parent-agent-id", "")
        parent = f"{name}/{above}" if _VALUE.fullmatch(above) and above not in (agent, value) else name
        return Session(f"{name}/{agent}", "x-claude-code-agent-id", parent)
    parent_id = headers.get("x-parent-session-id") or headers.get("x-codex-parent-thread-id") or ""
    if _VALUE.fullmatch(parent_id) and parent_id != value:
        return Session(name, source, f"gateway/{parent_id}")
    return Session(name, source)


def _named(headers: Mapping[str, str], body: Row) -> Iterator[tuple[str, str]]:
    """What names the session, the surest first."""
    own = headers.get(OWN_HEADER, "").strip()
    if own and len(own) <= _LONGEST and own.isprintable():
        yield OWN_HEADER, own
    of_vendors = sorted(name for name in headers if _VENDOR_HEADER.fullmatch(name))
    names = ["x-litellm-trace-id", "x-litellm-session-id", *of_vendors]
    # What embeds Codex has a user agent of its own.
    if "codex" in headers.get("user-agent", "").lower() or any(name.startswith("x-codex-") for name in headers):
        names += _OF_CODEX
    for name in (*names, "x-session-id", "x-session-affinity"):
        if _VALUE.fullmatch(headers.get(name, "")):
            yield name, headers[name]
    yield from _in_body(body)
    for member in headers.get("baggage", "").split(","):
        key, _, value = member.partition(";")[0].partition("=")
        if key.strip() == "session.id" and _VALUE.fullmatch(unquote(value.strip())):
            yield "baggage", unquote(value.strip())
    if isinstance(body.get("prompt_cache_key"), str) and _VALUE.fullmatch(body["prompt_cache_key"]):
        yield "prompt_cache_key", body["prompt_cache_key"]


def _in_body(body: Row) -> Iterator[tuple[str, str]]:
    given = body.get("metadata")
    metadata: Mapping[str, Any] = given if isinstance(given, dict) else {}
    candidates = {
        "metadata.user_id": _session_in(metadata.get("user_id")),
        "litellm_session_id": body.get("litellm_session_id"),
        "metadata.session_id": metadata.get("session_id"),
    }
    for source, value in candidates.items():
        if isinstance(value, str) and _VALUE.fullmatch(value):
            yield source, value


def _session_in(user_id: Any) -> Any:
    """The session in the user id of Claude Code: JSON, or a text that ends with it."""
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{"):
        try:
            found = json.loads(user_id)
        except ValueError:
            return None
        return found.get("session_id") if isinstance(found, dict) else None
    found_at_end = _OF_METADATA.search(user_id)
    return found_at_end[1] if found_at_end else None
