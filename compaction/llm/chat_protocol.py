"""The chat-completions protocol: build requests, read replies. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from compaction.llm.failures import count_in, error_in, model_name, read_json
from compaction.llm.types import BadAnswer, Endpoint, HttpRequest, Prompt, Reply, Usage

_PATH = "/chat/completions"

# Here the older name of the limit is refused by newer models; nearly everywhere else only the older one is known.
_NEW_LIMIT_AT = ("api.openai.com", ".openai.azure.com")


def request_of(endpoint: Endpoint, prompt: Prompt) -> HttpRequest:
    """The request for a prompt; the base URL usually ends in /v1."""
    base = endpoint.base_url.rstrip("/")
    host = urlsplit(base).hostname or ""
    limit = "max_completion_tokens" if host.endswith(_NEW_LIMIT_AT) else "max_tokens"
    # No temperature: reasoning models refuse it, and no answer is taken on trust anyway.
    body = {
        "model": endpoint.model,
        "messages": [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}],
        limit: endpoint.max_output_tokens,
        "stream": False,
        **endpoint.extra,
    }
    headers = {"content-type": "application/json"}
    if endpoint.key:
        headers["authorization"] = f"Bearer {endpoint.key}"
    return HttpRequest(
        url=base if base.endswith(_PATH) else base + _PATH,
        headers=headers,
        body=json.dumps({key: value for key, value in body.items() if value is not None}).encode(),
    )


def reply_of(endpoint: Endpoint, body: bytes) -> Reply:
    """The reply in the answer; BadAnswer if it is cut off, empty or none at all."""
    payload = read_json(body)
    usage = Usage(
        tokens_in=count_in(payload.get("usage"), "prompt_tokens", "input_tokens"),
        tokens_out=count_in(payload.get("usage"), "completion_tokens", "output_tokens"),
    )
    choices = payload.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        failure = error_in(payload)
        raise failure if failure is not None else BadAnswer("the answer is not in the protocol", usage=usage)
    finish = choice.get("finish_reason")
    if finish == "length":
        raise BadAnswer("the answer was cut at the limit of output tokens", usage=usage)
    if finish == "content_filter":
        raise BadAnswer("the vendor withheld the answer", usage=usage)
    text = _text(message.get("content"))
    if not text.strip():
        raise BadAnswer("the answer holds no text", usage=usage)
    return Reply(
        text=text,
        model=model_name(payload, endpoint.model),
        tokens_in=usage.tokens_in,
        tokens_out=usage.tokens_out,
    )


def _text(content: Any) -> str:
    """The text of a message: a string, or its text parts. Reasoning is left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = (part.get("text") for part in content if isinstance(part, Mapping) and part.get("type", "text") == "text")
    return "".join(text for text in texts if isinstance(text, str))
