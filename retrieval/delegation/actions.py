"""Parse the action of a sub-agent: a JSON object within other text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Predicate
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

# Reasoning before the model's answer, which some servers do not remove.
_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_LONGEST_WORDS = 2_000
_MOST_CITED = 200
# The maximum number of positions in a text that are tried as the start of an object.
_MOST_ATTEMPTS = 100
_STRICT = ConfigDict(strict=True, str_strip_whitespace=True)


def _texts(cited: Any) -> tuple[str, ...]:
    found = cited if isinstance(cited, list | tuple) else ()
    return tuple(each for each in found if isinstance(each, str))[:_MOST_CITED]


Text = Annotated[str, Field(min_length=1)]
Words = Annotated[Text, AfterValidator(lambda text: text[:_LONGEST_WORDS])]
# In flags and lists from a model, values of the wrong type are ignored instead of refused.
Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]


class Action:
    """An action that a sub-agent can request."""

    name: ClassVar[str]

    @property
    def about(self) -> str:
        """The subject of the action: its first value, such as a query or an id."""
        return str(next(iter(vars(self).values())))


@dataclass(frozen=True, config=_STRICT)
class Find(Action):
    """Search for words."""

    name = "grep"
    query: Words


@dataclass(frozen=True, config=_STRICT)
class Describe(Action):
    """Describe the item with this id."""

    name = "describe"
    id: Words


@dataclass(frozen=True, config=_STRICT)
class Expand(Action):
    """Open a summary, or read a message."""

    name = "expand"
    id: Words
    depth: Annotated[int, Predicate(bool)] = 1
    messages: Flag = False


@dataclass(frozen=True, config=_STRICT)
class More(Action):
    """Continue a result that was cut off."""

    name = "more"
    handle: Words


@dataclass(frozen=True, config=_STRICT)
class Finish(Action):
    """Give the answer, and end the work."""

    name = "answer"
    answer: Text
    cited: Texts = ()
    complete: Flag = True


@dataclass(frozen=True)
class Unknown(Action):
    """An action that does not exist, such as delegating."""

    name: str  # type: ignore[misc]

    @property
    def about(self) -> str:
        return ""


_KINDS: dict[str, type[Action]] = {kind.name: kind for kind in (Find, Describe, Expand, More, Finish)}


class NotAnAction(ValueError):
    """A model's reply has no valid action; the message explains to the model why."""


def action_in(text: str) -> Action:
    """Parse the action in a model's reply; raises NotAnAction if none is valid."""
    given = _object_in(text[thought.end() :] if (thought := _THOUGHT.match(text)) else text)
    name = given.get("action")
    if not isinstance(name, str) or not name.strip():
        raise NotAnAction('The object needs an "action": grep, describe, expand, more or answer.')
    if name not in _KINDS:
        return Unknown(name.strip()[:80])
    kind: Any = _KINDS[name]
    try:
        action: Action = kind(**{key: value for key, value in given.items() if key in kind.__dataclass_fields__})
        return action
    except ValidationError as wrong:
        field = wrong.errors()[0]["loc"][0]
        if field == "depth":
            raise NotAnAction('"depth" is a number of levels from 1 up.') from None
        raise NotAnAction(f'This action needs "{field}", a text.') from None


def as_json(action: Action) -> str:
    """Serialize an action for the transcript that the model gets."""
    return json.dumps({"action": action.name, **vars(action)}, ensure_ascii=False)


def _object_in(text: str) -> Mapping[str, Any]:
    """Find the first JSON object with the key `action`; ignore all text around it."""
    # `strict=False`, because models write line breaks inside strings.
    decoder = json.JSONDecoder(strict=False)
    place = text.find("{")
    for _ in range(_MOST_ATTEMPTS):
        if place < 0:
            break
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            value, end = {}, place + 1
        if "action" in value:
            found: Mapping[str, Any] = value
            return found
        place = text.find("{", end)
    raise NotAnAction("Answer with one JSON object and nothing else.")
