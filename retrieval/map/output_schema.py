"""Check output schemas, and values against them, within limits of work; no I/O.

A schema is JSON Schema, Draft 2020-12. A `$ref` must refer to a part of the same schema, because nothing is fetched.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from conversations.errors import Invalid

MOST_SCHEMA_CHARACTERS = 64_000
MOST_SCHEMA_LEVELS = 40
# The maximum number of steps while one value is checked: keywords with their entries, and errors with their texts.
# Without a limit, their number can grow exponentially, because each may lead to several others.
MOST_STEPS = 500_000
# Python's regular expressions may backtrack through every choice at every position. So there are limits on expressions,
# on the matched texts, and on the number of steps for all texts of one value.
MOST_PATTERN_CHARACTERS = 200
MOST_UNBOUNDED = 2
MOST_WAYS = 10_000_000
MOST_TRIALS = 5_000_000_000
MOST_MATCHED_CHARACTERS = 1_000
MOST_ERRORS = 10
MOST_ERROR_CHARACTERS = 300

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = ("$ref", "$dynamicRef")
# Keywords that compare all pairs of a value's entries.
_OF_PAIRS = ("unevaluatedItems", "unevaluatedProperties")
# Keywords that match the names of a value with `patternProperties`, in the order in which the schema has them.
_OF_NAMES = ("patternProperties", "additionalProperties", "unevaluatedProperties")
# The pieces of an expression that affect its cost. Characters in a class, an escape or the start of a group do not.
_PIECE = re.compile(
    r"""
      (?P<back>\\[1-9]|\(\?P=)
    | (?P<hidden>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?\#[^)]*\))
    | (?P<open>\((?:\?P?<\w+>|\?<?[=!:>]|\?\(\w+\)|\?[a-zA-Z-]+[:)])?)
    | (?P<close>\)(?P<repeated>[*+{])?)
    | (?P<either>\|)
    | (?P<quantifier>[*+?]|\{(?P<low>\d*)(?P<comma>,?)(?P<high>\d*)\})[?+]?
    """,
    re.VERBOSE | re.DOTALL,
)
# With this flag, spaces and comments are allowed between a group and its quantifier.
_VERBOSE_FLAG = re.compile(r"\(\?[a-zA-Z]*x")
_PROBES: tuple[Any, ...] = (None, {}, [], "", 0)


class TooMuchWork(Exception):
    """Checking a value would need more steps than allowed."""


@dataclass(frozen=True)
class PatternCost:
    """The number of ways in which a regular expression can match at one position."""

    unbounded: int
    # The product of all choices except the unbounded quantifiers, such as `*`.
    choices: int
    is_anchored: bool
    # Whether a group is or may be repeated or referenced. Then no upper bound is known.
    is_unknown: bool

    def ways(self, length: int) -> int:
        return self.choices * length**self.unbounded

    def trials(self, length: int) -> int:
        """An upper bound of the number of steps for a text of this length."""
        return self.ways(length) * (1 if self.is_anchored else length)


@lru_cache(maxsize=512)
def cost_of(pattern: str) -> PatternCost:
    """Compute an upper bound of the cost of a valid regular expression."""
    # `open_groups` counts the alternatives of each open group, the whole expression first; `choices` of closed groups.
    open_groups, choices, unbounded, is_unknown = [1], [], 0, False
    for piece in _PIECE.finditer(pattern):
        match piece.lastgroup:
            case "back":
                is_unknown = True
            case "open" if _VERBOSE_FLAG.match(piece[0]):
                is_unknown = True
            case "open" if not (piece[0].startswith("(?") and piece[0].endswith(")") and "(" not in piece[0][1:]):
                open_groups.append(1)
            case "close":
                is_unknown |= piece["repeated"] is not None
                choices.append(open_groups.pop() if len(open_groups) > 1 else 1)
            case "either":
                open_groups[-1] += 1
            case "quantifier":
                low, high = int(piece["low"] or 0), int(piece["high"] or 0)
                if piece["quantifier"] in "*+" or (piece["comma"] and not piece["high"]):
                    unbounded += 1
                elif piece["quantifier"] == "?":
                    choices.append(2)
                else:
                    # A long exact repetition is no choice, but matching it takes many steps.
                    most = high if piece["comma"] else low
                    choices.append(1 + most - low + most // 100)
    is_anchored = pattern.startswith("^") and open_groups == [1]
    return PatternCost(unbounded, math.prod([*choices, *open_groups]), is_anchored, is_unknown)


@dataclass
class SchemaCheck:
    """Checks values against a valid schema; not thread-safe."""

    schema: Mapping[str, Any]
    _steps: int = field(default=0, init=False)
    _trials: int = field(default=0, init=False)

    def errors(self, value: Any) -> list[str]:
        """Return the errors of a value, each with a JSON path; empty if it is valid."""
        self._steps = self._trials = 0
        try:
            found = list(islice(self._validator.iter_errors(value), MOST_ERRORS))
        except (TooMuchWork, RecursionError):
            return ["$: this value takes too many steps or regular expressions of the schema to check"]
        except (Unresolvable, OverflowError):
            return ["$: a number here is too large for the schema, or a $ref below an $id of the schema leads nowhere"]
        return [f"{error.json_path}: {error.message}"[:MOST_ERROR_CHARACTERS] for error in found]

    @cached_property
    def _validator(self) -> Any:
        keywords = {**Draft202012Validator.VALIDATORS, "pattern": self._pattern, "uniqueItems": _unique}
        bounded = {name: self._bounded(name, check) for name, check in keywords.items()}
        # The registry is empty, so that nothing outside of the schema is ever fetched.
        return extend(Draft202012Validator, bounded)(self.schema, registry=Registry())

    @cached_property
    def _name_patterns(self) -> Sequence[str]:
        """All patterns of names in the schema."""
        named = (part.get("patternProperties") for _, part in _parts(self.schema, 1))
        return [pattern for each in named if isinstance(each, Mapping) for pattern in each]

    def _bounded(self, name: str, check: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
        """Count the steps of a keyword; raises TooMuchWork."""

        def bounded(validator: Any, given: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
            self._take_steps(1 + (len(given) if isinstance(given, Mapping | list) else 0))
            if name in _OF_PAIRS and isinstance(value, Mapping | list):
                self._take_steps(len(value) ** 2 // 100)
            if name in _OF_NAMES and isinstance(value, Mapping) and self._name_patterns:
                if any(len(each) > MOST_MATCHED_CHARACTERS for each in value):
                    yield ValidationError(f"names have at most {MOST_MATCHED_CHARACTERS:,} characters")
                    return
                patterns = self._name_patterns if name in _OF_PAIRS else schema.get("patternProperties", ())
                for pattern in patterns:
                    for each in value:
                        self._take_trials(pattern, each)
            for error in check(validator, given, value, schema) or ():
                # Errors that `anyOf` collects stay in memory, each with its value as text.
                self._take_steps(5 + len(error.message) // 100)
                yield error

        return bounded

    def _take_steps(self, count: int) -> None:
        self._steps += count
        if self._steps > MOST_STEPS:
            raise TooMuchWork

    def _pattern(self, validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
        if not isinstance(value, str):
            return
        if len(value) > MOST_MATCHED_CHARACTERS:
            yield ValidationError(f"texts with a pattern have at most {MOST_MATCHED_CHARACTERS:,} characters")
            return
        self._take_trials(pattern, value)
        if not re.search(pattern, value):
            yield ValidationError(f"{value[:80]!r} does not match {pattern!r}")

    def _take_trials(self, pattern: str, text: str) -> None:
        self._trials += cost_of(pattern).trials(len(text))
        if self._trials > MOST_TRIALS:
            raise TooMuchWork


def checked_schema(schema: Any) -> SchemaCheck:
    """Validate a schema, and return the check for values; raises Invalid."""
    if not isinstance(schema, Mapping):
        raise Invalid("output_schema must be an object of JSON Schema.")
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        raise Invalid("output_schema must be JSON.") from None
    if size > MOST_SCHEMA_CHARACTERS:
        raise Invalid(f"output_schema has {size:,} characters; at most {MOST_SCHEMA_CHARACTERS:,} are taken.")
    if str(schema.get("$schema", _DIALECT)).rstrip("#") != _DIALECT:
        raise Invalid(f"output_schema must be of Draft 2020-12: leave $schema out, or set it to {_DIALECT}.")
    for level, part in _parts(schema, 1):
        if level > MOST_SCHEMA_LEVELS:
            raise Invalid(f"output_schema is more than {MOST_SCHEMA_LEVELS} levels deep.")
        _require_own_references(part)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as wrong:
        raise Invalid(f"output_schema: {wrong.json_path}: {wrong.message[:MOST_ERROR_CHARACTERS]}") from None
    for _, part in _parts(schema, 1):
        _require_simple_patterns(part)
    _require_places(schema)
    check = SchemaCheck(schema)
    for probe in _PROBES:
        if any(error.endswith("of the schema to check") for error in check.errors(probe)):
            raise Invalid("output_schema: its references lead in a circle, or to too many others.")
    return check


def _parts(value: Any, level: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield each object within the schema, with its level of nesting."""
    if isinstance(value, Mapping):
        yield level, value
    if level <= MOST_SCHEMA_LEVELS and isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _parts(each, level + 1)


def _require_own_references(part: Mapping[str, Any]) -> None:
    for name in _REFERENCES:
        reference = part.get(name)
        if isinstance(reference, str) and not reference.startswith("#"):
            raise Invalid(
                f"output_schema: {name} {reference[:80]!r} leads out of the schema, and nothing is fetched. Put what "
                "it means under $defs."
            )


def _require_places(schema: Mapping[str, Any]) -> None:
    """Raise Invalid for a reference to a part that the schema does not have."""
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(dict(schema)))
    for reference in (part.get(name) for _, part in _parts(schema, 1) for name in _REFERENCES):
        if isinstance(reference, str):
            try:
                resolver.lookup(reference)
            except Unresolvable:
                raise Invalid(f"output_schema: there is nothing at $ref {reference[:80]!r}.") from None


def _require_simple_patterns(part: Mapping[str, Any]) -> None:
    named = part.get("patternProperties")
    given = [part.get("pattern"), *(named if isinstance(named, Mapping) else ())]
    for pattern in given:
        if not isinstance(pattern, str):
            continue
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            raise Invalid(f"output_schema: {pattern[:80]!r} is not a regular expression.") from None
        cost = cost_of(pattern)
        if (
            len(pattern) > MOST_PATTERN_CHARACTERS
            or cost.is_unknown
            or cost.unbounded > MOST_UNBOUNDED
            or cost.ways(MOST_MATCHED_CHARACTERS) > MOST_WAYS
        ):
            raise Invalid(
                f"output_schema: the regular expression {pattern[:80]!r} could take very long. At most "
                f"{MOST_PATTERN_CHARACTERS} characters and {MOST_UNBOUNDED} of * and + are taken, few of ?, {{a,b}} "
                "and alternatives beside them; no repeated groups, no back references and no verbose flag (?x)."
            )


def _unique(validator: Any, is_wanted: bool, value: Any, schema: Any) -> Iterator[ValidationError]:
    """Find equal items by their canonical JSON, because all pairs would be too many."""
    if is_wanted and isinstance(value, list):
        keys = {json.dumps(_as_compared(each), sort_keys=True) for each in value}
        if len(keys) < len(value):
            yield ValidationError("the list has equal items")


def _as_compared(value: Any) -> Any:
    """Normalize the numbers of a value, so that 1.0 equals 1."""
    if isinstance(value, Mapping):
        return {name: _as_compared(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_as_compared(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
