"""What a sub-agent asks for: one JSON object a turn, found in whatever text the model has put around it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Reasoning that a server left in front of the answer is no part of it.
_THOUGHT = re.compile(r"\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_LONGEST_WORDS = 2_000
_MOST_CITED = 200
# What begins like an object in more places than this is none that was meant.
_MOST_ATTEMPTS = 100


@dataclass(frozen=True)
class Find:
    """Look for words."""

    query: str
    name = "grep"

    @property
    def about(self) -> str:
        return self.query


@dataclass(frozen=True)
class Describe:
    """Say what an id names."""

    id: str
    name = "describe"

    @property
    def about(self) -> str:
        return self.id


@dataclass(frozen=True)
class Expand:
    """Open a summary, or read a message."""

    id: str
    depth: int = 1
    messages: bool = False
    name = "expand"

    @property
    def about(self) -> str:
        return self.id


@dataclass(frozen=True)
class More:
    """Go on where an answer broke off."""

    handle: str
    name = "more"

    @property
    def about(self) -> str:
        return self.handle


@dataclass(frozen=True)
class Finish:
    """The answer."""

    answer: str
    cited: tuple[str, ...] = ()
    complete: bool = True
    name = "answer"

    @property
    def about(self) -> str:
        return ""


@dataclass(frozen=True)
class Unknown:
    """An action that there is not, such as to delegate."""

    name: str

    @property
    def about(self) -> str:
        return ""


Action = Find | Describe | Expand | More | Finish | Unknown


class NotAnAction(ValueError):
    """The text holds no action; what is wrong with it, in a sentence for the model."""


def action_in(text: str) -> Action:
    """The action that a reply asks for; NotAnAction, saying why, if it asks for none."""
    thought = _THOUGHT.match(text)
    given = _object_in(text[thought.end() :] if thought is not None else text)
    match given.get("action"):
        case "grep":
            return Find(_text(given, "query"))
        case "describe":
            return Describe(_text(given, "id"))
        case "expand":
            return Expand(_text(given, "id"), depth=_depth(given), messages=given.get("messages") is True)
        case "more":
            return More(_text(given, "handle"))
        case "answer":
            return Finish(_text(given, "answer", longest=None), cited=_cited(given), complete=_is_complete(given))
        case str(name) if name.strip():
            return Unknown(name.strip()[:80])
    raise NotAnAction('The object needs an "action": grep, describe, expand, more or answer.')


def as_json(action: Action) -> str:
    """What was asked for, as the model is shown it again: our words, with its values."""
    return json.dumps({"action": action.name, **vars(action)}, ensure_ascii=False)


def _object_in(text: str) -> Mapping[str, Any]:
    """The first JSON object that has an action, whatever is said around it."""
    # Models break lines inside of strings.
    decoder = json.JSONDecoder(strict=False)
    place = text.find("{")
    for _ in range(_MOST_ATTEMPTS):
        if place < 0:
            break
        end = place + 1
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            value = {}
        if "action" in value:
            found: Mapping[str, Any] = value
            return found
        place = text.find("{", end)
    raise NotAnAction("Answer with one JSON object and nothing else.")


def _text(given: Mapping[str, Any], name: str, *, longest: int | None = _LONGEST_WORDS) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value.strip():
        raise NotAnAction(f'This action needs "{name}", a text.')
    return value.strip()[:longest]


def _depth(given: Mapping[str, Any]) -> int:
    value = given.get("depth", 1)
    if isinstance(value, bool) or not isinstance(value, int) or value == 0:
        raise NotAnAction('"depth" is a number of levels from 1 up.')
    return value


def _cited(given: Mapping[str, Any]) -> tuple[str, ...]:
    value = given.get("cited", [])
    return tuple(each for each in value if isinstance(each, str))[:_MOST_CITED] if isinstance(value, list) else ()


def _is_complete(given: Mapping[str, Any]) -> bool:
    return given.get("complete", True) is True
