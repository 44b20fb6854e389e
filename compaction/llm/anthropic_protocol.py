"""The Anthropic messages protocol: build requests, read replies. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from compaction.llm.failures import count_in, error_in, model_name, read_json
from compaction.llm.types import (
    BadAnswer,
    ContextLength,
    Endpoint,
    HttpRequest,
    Prompt,
    Reply,
    Usage,
)

_VERSION = "2023-06-01"
_PATH = "/v1/messages"

_CUT = {
    "max_tokens": "the answer was cut at the limit of output tokens",
    "refusal": "the vendor withheld the answer",
    "pause_turn": "the answer was paused before its end",
    "tool_use": "the answer calls a tool, and there is none",
}


def request_of(endpoint: Endpoint, prompt: Prompt) -> HttpRequest:
    """The request that asks this prompt; the base URL may end in /v1 or not."""
    base = endpoint.base_url.rstrip("/").removesuffix(_PATH).removesuffix("/v1")
    body = {
        "model": endpoint.model,
        "max_tokens": endpoint.max_output_tokens,
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        **endpoint.extra,
    }
    headers = {"content-type": "application/json", "anthropic-version": _VERSION}
    if endpoint.key:
        headers["x-api-key"] = endpoint.key
    return HttpRequest(
        url=base + _PATH,
        headers=headers,
        body=json.dumps({key: value for key, value in body.items() if value is not None}).encode(),
    )


def reply_of(endpoint: Endpoint, body: bytes) -> Reply:
    """The text of the answer, without its thinking; BadAnswer if there is none."""
    payload = read_json(body)
    counts = payload.get("usage")
    usage = Usage(
        # What came from, or went into, the vendor's cache was read too.
        tokens_in=sum(
            count_in(counts, name)
            for name in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        ),
        tokens_out=count_in(counts, "output_tokens"),
    )
    blocks = payload.get("content")
    if not isinstance(blocks, list):
        failure = error_in(payload)
        raise failure if failure is not None else BadAnswer("the answer is not in the protocol", usage=usage)
    stop = payload.get("stop_reason")
    if stop == "model_context_window_exceeded":
        raise ContextLength("the prompt leaves no room for the answer", usage=usage)
    if isinstance(stop, str) and stop in _CUT:
        raise BadAnswer(_CUT[stop], usage=usage)
    texts = (block.get("text") for block in blocks if isinstance(block, Mapping) and block.get("type") == "text")
    text = "".join(text for text in texts if isinstance(text, str))
    if not text.strip():
        raise BadAnswer("the answer holds no text", usage=usage)
    return Reply(
        text=text,
        model=model_name(payload, endpoint.model),
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
    )
