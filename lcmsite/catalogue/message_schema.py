"""pydantic models of foreign message formats, only to document them in OpenAPI.

`conversations/formats` parses them, and keeps fields that are not named here. LCM's own format is `NewMessage`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, RootModel

from conversations.content.json_values import Name
from conversations.formats import Format
from conversations.formats.neutral import PART_TYPES
from conversations.types import Role
from lcmsite.catalogue.json_schema import COMPONENTS, Schema, components_of

IdempotencyKey = Annotated[
    Name | None, Field(description="Your own key, unique in the conversation: a message with it is stored once.")
]
Text = str | None


def _type_other_than(pattern: str) -> Any:
    """A `type` that does not match; a negated pattern, as clients lack look-aheads."""
    return Field(json_schema_extra={"not": {"pattern": pattern}})


class Foreign(BaseModel):
    model_config = ConfigDict(extra="allow")


class NeutralPart(Foreign):
    type: str = Field(json_schema_extra={"enum": list(PART_TYPES)})


class NeutralMessage(Foreign):
    """A message in LCM's neutral format, which imports read and exports write."""

    role: Role
    content: Text = None
    parts: list[NeutralPart] | None = None
    author: Name | None = None
    created_at: AwareDatetime | None = None
    meta: dict[str, Any] | None = None
    idempotency_key: IdempotencyKey = None
    session_id: Text = None
    seq: int | None = None


class ChatMessage(Foreign):
    """A message as OpenAI's chat completions API takes it."""

    role: Literal["user", "assistant", "system", "developer", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None
    name: Text = None
    idempotency_key: IdempotencyKey = None
    # LCM parses each of these fields for one role only, and keeps it unchanged for the others.
    tool_call_id: Any = Field(None, description="In a tool's message, the id of the call it answers.")
    tool_calls: Any = Field(None, description="In an assistant's message, its calls, as a list of objects.")


class AnthropicText(Foreign):
    type: Literal["text"]
    text: str


class AnthropicBlock(Foreign):
    type: Annotated[str, _type_other_than("^text$")] | None = None


class AnthropicMessage(Foreign):
    """A message of Anthropic's Messages API; with the role system, a system prompt."""

    role: Literal["user", "assistant", "system"]
    content: str | list[AnthropicText | AnthropicBlock]
    idempotency_key: IdempotencyKey = None


class ResponsesText(Foreign):
    type: Annotated[str, Field(pattern="text$")]
    text: str


class ResponsesRefusal(Foreign):
    type: Literal["refusal"]
    refusal: str


class ResponsesImage(Foreign):
    type: Literal["input_image"]
    image_url: Text = None


class ResponsesFile(Foreign):
    type: Literal["input_file"]
    filename: Text = None
    file_data: Text = None
    file_url: Text = None


class ResponsesPiece(Foreign):
    type: Annotated[str, _type_other_than("text$|^(refusal|input_image|input_file)$")] | None = None


Pieces = list[ResponsesText | ResponsesRefusal | ResponsesImage | ResponsesFile | ResponsesPiece]


class ResponsesThought(Foreign):
    text: Text = None


class ResponsesItem(Foreign):
    idempotency_key: IdempotencyKey = None


class ResponsesTurn(ResponsesItem):
    type: Literal["message", ""] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Pieces


class ResponsesReasoning(ResponsesItem):
    type: Literal["reasoning"]
    summary: list[ResponsesThought] | None = None
    content: list[ResponsesThought] | None = None


class ResponsesCall(ResponsesItem):
    type: Annotated[str, Field(pattern="_call$")]
    call_id: Text = None
    id: Text = None
    name: Text = None
    # Only function and MCP calls have them.
    arguments: Text = None


class ResponsesResult(ResponsesItem):
    type: Annotated[str, Field(pattern="_output$")]
    call_id: Text = None
    id: Text = None
    output: str | Pieces | dict[str, Any] | None = None


class ResponsesOther(ResponsesItem):
    type: Annotated[str, _type_other_than("^$|^message$|^reasoning$|_call$|_output$")]


class ResponsesMessage(
    RootModel[ResponsesTurn | ResponsesReasoning | ResponsesCall | ResponsesResult | ResponsesOther]
):
    """An item of OpenAI's Responses API: a message, thought, call or result."""


_FORMS: Mapping[Format, type[BaseModel]] = {
    Format.NEUTRAL: NeutralMessage,
    Format.OPENAI_CHAT: ChatMessage,
    Format.OPENAI_RESPONSES: ResponsesMessage,
    Format.ANTHROPIC: AnthropicMessage,
}


def foreign_messages() -> dict[str, Schema]:
    """The schemas of the foreign formats and their components, by name."""
    return components_of(list(_FORMS.values()), with_models=True)


def by_form(body: Schema) -> Schema:
    """The request body of an append as one schema per format; LCM's is the default."""
    names = {Format.LCM: "NewMessage"} | {form: model.__name__ for form, model in _FORMS.items()}
    return {"oneOf": [_of_form(body, form, name) for form, name in names.items()]}


def _of_form(body: Schema, form: Format, name: str) -> Schema:
    schema = deepcopy(body)
    properties = schema["properties"]
    schema["title"] = name.replace("Message", "Messages")
    described = {"description": properties["format"]["description"]}
    if form is Format.LCM:
        described["default"] = form
    else:
        schema["required"] = [*body["required"], "format"]
    properties["format"] = {"type": "string", "enum": [form], **described}
    properties["messages"]["items"] = {"$ref": f"{COMPONENTS}{name}"}
    return schema
