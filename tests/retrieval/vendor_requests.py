"""What the vendors' SDKs call a request, as far as a context is part of it."""

from __future__ import annotations

from anthropic.types import MessageParam, TextBlockParam
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict


@with_config(ConfigDict(strict=True, extra="forbid"))
class OpenAIRequest(TypedDict):
    messages: list[ChatCompletionMessageParam]


@with_config(ConfigDict(strict=True, extra="forbid"))
class OpenAIResponsesRequest(TypedDict):
    input: list[ResponseInputItemParam]


@with_config(ConfigDict(strict=True, extra="forbid"))
class AnthropicRequest(TypedDict):
    system: list[TextBlockParam]
    messages: list[MessageParam]


REQUESTS = {"openai": OpenAIRequest, "openai_responses": OpenAIResponsesRequest, "anthropic": AnthropicRequest}
