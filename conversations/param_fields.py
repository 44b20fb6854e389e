"""Types of params, and how each is validated, from JSON or from text.

A value in JSON must have the JSON type of its param. Values from a query, a path or a command line are text: they are
the ones named in the validation context, and are parsed as the param's type (`Params.accepted`).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic_core import ErrorDetails

from conversations.content.json_values import NOUNS, noun_of, whole_number
from conversations.content.lossless_values import MAX_NAME, NO_NUL
from conversations.errors import Invalid
from conversations.policy import conversation_knobs

# The largest number that a bigint column holds.
MOST = 2**63 - 1
MOST_DIGITS = 1000
# The JSON Schema format that marks a conversation's id; the command line and MCP also accept its session there.
CONVERSATION_ID = "conversation-id"
NEXT = "Where to continue: the next_cursor of the previous page."
ONLY_THIS = "Only this conversation. Default: all of the workspace."
MOST_ON_A_PAGE = "Maximum number of items on a page."
# The most errors reported of one request.
MOST_ERRORS = 100
# The most errors that are read: reading them holds the interpreter's lock.
MOST_ERRORS_READ = 10_000
# The most values and fields that are validated one by one: each can be an error of its own.
MOST_VALUES = 1_000_000
MOST_FIELDS = 1000

# pydantic's errors for an unknown field: of a model, and of a dataclass.
_UNKNOWN_FIELD = ("extra_forbidden", "unexpected_keyword_argument")

# Each number has one spelling: 1.0, +1, 01 and 1_0 are refused.
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_FLAGS = {"true": True, "false": False}


class Params(BaseModel):
    """The arguments of one service method; an unknown name is refused.

    Fields that may be left out are declared with `optional`; the service's own default applies then.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    @classmethod
    def accepted(cls, given: Mapping[str, Any], *, in_text: Collection[str] = ()) -> dict[str, Any]:
        """Validate arguments, parsing those named `in_text` from text.

        Returns the given ones by name. Raises Invalid, with `errors` by field.
        """
        if len(given) > MOST_FIELDS:
            raise Invalid(f"{len(given):,} fields are too many; the fields are {', '.join(cls.model_fields)}.")
        try:
            params = cls.model_validate(given, context=in_text)
        except ValidationError as wrong:
            raise cls.refusal(wrong, given) from None
        given_names = params.model_fields_set
        return {
            name: value
            for name, value in params
            if (value is not None or name in given_names) and not cls.model_fields[name].exclude
        }

    @classmethod
    def refusal(cls, wrong: ValidationError, given: Mapping[str, Any]) -> Invalid:
        """Turn the validation error into Invalid, with `errors` by field."""
        if (count := wrong.error_count()) > MOST_ERRORS_READ:
            return Invalid(f"These params have {count:,} errors, which are too many to list.", code="invalid_params")
        errors = cls.errors_of(wrong, given)
        detail = " ".join(f"{name}: {' '.join(sentences)}" for name, sentences in list(errors.items())[:3])
        return Invalid(detail, code="invalid_params", errors=errors)

    @classmethod
    def errors_of(cls, wrong: ValidationError, given: Mapping[str, Any]) -> dict[str, list[str]]:
        """The errors of each field, as sentences that say what it accepts."""
        errors: dict[str, list[str]] = {}
        for error in wrong.errors(include_url=False)[:MOST_ERRORS]:
            sentence = sentence_of(error)
            if error["type"] in _UNKNOWN_FIELD:
                sentence = _no_such_field(error["loc"][-1], cls.fields_beside(error))
            errors.setdefault(path_of(error), []).append(sentence)
        return errors

    @classmethod
    def fields_beside(cls, error: ErrorDetails) -> Collection[str]:
        """The known field names beside an unknown one; none if they are not known."""
        return cls.model_fields if len(error["loc"]) == 1 else ()


def optional(description: str, **options: Any) -> Any:
    """Declare an optional field: the service's default applies; null is refused."""
    return Field(None, description=description, **options)


