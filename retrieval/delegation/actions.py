"""Parse the action of a sub-agent: a JSON object within any text. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from annotated_types import Predicate
from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

# Reasoning that a server left in front of the answer is no part of it.
_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_LONGEST_WORDS = 2_000
_MOST_CITED = 200
# The most places in a text where an object may begin.
_MOST_ATTEMPTS = 100
_STRICT = ConfigDict(strict=True, str_strip_whitespace=True)


def _texts(cited: Any) -> tuple[str, ...]:
    found = cited if isinstance(cited, list | tuple) else ()
    return tuple(each for each in found if isinstance(each, str))[:_MOST_CITED]


Text = Annotated[str, Field(min_length=1)]
Words = Annotated[Text, AfterValidator(lambda text: text[:_LONGEST_WORDS])]
# A model's flags and lists are taken as far as they are what they should be.
Flag = Annotated[bool, BeforeValidator(lambda value: value is True)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_texts)]


class Action:
    """One of the things that a sub-agent may ask for."""

    name: ClassVar[str]

    @property
    def about(self) -> str:
        """What it is about: the first of its values."""
        return str(next(iter(vars(self).values())))


@dataclass(frozen=True, config=_STRICT)
class Find(Action):
    """Look for words."""

    name = "grep"
    query: Words


@dataclass(frozen=True, config=_STRICT)
class Describe(Action):
    """Say what an id names."""

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
    """Go on where an answer broke off."""

    name = "more"
    handle: Words


@dataclass(frozen=True, config=_STRICT)
class Finish(Action):
    """The answer."""

    name = "answer"
    answer: Text
    cited: Texts = ()
    complete: Flag = True


@dataclass(frozen=True)
class Unknown(Action):
    """An action that there is not, such as to delegate."""

    name: str  # type: ignore[misc]

    @property
    def about(self) -> str:
        return ""


_KINDS: dict[str, type[Action]] = {kind.name: kind for kind in (Find, Describe, Expand, More, Finish)}


class NotAnAction(ValueError):
    """The text holds no action; what is wrong with it, in a sentence for the model."""


def action_in(text: str) -> Action:
    """The action that a reply asks for; NotAnAction, saying why, if it asks for none."""
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
    """The action as the model is shown it again."""
    return json.dumps({"action": action.name, **vars(action)}, ensure_ascii=False)


def _object_in(text: str) -> Mapping[str, Any]:
    """The first JSON object that has an action, whatever is around it."""
    # Models break lines inside of strings.
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
