"""The two protocols of vendors: build requests, read replies. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from compaction.llm.failures import count_in, error_in, model_name, read_json
from compaction.llm.types import BadAnswer, ContextLength, Endpoint, HttpRequest, Prompt, Protocol, Reply, Usage

_CHAT_PATH = "/chat/completions"
# Here the older name of the limit is refused by newer models; nearly everywhere else only the older one is known.
_NEW_LIMIT_AT = ("api.openai.com", ".openai.azure.com")

_ANTHROPIC_PATH = "/v1/messages"
_ANTHROPIC_VERSION = "2023-06-01"

# How each vendor says that an answer did not end by itself.
_CUT = {
    "length": "the answer was cut at the limit of output tokens",
    "max_tokens": "the answer was cut at the limit of output tokens",
    "content_filter": "the vendor withheld the answer",
    "refusal": "the vendor withheld the answer",
    "pause_turn": "the answer was paused before its end",
    "tool_use": "the answer calls a tool, and there is none",
}


def request_of(endpoint: Endpoint, prompt: Prompt) -> HttpRequest:
    """The request for a prompt, in the endpoint's protocol."""
    build = _anthropic_request if endpoint.protocol is Protocol.ANTHROPIC else _chat_request
    url, headers, body = build(endpoint, prompt)
    return HttpRequest(url=url, headers={"content-type": "application/json", **headers}, body=json.dumps(body).encode())


def reply_of(endpoint: Endpoint, body: bytes) -> Reply:
    """The answer's reply without thinking; BadAnswer if it is cut off or missing."""
    payload = read_json(body)
    read = _anthropic_reply if endpoint.protocol is Protocol.ANTHROPIC else _chat_reply
    content, stop, usage = read(payload)
    if content is _NO_REPLY:
        failure = error_in(payload)
        raise failure if failure is not None else BadAnswer("the answer is not in the protocol", usage=usage)
    if stop == "model_context_window_exceeded":
        raise ContextLength("the prompt leaves no room for the answer", usage=usage)
    if isinstance(stop, str) and stop in _CUT:
        raise BadAnswer(_CUT[stop], usage=usage)
    text = _text(content)
    if not text.strip():
        raise BadAnswer("the answer holds no text", usage=usage)
    return Reply(text=text, model=model_name(payload, endpoint.model), usage=usage)


_NO_REPLY = object()
Request = tuple[str, dict[str, str], dict[str, Any]]


def _chat_request(endpoint: Endpoint, prompt: Prompt) -> Request:
    """The base URL usually ends in /v1."""
    base = endpoint.base_url.rstrip("/")
    host = urlsplit(base).hostname or ""
    limit = "max_completion_tokens" if host.endswith(_NEW_LIMIT_AT) else "max_tokens"
    # No temperature: reasoning models refuse it, and no answer is taken on trust anyway.
    body = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
        limit: endpoint.max_output_tokens,
        "stream": False,
    }
    headers = {"authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
    return base if base.endswith(_CHAT_PATH) else base + _CHAT_PATH, headers, body


def _chat_reply(payload: dict[str, Any]) -> tuple[Any, Any, Usage]:
    usage = Usage(
        tokens_in=count_in(payload.get("usage"), "prompt_tokens", "input_tokens"),
        tokens_out=count_in(payload.get("usage"), "completion_tokens", "output_tokens"),
    )
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        return _NO_REPLY, None, usage
    return message.get("content"), choice.get("finish_reason"), usage


def _anthropic_request(endpoint: Endpoint, prompt: Prompt) -> Request:
    """The base URL may end in /v1 or not."""
    base = endpoint.base_url.rstrip("/").removesuffix(_ANTHROPIC_PATH).removesuffix("/v1")
    body = {
        "model": endpoint.model,
        "max_tokens": endpoint.max_output_tokens,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
    }
    headers = {"anthropic-version": _ANTHROPIC_VERSION}
    if endpoint.key:
        headers["x-api-key"] = endpoint.key
    return base + _ANTHROPIC_PATH, headers, body


def _anthropic_reply(payload: dict[str, Any]) -> tuple[Any, Any, Usage]:
    counts = payload.get("usage")
    # What came from, or went into, the vendor's cache was read too.
    read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    usage = Usage(sum(count_in(counts, name) for name in read), count_in(counts, "output_tokens"))
    blocks = payload.get("content")
    return blocks if isinstance(blocks, list) else _NO_REPLY, payload.get("stop_reason"), usage


def _text(content: Any) -> str:
    """The text of an answer: a string, or its text parts. Reasoning is left out."""
    if isinstance(content, str):
        return content
    parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if part.get("type", "text") == "text")
    return "".join(text for text in texts if isinstance(text, str))
