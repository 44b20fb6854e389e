"""What a caller may say to the store: names, types and bounds, for every face alike. Defaults are the services' own."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, NoReturn, Self

from rest_framework import serializers
from rest_framework.exceptions import ValidationError

from conversations.errors import Invalid
from conversations.interchange import READERS, Format
from conversations.interchange.fields import noun_of
from conversations.interchange.native import Misfit
from conversations.types import NewMessage

# The largest number that a bigint column holds.
MOST = 2**63 - 1

# A larger file is read piece by piece.
MOST_BYTES_READ = 8 * 1024**2

# One way to write each number: 1.0, +1, 01 and 1_0 would be other names for what has one.
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")


class Params(serializers.Serializer):
    """The arguments of one service method. A name that is not among them is refused, not passed over."""

    @classmethod
    @cache
    def prototype(cls) -> Self:
        """One instance for all: validation keeps nothing in it, and making fields takes longer than using them."""
        return cls()

    @classmethod
    def accepted(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was given, as the service takes it; Invalid, with `errors` by field, if it cannot be right."""
        try:
            return cls.prototype().run_validation(given)
        except ValidationError as wrong:
            errors = dict(_flat(wrong.detail))
            detail = " ".join(f"{name}: {' '.join(texts)}" for name, texts in list(errors.items())[:3])
            raise Invalid(detail, code="invalid_params", errors=errors) from None

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        unknown = [str(name)[:80] for name in data if name not in self.fields]
        if unknown:
            known = f"There is no such field here; those are {', '.join(self.fields)}."
            raise ValidationError({name: [known] for name in unknown[:10]})
        return super().to_internal_value(data)


def _flat(detail: Any, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """DRF's nested errors as sentences by field."""
    if isinstance(detail, Mapping):
        for name, inner in detail.items():
            yield from _flat(inner, f"{path}.{name}" if path else str(name))
    else:
        yield path, [str(each) for each in detail]


class Text(serializers.CharField):
    """A text as it is: blanks at its ends stay, and a number is not one."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            _refuse(f"This must be a text, not {noun_of(data)}.")
        return super().to_internal_value(data)


class WholeNumber(serializers.IntegerField):
    """A whole number, as a number or as digits; by default one that a row can be numbered with."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": MOST, **options})

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool | float):
            _refuse(f"This must be a whole number, not {data!r}.")
        if isinstance(data, str) and not _WHOLE.fullmatch(data):
            _refuse(f"This must be a whole number in plain digits, not {data[:40]!r}.")
        return super().to_internal_value(data)


class Id(WholeNumber):
    """A row's number. One that no row could have is not refused here: it is as unknown as any other."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_value": None, **options})


class ConversationId(Id):
    """The number of a conversation."""


class MessageId(Id):
    """The number of a message, bare or as `msg_12`."""

    def to_internal_value(self, data: Any) -> int:
        return super().to_internal_value(data.removeprefix("msg_") if isinstance(data, str) else data)


class Several(serializers.ListField):
    """A few short values; where there are no lists, they are separated by commas or said one by one."""


class Moment(serializers.Field):
    """A moment in ISO 8601; one without a time zone is of UTC, a day is its beginning."""

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str):
            _refuse(f"This must be a moment in ISO 8601, not {noun_of(data)}.")
        try:
            moment = datetime.fromisoformat(data)
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            _refuse(f"This must be a moment in ISO 8601, such as 2026-01-31T09:00:00Z, not {data[:40]!r}.")


class JsonObject(serializers.Field):
    """A JSON object, kept as it is."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            _refuse(f"This must be an object, not {noun_of(data)}.")
        return data


class MessageList(serializers.Field):
    """Messages as a list of plain objects, which the reader of their format makes records of."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            _refuse(f"This must be a list of messages, not {noun_of(data)}.")
        return data


class Bytes(serializers.Field):
    """Bytes, which JSON cannot say, as base64."""

    def to_internal_value(self, data: Any) -> bytes:
        if not isinstance(data, str):
            _refuse(f"This must be bytes as base64, not {noun_of(data)}.")
        try:
            return base64.b64decode(data, validate=True)
        except ValueError:
            _refuse("This is not base64.")


def _refuse(sentence: str) -> NoReturn:
    raise ValidationError([sentence])


_OF_A_NEW_ONE = "A conversation that exists keeps its own, as the answer shows."


class OpenConversationParams(Params):
    session_id = Text(help_text="Your own name for the conversation, unique in the workspace.")
    title = Text(required=False, allow_null=True, help_text=f"What people see. {_OF_A_NEW_ONE}")
    metadata = JsonObject(required=False, allow_null=True, help_text=f"Anything of yours. {_OF_A_NEW_ONE}")
    overrides = JsonObject(
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
    overrides = JsonObject(help_text="The settings of its own, in place of those it had, such as fresh_tail_count.")


class AppendMessagesParams(ConversationParams):
    messages = MessageList(help_text="1 to 1000 messages, oldest first.")
    format = serializers.ChoiceField(
        choices=list(READERS),
        required=False,
        help_text="What the messages look like: LCM's own form, the neutral form, or OpenAI chat completions.",
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
        return read(row)
    except Misfit as wrong:
        raise ValidationError({f"{where}.{wrong.path}" if wrong.path else where: [wrong.sentence]}) from None
    except ValueError as wrong:
        raise ValidationError({where: [str(wrong)]}) from None


class ListMessagesParams(ConversationParams):
    after_seq = WholeNumber(required=False, help_text="Only messages behind this seq.")
    limit = WholeNumber(required=False, min_value=1, max_value=1000, help_text="The most to list.")


class MessageParams(Params):
    message_id = MessageId(help_text="The message, as 12 or msg_12.")


class StoreFileParams(ConversationParams):
    content = Bytes(help_text="The file's bytes, as base64.")
    file_name = Text(required=False, allow_null=True, help_text="What the file is called.")
    mime_type = Text(required=False, allow_null=True, help_text="What kind of file it is, such as text/csv.")


class FileParams(Params):
    file_id = Text(max_length=200, help_text="The file.")


class ReadFileParams(FileParams):
    offset = WholeNumber(required=False, help_text="How many bytes to pass over.")
    length = WholeNumber(
        default=MOST_BYTES_READ, min_value=1, max_value=MOST_BYTES_READ, help_text="The most bytes to give."
    )
