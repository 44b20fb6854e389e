"""Tool calls as both APIs of OpenAI write them. Pure.

Their arguments are text and come back byte for byte: they are stored as JSON where writing the JSON again gives the
same text, else as the text itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from conversations.formats.foreign_rows import Fields, a_call, mark, split_note
from conversations.formats.pairing import IdRule, tool_name
from conversations.formats.rendered import Repairs
from conversations.formats.turns import Call, Turn
from conversations.types import NewPart

CHAT, RESPONSES = "openai_chat", "openai_responses"
# On the first part of an item of the Responses API: its type, unless it follows from its parts.
ITEM_TYPE = "openai_responses_type"
# On a call: which of the usual ways of writing JSON its arguments follow, where it is not the first.
_STYLE = "openai_chat_arguments"
_STYLES: Mapping[str, dict[str, Any]] = {
    "spaced": {"ensure_ascii": False},
    "compact": {"ensure_ascii": False, "separators": (",", ":")},
    "spaced_ascii": {},
    "compact_ascii": {"separators": (",", ":")},
}
_TOOL_NAMES = IdRule(longest=64)


def function_part(function: Fields) -> NewPart:
    """Return the call of a function that has a name and arguments."""
    arguments = function.text("arguments")
    value, style = parsed(arguments) if arguments is not None else (None, None)
    return a_call(None, function.text("name"), value, metadata={_STYLE: style} if style else None)


def arguments_of(part: NewPart) -> str:
    """Return the arguments of a call as they came or, of another format's, as JSON."""
    arguments = part.tool_input
    if arguments is None:
        return "{}"
    if isinstance(arguments, str):
        return arguments
    return unparsed(arguments, mark(part, _STYLE))


def parsed(text: str) -> tuple[Any, str | None]:
    """Parse a text as JSON, if that can be undone.

    Returns the value and the style of its writing, None for the first; or the text itself.
    """
    try:
        value = json.loads(text)
        if isinstance(value, dict | list):
            for style, options in _STYLES.items():
                if json.dumps(value, allow_nan=False, **options) == text:
                    return value, None if style == "spaced" else style
    except (ValueError, RecursionError):
        pass
    return text, None


def unparsed(value: Any, style: Any) -> str:
    """Return the text that such a value was parsed from."""
    return json.dumps(value, **_STYLES.get(str(style), _STYLES["spaced"]))


def is_custom(call: NewPart) -> bool:
    """Whether a call is one of a custom tool, whose input is text and not JSON."""
    of_chat = split_note(call.metadata, CHAT)[1].get("add", {})
    return mark(call, ITEM_TYPE) == "custom_tool_call" or of_chat.get("type") == "custom"


def name_and_arguments(call: Call, turn: Turn, repairs: Repairs) -> tuple[str, str]:
    """Return the name and the arguments of a call as OpenAI takes them."""
    name = tool_name(call, _TOOL_NAMES, turn.item_ids, repairs)
    return name, repairs.sendable(arguments_of(call.part), turn.item_ids[0])