def path_of(error: ErrorDetails) -> str:
    """The path of the error's field, such as `messages[0].parts[1].tool_name`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step[:80]}" for step in error["loc"])
    return path.removeprefix(".")


# Sentences by the type of pydantic's error; the braces are filled from its context and the given value.
_SENTENCES = {
    "missing": "This is required.",
    **dict.fromkeys(("int_type", "int_from_float", "int_parsing"), "This must be a whole number{instead}."),
    "float_type": "This must be a number{instead}.",
    "bool_type": "This must be true or false, not {shown}.",
    "string_type": "This must be a text, not {noun}.",
    **dict.fromkeys(("dict_type", "mapping_type", "dataclass_type"), "This must be an object, not {noun}."),
    **dict.fromkeys(("list_type", "tuple_type"), "This must be a list, not {noun}."),
    "greater_than_equal": "This must be at least {ge}.",
    "greater_than": "This must be above {gt}.",
    "less_than_equal": "This must be at most {le}.",
    "string_too_short": "This must not be empty.",
    "string_too_long": "This may have at most {max_length} characters.",
    "too_long": "This may have at most {max_length} values.",
    "string_unicode": "This must not contain half of a surrogate pair.",
    **dict.fromkeys(("enum", "literal_error"), "{shown} is none of {choices}."),
    "value_error": "{error}",
}


def sentence_of(error: ErrorDetails) -> str:
    """The sentence for one of pydantic's errors, with the given value where it helps."""
    given, context = error["input"], error.get("ctx", {})
    if context.get("pattern") == NO_NUL:
        return "This must not contain NUL characters."
    values = {"shown": _shown(given), "noun": noun_of(given), "instead": _instead(given), **context}
    if "expected" in context:
        values["choices"] = context["expected"].replace(" or ", ", ").replace("'", "")
    return _SENTENCES.get(error["type"], "{msg}.").format(**values, msg=error["msg"])


def _no_such_field(name: int | str, known: Collection[str]) -> str:
    if name in known:
        return "This is another name of a field that is also given; give only one of them."
    return "There is no such field here" + (f"; the fields are {', '.join(known)}." if known else ".")


def _shown(given: Any) -> str:
    return repr(given[:40]) if isinstance(given, str) else noun_of(given)


def _instead(given: Any) -> str:
    if isinstance(given, float):
        return f", not {given}"
    if isinstance(given, str) and not _NUMBER.fullmatch(given):
        return f" in plain digits, not {given[:40]!r}"
    return f", not {noun_of(given)}"


def _is_text(value: Any, info: ValidationInfo) -> bool:
    return type(value) is str and info.context is not None and info.field_name in info.context


def _whole_number(value: Any, info: ValidationInfo) -> Any:
    # Limited: int() is quadratic in the digits, and refuses too many with an error of its own.
    if _is_text(value, info):
        return int(value) if len(value) <= MOST_DIGITS and _WHOLE.fullmatch(value) else value
    return whole_number(value)


def _number(value: Any, info: ValidationInfo) -> Any:
    if _is_text(value, info) and _NUMBER.fullmatch(value):
        value = float(value)
    if type(value) is int:
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
    if type(value) is float and not math.isfinite(value):
        raise ValueError("This number is too large.")
    return value


def _flag(value: Any, info: ValidationInfo) -> Any:
    return _FLAGS.get(value.lower(), value) if _is_text(value, info) else value


def _numbered(value: Any, info: ValidationInfo, prefix: str) -> Any:
    """Parse a number, or an id with this prefix, which JSON may contain, too."""
    digits = value[len(prefix) :][:MOST_DIGITS] if isinstance(value, str) and value.startswith(prefix) else ""
    return int(digits) if _WHOLE.fullmatch(digits) else _whole_number(value, info)


def _conversation_id(value: Any, info: ValidationInfo) -> Any:
    number = _numbered(value, info, "conv_")
    if isinstance(number, str):
        where = "conversations/find/?session_id=... returns the id of a session's conversation"
        raise ValueError(f"This must be a conversation's id (conv_7) or a whole number{_instead(number)}; {where}.")
    return number


def _message_id(value: Any, info: ValidationInfo) -> Any:
    number = _numbered(value, info, "msg_")
    if isinstance(number, str) and not _WHOLE.fullmatch(number):
        raise ValueError(f"This must be a message's id (msg_12) or a whole number{_instead(number)}.")
    return number


def _moment(value: Any) -> Any:
    if not isinstance(value, str):
        raise ValueError(f"This must be a time in ISO 8601, not {noun_of(value)}.")
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(
            f"This must be a time in ISO 8601, such as 2026-01-31T09:00:00Z, not {value[:40]!r}."
        ) from None


