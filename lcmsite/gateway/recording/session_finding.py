"""Find the session that a request names in its headers or body. Pure.

If a request names no session, `locating.py` looks for the session whose stored messages the request continues.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from conversations.content.lossless_values import MAX_NAME, is_name
from conversations.errors import Invalid
from lcmsite.gateway.surfaces import Row

OWN_HEADER = "x-lcm-session-id"
_VENDOR_HEADER = re.compile(r"x-(?!lcm-|parent-)[a-z0-9-]+-session-id")
_VALUE = re.compile(r"[A-Za-z0-9_-]{8,200}")
# The thread id comes first: a subagent has its own thread id, but the session id of the thread that started it.
_CODEX_HEADERS = ("thread-id", "session-id", "session_id", "conversation_id")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SESSION_IN_USER_ID = re.compile(r"_session_([A-Za-z0-9_-]{8,200})$")
# The headers of a request that are stored: those read here and by `side_requests.py`. It is an allow-list, because
# vendors and proxies put credentials in headers of any name.
_HINTS = frozenset(
    (
        OWN_HEADER, "x-litellm-trace-id", "x-litellm-session-id", *_CODEX_HEADERS, "x-session-id", "x-session-affinity",
        "user-agent", "baggage", "x-parent-session-id", "x-claude-code-agent-id", "x-claude-code-parent-agent-id",
        "x-codex-parent-thread-id", "x-codex-turn-metadata", "x-codex-window-id", "x-openai-subagent", "x-lcm-side",
    )
)  # fmt: skip


@dataclass(frozen=True)
class Session:
    """A session's name, what named it, and its parents if it is a subagent's."""

    name: str
    source: str
    # The name of the session that started this one for a subagent.
    parent: str | None = None
    # The parent's own parent, if the parent is a subagent's, too.
    grandparent: str | None = None


def hints_of(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that identify a session, shortened."""
    return {name: value[:4000] for name, value in headers.items() if name in _HINTS or _VENDOR_HEADER.fullmatch(name)}


def require_own_session(headers: Mapping[str, str]) -> None:
    """Raise Invalid if the header of LCM itself holds no name of a session."""
    own = headers.get(OWN_HEADER, "").strip()
    if own and not is_name(own):
        raise Invalid(f"{OWN_HEADER}: a session's name has at most {MAX_NAME} characters, and no NUL.")


def session_of(headers: Mapping[str, str], body: Row) -> Session | None:
    """Return the session that a request names, or None."""
    found = next(_candidates(headers, body), None)
    if found is None:
        return None
    source, value = found
    name = value if source == OWN_HEADER else f"gateway/{value}"
    agent = headers.get("x-claude-code-agent-id", "")
    if _VALUE.fullmatch(agent) and agent != value:
        parent_agent = headers.get("x-claude-code-parent-agent-id", "")
        if _VALUE.fullmatch(parent_agent) and parent_agent not in (agent, value):
            return Session(_below(name, agent), "x-claude-code-agent-id", _below(name, parent_agent), name)
        return Session(_below(name, agent), "x-claude-code-agent-id", name)
    parent_id = headers.get("x-parent-session-id") or headers.get("x-codex-parent-thread-id") or ""
    if _VALUE.fullmatch(parent_id) and parent_id != value:
        return Session(name, source, f"gateway/{parent_id}")
    return Session(name, source)


def _below(name: str, agent: str) -> str:
    """The name of a subagent's session; without its session's name if that is long."""
    below = f"{name}/{agent}"
    return below if len(below) <= MAX_NAME else f"gateway/{agent}"


def _candidates(headers: Mapping[str, str], body: Row) -> Iterator[tuple[str, str]]:
    """Yield candidates as (source, value), the most reliable first."""
    own = headers.get(OWN_HEADER, "").strip()
    if is_name(own):
        yield OWN_HEADER, own
    vendor_headers = sorted(name for name in headers if _VENDOR_HEADER.fullmatch(name))
    names = ["x-litellm-trace-id", "x-litellm-session-id", *vendor_headers]
    # Programs that embed Codex send their own user agent.
    if "codex" in headers.get("user-agent", "").lower() or any(name.startswith("x-codex-") for name in headers):
        names += _CODEX_HEADERS
    for name in (*names, "x-session-id", "x-session-affinity"):
        if _VALUE.fullmatch(headers.get(name, "")):
            yield name, headers[name]
    yield from _body_candidates(body)
    for member in headers.get("baggage", "").split(","):
        key, _, value = member.partition(";")[0].partition("=")
        if key.strip() == "session.id" and _VALUE.fullmatch(unquote(value.strip())):
            yield "baggage", unquote(value.strip())
    cache_key = body.get("prompt_cache_key")
    # Another value may name a prompt that many users share. Agents use their session's id.
    if isinstance(cache_key, str) and _UUID.fullmatch(cache_key):
        yield "prompt_cache_key", cache_key


def _body_candidates(body: Row) -> Iterator[tuple[str, str]]:
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
    """Return the session in Claude Code's user id: JSON, or a text that ends with it."""
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{"):
        try:
            found = json.loads(user_id)
        except (ValueError, RecursionError):
            return None
        return found.get("session_id") if isinstance(found, dict) else None
    found_at_end = _SESSION_IN_USER_ID.search(user_id)
    return found_at_end[1] if found_at_end else None
