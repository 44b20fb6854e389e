"""Params of the store's operations; defaults are those of the services."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails

from conversations import param_fields
from conversations.formats import (
    MESSAGE_FIELDS,
    PART_FIELDS,
    Format,
    as_fields,
    detect,
    read_message,
    require_own_format,
)
from conversations.param_fields import (
    MOST_ON_A_PAGE,
    NEXT,
    ONLY_THIS,
    WHOLE,
    Bytes,
    ConversationId,
    Cursor,
    Flag,
    Identifier,
    JsonObject,
    JsonText,
    Limit,
    MessageId,
    Moment,
    Name,
    OneOf,
    Overrides,
    Params,
    Positive,
    Sha256,
    Text,
    WholeNumber,
    optional,
    path_of,
)
from conversations.types import NewMessage, ParentLink

# Formats whose contents may be lists that look the same.
_OF_BLOCKS = (Format.OPENAI_CHAT, Format.ANTHROPIC)
# The most bytes of one read.
MOST_BYTES_READ = 8 * 1024**2
# The most lines of one read.
MOST_LINES_READ = 10_000
MOST_ITEMS = 10_000

_EXPECTED = "Fail with stale_head unless the head is at this seq; 0 if nothing has been appended yet."
_MIME_TYPE = "The MIME type of the file, such as text/csv. Default: guessed from the name and the content."
_OF_A_NEW_ONE = "Used only for a new conversation; an existing one keeps its own."


class OpenConversationParams(Params):
    session_id: Name = Field(description="Your own name for the conversation, unique in the workspace.")
    title: Name | None = optional(f"The title that people see. {_OF_A_NEW_ONE}")
    metadata: JsonObject | None = optional(f"Your own metadata, as a JSON object. {_OF_A_NEW_ONE}")
    overrides: Overrides | None = optional(
        f"Settings for this conversation alone, such as fresh_tail_count. {_OF_A_NEW_ONE}"
    )
    project: Name | None = optional(
        "The project that the conversation belongs to; created at its first use. It cannot be changed later."
    )
    parent_session_id: Name | None = optional("The session_id of the conversation that this one was opened from.")
    parent_link: Annotated[ParentLink, OneOf] | None = optional(
        "The relation of this conversation to its parent: subagent or fork. Default: subagent."
    )


class NoParams(Params):
    """No params: the operation covers everything that the caller may see."""


class PageParams(Params):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ConversationParams(Params):
    conversation_id: ConversationId = Field(description="The conversation.")


class ConversationPageParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class FindConversationParams(Params):
    session_id: Text = Field(description="Your own name for the conversation.")


class ListConversationsParams(Params):
    project: Name = optional("Only conversations of this project.")
    session_prefix: Name = optional("Only conversations whose session_id begins with this text.")
    has_metadata: JsonText = optional("Only conversations whose metadata has these values: a JSON object, as text.")
    updated_since: Moment = optional("Only conversations changed or appended to at this time or later.")
    newest_first: Flag = optional("List the most recently opened conversations first.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ChangeConversationParams(ConversationParams):
    title: Name = optional("The new title that people see.")
    metadata: JsonObject = optional("Your own metadata, as a JSON object. It replaces all previous metadata.")


class ConfigureConversationParams(ConversationParams):
    overrides: Overrides = Field(
        description="Settings for this conversation alone, such as fresh_tail_count. They replace all previous ones."
    )


def _read(row: Any, info: ValidationInfo) -> Any:
    """The fields to validate as a `NewMessage`; a foreign format is parsed into one."""
    form = info.data.get("format") or Format.LCM
    if form is Format.LCM or not isinstance(row, dict):
        return as_fields(row)
    require_own_format(row, form)
    return read_message(row, form)


def _require_few_values(given: Any) -> Any:
    """Raise ValueError for messages with more values and fields than are validated."""
    rows = given if isinstance(given, list) else []
    count = len(rows)
    for row in rows:
        if isinstance(row, dict):
            parts = row.get("parts")
            parts = parts if isinstance(parts, list) else []
            count += len(row) + len(parts) + sum(len(part) for part in parts if isinstance(part, dict))
    if count > param_fields.MOST_VALUES:
        raise ValueError(f"{count:,} values are too many for one request")
    return given


FewValues = BeforeValidator(_require_few_values)
IncomingMessage = Annotated[NewMessage, BeforeValidator(_read)]


class AppendMessagesParams(ConversationParams):
    # Declared before `messages`, whose validator needs it.
    format: Annotated[Format, OneOf] = optional(
        "The format of the messages: LCM's own format, the neutral format, OpenAI chat completions, items of "
        "OpenAI's Responses API, or Anthropic messages. In every format a message may have an `idempotency_key`.",
        # Not passed on: the service gets parsed messages.
        exclude=True,
    )
    messages: Annotated[list[IncomingMessage], FewValues] = Field(description="1 to 1000 messages, oldest first.")
    expected_seq: WholeNumber = optional(_EXPECTED)

    @classmethod
    def fields_beside(cls, error: ErrorDetails) -> Collection[str]:
        match len(error["loc"]):
            case 1:
                return cls.model_fields
            case 3:
                return sorted(MESSAGE_FIELDS)
            case _:
                return sorted(PART_FIELDS)

    @classmethod
    def errors_of(cls, wrong: ValidationError, given: Mapping[str, Any]) -> dict[str, list[str]]:
        """The errors by field; that of a message suggests the format it seems to have."""
        errors = super().errors_of(wrong, given)
        found = wrong.errors(include_url=False)[0]
        if found["loc"][0] == "messages" and len(found["loc"]) > 1 and not given.get("format"):
            errors[path_of(found)][0] += _hint(given["messages"][found["loc"][1]])
        return errors


def _hint(row: Any) -> str:
    """A sentence that names the format a message seems to have; "" if unknown."""
    try:
        form = detect(row)
    except ValueError:
        return ""
    parts = row.get("parts")
    if form is not None and form != Format.NEUTRAL:
        forms: tuple[Format, ...] = (form,)
    elif isinstance(parts, list) and any(isinstance(part, dict) and "type" in part for part in parts):
        forms = (Format.NEUTRAL,)
    else:
        # A list as content occurs in both formats, and nothing else tells them apart.
        forms = _OF_BLOCKS if isinstance(row.get("content"), list) else ()
    named = " or ".join(f'"{each}"' for each in forms)
    return f' This looks like a message in another format: add "format": {named}.' if forms else ""


class MoveHeadParams(ConversationParams):
    head_seq: WholeNumber = Field(description="The seq of the message that the next one is to follow; 0 to start over.")
    expected_seq: WholeNumber = optional(_EXPECTED)
    reason: Name = optional("The reason for the move, in a word or two, such as edit, regenerate or clear.")


class ForkParams(ConversationParams):
    session_id: Name = Field(description="Your own name for the new conversation, unique in the workspace.")
    at_seq: WholeNumber = optional("The seq of the last message that both conversations share. Default: the head.")
    title: Name = optional("The title of the new conversation.")


class AppendEntriesParams(ConversationParams):
    entries: Annotated[list[JsonObject], FewValues] = Field(
        description="1 to 1000 raw entries of the host's transcript, oldest first."
    )
    subpath: Name = optional("The transcript file of these entries, such as a subagent's. Default: the session's own.")


class ListEntriesParams(ConversationParams):
    subpath: Name = optional("The transcript file, such as a subagent's. Default: the session's own.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ListMessagesParams(ConversationParams):
    after_seq: WholeNumber = optional("Only messages after this seq.")
    limit: Limit = optional(MOST_ON_A_PAGE)
    cursor: Cursor = optional(NEXT)


class ListContextItemsParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS), WHOLE] = optional(MOST_ON_A_PAGE)


class MessageParams(Params):
    message_id: MessageId = Field(description="The id of the message, as 12 or msg_12.")


class GetMessageParams(MessageParams):
    whole: Flag = optional("Restore long texts that were moved from the message to files.")


class StoreFileParams(ConversationParams):
    content: Bytes = Field(description="The file's bytes, as base64.")
    file_name: Text | None = optional("The name of the file.")
    mime_type: Text | None = optional(_MIME_TYPE)


class FileParams(Params):
    file_id: Identifier = Field(description="The file (file_...).")


class ListFilesParams(Params):
    conversation_id: ConversationId = optional(ONLY_THIS)
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional(MOST_ON_A_PAGE)


class ReadFileParams(FileParams):
    offset: WholeNumber = optional("The number of bytes to skip.")
    length: Annotated[int, Field(ge=1, le=MOST_BYTES_READ), WHOLE] = Field(
        MOST_BYTES_READ, description="Maximum number of bytes to return."
    )


class ReadFileLinesParams(FileParams):
    first_line: Positive = optional("The first line, counted from 1.")
    line_count: Annotated[int, Field(ge=1, le=MOST_LINES_READ), WHOLE] = optional("Maximum number of lines to return.")


class BeginUploadParams(ConversationParams):
    byte_size: WholeNumber = Field(description="The size of the whole file in bytes.")
    file_name: Text | None = optional("The name of the file.")
    mime_type: Text | None = optional(_MIME_TYPE)
    sha256: Sha256 | None = optional("The SHA-256 of the whole file, in hex, checked when the upload is finished.")


class UploadParams(Params):
    upload_id: Identifier = Field(description="The upload (upload_...).")


class PutChunkParams(UploadParams):
    offset: WholeNumber = Field(description="The offset in the file where the chunk begins: a multiple of chunk_bytes.")
    content: Bytes = Field(description="The chunk's bytes, as base64.")
