"""What a caller may say to the store: names, types and bounds, for every face alike. Defaults are the services' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, cached_property
from typing import Any, Self, cast

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty

from conversations.content.lossless_values import MAX_NAME
from conversations.errors import Invalid
from conversations.formats import READERS, Format, detect
from conversations.formats.fields import noun_of
from conversations.formats.native import Misfit, from_native
from conversations.param_fields import (
    Bytes,
    Choice,
    ConversationId,
    Flag,
    JsonObject,
    MessageId,
    MessageList,
    Overrides,
    Readable,
    Sha256,
    Text,
    WholeNumber,
)
from conversations.types import NewMessage

_KEY = "idempotency_key"
# Whose contents may be lists that look the same.
_OF_BLOCKS = (Format.OPENAI_CHAT, Format.ANTHROPIC)
# A larger file is read piece by piece.
MOST_BYTES_READ = 8 * 1024**2


class Params(serializers.Serializer):
    """The arguments of one service method. A name that is not among them is refused, not passed over."""

    @classmethod
    @cache
    def prototype(cls) -> Self:
        """One instance for all: validation keeps nothing in it, and making fields takes longer than using them."""
        return cls()

    @classmethod
    def read_from(cls, texts: Mapping[str, Any]) -> dict[str, Any]:
        """What was given where everything is a text, as in a query: numbers and flags are read, by the types of fields.

        A text that is none stays one, for `accepted` to refuse.
        """
        fields = cls.prototype().by_name
        return {name: _read(fields.get(name), value) for name, value in texts.items()}

    @classmethod
    def accepted(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was given, as the service takes it; Invalid, with `errors` by field, if it cannot be right."""
        params = cls.prototype()
        try:
            return cast("dict[str, Any]", params.validate(params.to_internal_value(given)))
        except ValidationError as wrong:
            errors = dict(_flat(wrong.detail))
            detail = " ".join(f"{name}: {' '.join(texts)}" for name, texts in list(errors.items())[:3])
            raise Invalid(detail, code="invalid_params", errors=errors) from None

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Each value as its field says. DRF's own loop provides for forms and models, and takes three times as long."""
        unknown = [str(name)[:80] for name in data if name not in self.by_name]
        if unknown:
            known = f"There is no such field here; those are {', '.join(self.by_name)}."
            raise ValidationError({name: [known] for name in unknown[:10]})
        values, wrong = {}, {}
        for name, field in self.by_name.items():
            if name in data or name in self.awaited:
                try:
                    values[name] = field.run_validation(data.get(name, empty))
                except ValidationError as refusal:
                    wrong[name] = refusal.detail
        if wrong:
            raise ValidationError(wrong)
        return values

    @cached_property
    def by_name(self) -> dict[str, serializers.Field]:
        return dict(self.fields)

    @cached_property
    def awaited(self) -> frozenset[str]:
        """The fields that say something also where nothing is given: a refusal, or what is taken instead."""
        return frozenset(name for name, field in self.by_name.items() if field.required or field.default is not empty)


