"""Parameters of the store's operations; the services define the defaults."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo
from pydantic_core import ErrorDetails

from conversations.content.json_values import noun_of
from conversations.formats import MESSAGE_FIELDS, PART_FIELDS, READERS, Format, as_fields, detect
from conversations.param_fields import (
    NEXT,
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

_KEY = "idempotency_key"
# The formats whose `content` lists can look alike.
_OF_BLOCKS = (Format.OPENAI_CHAT, Format.ANTHROPIC)
# The most bytes in one answer: larger files are read in ranges.
MOST_BYTES_READ = 8 * 1024**2
# The most lines, or context items, in one answer.
MOST_LINES_READ = 10_000
MOST_ITEMS = 10_000

_OF_A_NEW_ONE = "Used only if the conversation is new; an existing one keeps its own, which the answer shows."


class OpenConversationParams(Params):
    session_id: Name = Field(description="Your own name for the conversation, unique in the workspace.")
    title: Name | None = optional(f"Title shown to people. {_OF_A_NEW_ONE}")
    metadata: JsonObject | None = optional(f"Any JSON object of your own. {_OF_A_NEW_ONE}")
    overrides: Overrides | None = optional(f"Settings for this conversation, such as fresh_tail_count. {_OF_A_NEW_ONE}")
    project: Name | None = optional(
        "The project that the conversation belongs to; created by its first use. It cannot be changed later."
    )
    parent_session_id: Name | None = optional("The conversation that this one was opened from.")
    parent_link: Annotated[ParentLink, OneOf] | None = optional(
        "How it relates to its parent: subagent (the default) or fork."
    )


class ConversationParams(Params):
    conversation_id: ConversationId = Field(description="The conversation.")


class FindConversationParams(Params):
    session_id: Text = Field(description="Your own name for the conversation.")


class ListConversationsParams(Params):
    project: Name = optional("Only conversations of this project.")
    session_prefix: Name = optional("Only conversations whose session_id begins with this.")
    has_metadata: JsonText = optional("Only conversations whose metadata has these values: a JSON object, as text.")
    updated_since: Moment = optional("Only conversations changed or appended to at this time or later.")
    newest_first: Flag = optional("Sort by time of creation, newest first.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class ChangeConversationParams(ConversationParams):
    title: Name = optional("New title, shown to people.")
    metadata: JsonObject = optional("New metadata, which replaces the stored object.")


class ConfigureConversationParams(ConversationParams):
    overrides: Overrides = Field(
        description="The conversation's own settings, such as fresh_tail_count; they replace all earlier ones."
    )


def _read(row: Any, info: ValidationInfo) -> Any:
    """Return a native message's fields, or parse a foreign one to a `NewMessage`."""
    form = info.data.get("format") or Format.LCM
    if form is Format.LCM or not isinstance(row, dict):
        return as_fields(row)
    # Foreign formats have no idempotency key, so it is removed before parsing.
    key = row.get(_KEY)
    if key is not None and not isinstance(key, str):
        raise ValueError(f"{_KEY} must be a text, not {noun_of(key)}.")
    message = READERS[form]({name: value for name, value in row.items() if name != _KEY})
    return message if key is None else replace(message, idempotency_key=key)


IncomingMessage = Annotated[NewMessage, BeforeValidator(_read)]


class AppendMessagesParams(ConversationParams):
    # Declared before `messages`, whose validator reads it.
    format: Annotated[Format, OneOf] = optional(
        "Format of the messages: LCM's own, the neutral format, OpenAI chat completions, items of "
        "OpenAI's Responses API, or Anthropic messages. In each format a message may have an `idempotency_key`.",
        # Not passed to the service, which takes `NewMessage` alone.
        exclude=True,
    )
    messages: list[IncomingMessage] = Field(description="1 to 1000 messages, oldest first.")
    expected_seq: WholeNumber = optional("Fail unless the head is at this seq; 0 if nothing has been appended yet.")

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
        """Return messages by field; the first may suggest another message format."""
        errors = super().errors_of(wrong, given)
        found = wrong.errors(include_url=False)[0]
        if found["loc"][0] == "messages" and len(found["loc"]) > 1 and not given.get("format"):
            errors[path_of(found)][0] += _hint(given["messages"][found["loc"][1]])
        return errors