def _json_text(value: Any) -> Any:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ValueError('This must be a JSON object as text, such as {"team": "boats"}.')
    return found


def _bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise ValueError(f"This must be bytes as base64, not {noun_of(value)}.")
    try:
        return base64.b64decode(value, validate=True)
    except ValueError:
        raise ValueError("This is not base64.") from None


def _overrides(value: dict[str, Any]) -> dict[str, Any]:
    for name, policy in conversation_knobs().items():
        kind = policy.kinds()[name]
        if name in value and not _is_of(kind, value[name]):
            raise ValueError(f"{name} must be {NOUNS[kind]}, not {noun_of(value[name])}.")
    return value


def _is_of(kind: type, value: Any) -> bool:
    if kind is float or (isinstance(value, float) and value.is_integer()):
        return type(value) in (int, float) and kind in (int, float)
    return type(value) is kind


class _OverridesSchema:
    """The JSON Schema of a conversation's settings, from the rooms' policies."""

    _TYPES: ClassVar[Mapping[type, str]] = {str: "string", bool: "boolean", int: "integer", float: "number"}

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        properties = {}
        for name, policy in sorted(conversation_knobs().items()):
            knob, kind = policy.__dataclass_fields__[name], policy.kinds()[name]
            low, high = knob.metadata["low"], knob.metadata["high"]
            bounds = {"maxLength": high, "pattern": NO_NUL} if kind is str else {"minimum": low, "maximum": high}
            properties[name] = {
                "type": self._TYPES[kind],
                **{bound: value for bound, value in bounds.items() if value is not None},
                "description": knob.metadata["help"],
            }
        return {"type": "object", "additionalProperties": False, "properties": properties}


Text = Annotated[str, StringConstraints(min_length=1, pattern=NO_NUL)]
Name = Annotated[str, StringConstraints(min_length=1, max_length=MAX_NAME, pattern=NO_NUL)]
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
"""An id that is a text, such as run_9f86d081884c7d65."""
Cursor = Annotated[str, StringConstraints(min_length=1, max_length=4000, pattern=NO_NUL)]
"""Where to continue in a list: the next_cursor of the previous page."""
Sha256 = Annotated[str, StringConstraints(pattern="^[0-9A-Fa-f]{64}$")]

WHOLE = BeforeValidator(_whole_number)
"""Parses a whole number. The bounds go before it: Annotated[int, Field(ge=1), WHOLE]."""
NUMBER = BeforeValidator(_number)
WholeNumber = Annotated[int, Field(ge=0, le=MOST), WHOLE]
Positive = Annotated[int, Field(ge=1, le=MOST), WHOLE]
Limit = Annotated[int, Field(ge=1, le=1000), WHOLE]
Flag = Annotated[bool, BeforeValidator(_flag)]

# Without an upper bound: an id too large for any row gets NotFound, like every unknown id.
ConversationId = Annotated[
    int, Field(ge=0, json_schema_extra={"format": CONVERSATION_ID}), BeforeValidator(_conversation_id)
]
MessageId = Annotated[
    int,
    Field(ge=0),
    BeforeValidator(_message_id),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^msg_(0|[1-9][0-9]{0,18})$"}]}
    ),
]

Moment = Annotated[
    datetime,
    BeforeValidator(_moment),
    WithJsonSchema({"anyOf": [{"type": "string", "format": "date-time"}, {"type": "string", "format": "date"}]}),
]
"""A time in ISO 8601. Without a time zone it is in UTC; a date alone is its midnight."""
JsonObject = dict[str, Any]
JsonText = Annotated[dict[str, Any], BeforeValidator(_json_text), WithJsonSchema({"type": "string"})]
"""A JSON object as text, so that a query can hold it."""
Overrides = Annotated[dict[str, Any], AfterValidator(_overrides), _OverridesSchema()]
"""Settings of a conversation, by their names."""
Bytes = Annotated[
    bytes,
    BeforeValidator(_bytes),
    WithJsonSchema(
        {
            "type": "string",
            "contentEncoding": "base64",
            "pattern": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
        }
    ),
]
"""Bytes: base64 in JSON, unchanged from any other source."""
OneOf = Field(strict=False)
"""Accepts the value of an enum's member: Annotated[Role, OneOf]."""