def _read(field: serializers.Field | None, value: Any) -> Any:
    if isinstance(value, list) and isinstance(field, serializers.ListField):
        return [_read(field.child, each) for each in value]
    return field.read(value) if isinstance(value, str) and isinstance(field, Readable) else value


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """DRF's nested errors as sentences by field."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flat(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, [str(each) for each in detail]


_OF_A_NEW_ONE = "A conversation that exists keeps its own, as the answer shows."


class OpenConversationParams(Params):
    session_id = Text(max_length=MAX_NAME, help_text="Your own name for the conversation, unique in the workspace.")
    title = Text(required=False, allow_null=True, max_length=MAX_NAME, help_text=f"What people see. {_OF_A_NEW_ONE}")
    metadata = JsonObject(required=False, allow_null=True, help_text=f"Anything of yours. {_OF_A_NEW_ONE}")
    overrides = Overrides(
        required=False,
        allow_null=True,
        help_text=f"Settings of its own, such as fresh_tail_count. {_OF_A_NEW_ONE}",
    )


class ConversationParams(Params):
    conversation_id = ConversationId(help_text="The conversation.")


class FindConversationParams(Params):
    session_id = Text(help_text="Your own name for the conversation.")


class ListConversationsParams(Params):
    after_id = WholeNumber(required=False, help_text="Only conversations behind this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class ConfigureConversationParams(ConversationParams):
    overrides = Overrides(help_text="The settings of its own, in place of those it had, such as fresh_tail_count.")


class AppendMessagesParams(ConversationParams):
    messages = MessageList(help_text="1 to 1000 messages, oldest first.")
    format = Choice(
        choices=list(READERS),
        required=False,
        help_text="What the messages look like: LCM's own form, the neutral form, OpenAI chat completions, items of "
        "OpenAI's Responses API, or Anthropic messages. In any of them a message may have an `idempotency_key`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        read = READERS[attrs.pop("format", Format.LCM)]
        attrs["messages"] = [_message(read, row, place) for place, row in enumerate(attrs["messages"])]
        return attrs


def _message(read: Callable[[Mapping[str, Any]], NewMessage], row: Any, place: int) -> NewMessage:
    where = f"messages[{place}]"
    try:
        if not isinstance(row, dict):
            raise Misfit("", f"A message is an object, not {noun_of(row)}.")
        return read(row) if read is from_native else _with_our_key(read, row)
    except Misfit as wrong:
        raise ValidationError(
            {f"{where}.{wrong.path}" if wrong.path else where: [wrong.sentence + _hint(row)]}
        ) from None
    except ValueError as wrong:
        raise ValidationError({where: [str(wrong)]}) from None


def _with_our_key(read: Callable[[Mapping[str, Any]], NewMessage], row: Mapping[str, Any]) -> NewMessage:
    """The message of a row in a foreign form, which has no word for the key that keeps it from being stored twice."""
    key = row.get(_KEY)
    if key is None:
        return read(row)
    if not isinstance(key, str):
        raise Misfit(_KEY, f"This must be a text, not {noun_of(key)}.")
    return replace(read({name: value for name, value in row.items() if name != _KEY}), idempotency_key=key)


def _hint(row: Any) -> str:
    """What to say beside messages of another form, whose names do not belong in our own."""
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
        # A list of contents without anything that only one of them has.
        forms = _OF_BLOCKS if isinstance(row.get("content"), list) else ()
    named = " or ".join(f'"{each}"' for each in forms)
    return f' This looks like a message in another form: say so with "format": {named}.' if forms else ""


class ListMessagesParams(ConversationParams):
    after_seq = WholeNumber(required=False, help_text="Only messages behind this seq.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class ListContextItemsParams(ConversationParams):
    after_ordinal = WholeNumber(required=False, allow_null=True, help_text="Only slots behind this ordinal.")
    limit = WholeNumber(required=False, min_value=1, max_value=10_000, help_text="The most to list.")


class MessageParams(Params):
    message_id = MessageId(help_text="The message, as 12 or msg_12.")


class GetMessageParams(MessageParams):
    whole = Flag(required=False, help_text="Put back what was too long for the message and became a file.")


class StoreFileParams(ConversationParams):
    content = Bytes(help_text="The file's bytes, as base64.")
    file_name = Text(required=False, allow_null=True, help_text="What the file is called.")
    mime_type = Text(required=False, allow_null=True, help_text="What kind of file it is, such as text/csv.")


class FileParams(Params):
    file_id = Text(max_length=200, help_text="The file.")


class ListFilesParams(Params):
    conversation_id = ConversationId(required=False, help_text="The conversation; all of the workspace without one.")
    before = Text(required=False, max_length=200, help_text="Only files behind this one, the newest being first.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class ReadFileParams(FileParams):
    offset = WholeNumber(required=False, help_text="How many bytes to pass over.")
    length = WholeNumber(
        default=MOST_BYTES_READ, min_value=1, max_value=MOST_BYTES_READ, help_text="The most bytes to give."
    )


class ReadFileLinesParams(FileParams):
    first_line = WholeNumber(required=False, min_value=1, help_text="The first line, counted from 1.")
    line_count = WholeNumber(required=False, min_value=1, max_value=10_000, help_text="The most lines to give.")


class BeginUploadParams(ConversationParams):
    byte_size = WholeNumber(help_text="How many bytes the whole file has.")
    file_name = Text(required=False, allow_null=True, help_text="What the file is called.")
    mime_type = Text(required=False, allow_null=True, help_text="What kind of file it is, such as text/csv.")
    sha256 = Sha256(required=False, allow_null=True, help_text="The SHA-256 of the whole file, in hex, to be checked.")


class ListUploadsParams(ConversationParams):
    before_upload = Text(required=False, max_length=200, help_text="Only uploads that were begun before this one.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class UploadParams(Params):
    upload_id = Text(max_length=200, help_text="The upload.")


class PutChunkParams(UploadParams):
    offset = WholeNumber(help_text="Where in the file the chunk begins: a multiple of chunk_bytes.")
    content = Bytes(help_text="The chunk's bytes, as base64.")