def _hint(row: Any) -> str:
    """Suggest the format that a message looks like; empty if there is none."""
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
        # A content list without any feature that only one format has.
        forms = _OF_BLOCKS if isinstance(row.get("content"), list) else ()
    named = " or ".join(f'"{each}"' for each in forms)
    return f' This looks like a message in another form: say so with "format": {named}.' if forms else ""


class MoveHeadParams(ConversationParams):
    head_seq: WholeNumber = Field(description="Seq that the next append follows; 0 to start with an empty context.")
    expected_seq: WholeNumber = optional("Fail unless the head is at this seq; 0 if nothing has been appended yet.")
    reason: Name = optional("Reason in a word or two, such as edit, regenerate or clear.")


class ListBranchesParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class ForkParams(ConversationParams):
    session_id: Name = Field(description="Your own name for the new conversation, unique in the workspace.")
    at_seq: WholeNumber = optional("Seq of the last message that the fork shares; by default the head.")
    title: Name = optional("Title of the new conversation.")


class AppendEntriesParams(ConversationParams):
    entries: list[JsonObject] = Field(description="1 to 1000 unchanged entries of the host's transcript, oldest first.")
    subpath: Name = optional("The host's file of these entries, if not the session's own, such as a subagent's.")


class ListEntriesParams(ConversationParams):
    subpath: Name = optional("The host's file; by default the session's own.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class ListSubpathsParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class ListMessagesParams(ConversationParams):
    after_seq: WholeNumber = optional("Only messages after this seq.")
    limit: Limit = optional("The most to list.")
    cursor: Cursor = optional(NEXT)


class ListContextItemsParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Annotated[int, Field(ge=1, le=MOST_ITEMS), WHOLE] = optional("The most to list.")


class MessageParams(Params):
    message_id: MessageId = Field(description="The message, as 12 or msg_12.")


class GetMessageParams(MessageParams):
    whole: Flag = optional("Restore texts that were moved to files because they were too long.")


class StoreFileParams(ConversationParams):
    content: Bytes = Field(description="The file's bytes, as base64.")
    file_name: Text | None = optional("What the file is called.")
    mime_type: Text | None = optional("What kind of file it is, such as text/csv; guessed if not given.")


class FileParams(Params):
    file_id: Identifier = Field(description="The file.")


class ListFilesParams(Params):
    conversation_id: ConversationId = optional("Only files of this conversation; by default all of the workspace.")
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class ReadFileParams(FileParams):
    offset: WholeNumber = optional("Number of bytes to skip.")
    length: Annotated[int, Field(ge=1, le=MOST_BYTES_READ), WHOLE] = Field(
        MOST_BYTES_READ, description="The most bytes to return."
    )


class ReadFileLinesParams(FileParams):
    first_line: Positive = optional("The first line, counted from 1.")
    line_count: Annotated[int, Field(ge=1, le=MOST_LINES_READ), WHOLE] = optional("The most lines to return.")


class BeginUploadParams(ConversationParams):
    byte_size: WholeNumber = Field(description="Size of the whole file in bytes.")
    file_name: Text | None = optional("What the file is called.")
    mime_type: Text | None = optional("What kind of file it is, such as text/csv; guessed if not given.")
    sha256: Sha256 | None = optional("Expected SHA-256 of the whole file, in hex; checked when the upload is finished.")


class ListUploadsParams(ConversationParams):
    cursor: Cursor = optional(NEXT)
    limit: Limit = optional("The most to list.")


class UploadParams(Params):
    upload_id: Identifier = Field(description="The upload.")


class PutChunkParams(UploadParams):
    offset: WholeNumber = Field(description="Where in the file the chunk begins: a multiple of chunk_bytes.")
    content: Bytes = Field(description="The chunk's bytes, as base64.")
