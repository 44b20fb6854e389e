"""Check output schemas, and values against them, in bounded work. Pure.

JSON Schema, Draft 2020-12. A `$ref` leads to a place within the schema: nothing is ever fetched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
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
# The most references followed while one value is checked: they multiply where each leads to several others.
MOST_REFERENCES = 20_000
# Python tries a regular expression at every place and in every way: hence bounds on expression and text.
MOST_PATTERN_CHARACTERS = 200
MOST_UNBOUNDED = 2
MOST_MATCHED_CHARACTERS = 1_000
MOST_ERRORS = 10
MOST_ERROR_CHARACTERS = 300

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = ("$ref", "$dynamicRef")
_UNBOUNDED = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\})")
_REPEATED_GROUP = re.compile(r"(?<!\\)\)(?:[*+]|\{)")
_BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?P=")
_PROBES: tuple[Any, ...] = (None, {}, [], "", 0)


class TooManyReferences(Exception):
    """A value led through more references than are followed."""


@dataclass
class SchemaCheck:
    """One schema that was found good, ready to check values; not for several threads."""

    schema: Mapping[str, Any]
    _followed: int = field(default=0, init=False)

    def errors(self, value: Any) -> list[str]:
        """What is wrong with the value, each with its place; empty if nothing is."""
        self._followed = 0
        try:
            found = list(islice(self._validator.iter_errors(value), MOST_ERRORS))
        except (TooManyReferences, RecursionError):
            return ["$: this value takes too many references of the schema to check"]
        return [f"{error.json_path}: {error.message}"[:MOST_ERROR_CHARACTERS] for error in found]

    @cached_property
    def _validator(self) -> Any:
        keywords: dict[str, Callable[..., Iterator[ValidationError]]] = {
            name: self._counted(Draft202012Validator.VALIDATORS[name]) for name in _REFERENCES
        }
        keywords |= {"pattern": _pattern, "patternProperties": _bounded_names}
        # An empty registry: nothing that is not in the schema is ever looked for.
        return extend(Draft202012Validator, keywords)(self.schema, registry=Registry())

    def _counted(self, follow: Callable[..., Any]) -> Callable[..., Iterator[ValidationError]]:
        def counted(validator: Any, reference: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
            self._followed += 1
            if self._followed > MOST_REFERENCES:
                raise TooManyReferences
            yield from follow(validator, reference, value, schema) or ()

        return counted


def checked_schema(schema: Any) -> SchemaCheck:
    """The check of a schema; Invalid says what is wrong with it."""
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
    """Each object within the schema, with how deep it lies."""
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
    """Raise Invalid for a reference to a place that the schema does not have."""
    resolver = Registry().resolver_with_root(DRAFT202012.create_resource(dict(schema)))
    for _, part in _parts(schema, 1):
        reference = part.get("$ref")
        # A reference below an $id of its own counts from there, and is found out when it is followed.
        if isinstance(reference, str) and "$id" not in schema:
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
        if (
            len(pattern) > MOST_PATTERN_CHARACTERS
            or len(_UNBOUNDED.findall(pattern)) > MOST_UNBOUNDED
            or _REPEATED_GROUP.search(pattern)
            or _BACK_REFERENCE.search(pattern)
        ):
            raise Invalid(
                f"output_schema: the regular expression {pattern[:80]!r} could take very long. At most "
                f"{MOST_PATTERN_CHARACTERS} characters and {MOST_UNBOUNDED} of * and + are taken, no repeated groups "
                "and no back references."
            )


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, str):
        return
    if len(value) > MOST_MATCHED_CHARACTERS:
        yield ValidationError(f"texts with a pattern have at most {MOST_MATCHED_CHARACTERS:,} characters")
    elif not re.search(pattern, value):
        yield ValidationError(f"{value[:80]!r} does not match {pattern!r}")


def _bounded_names(validator: Any, patterns: Mapping[str, Any], value: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, Mapping) and any(len(name) > MOST_MATCHED_CHARACTERS for name in value):
        yield ValidationError(f"names have at most {MOST_MATCHED_CHARACTERS:,} characters")
        return
    yield from Draft202012Validator.VALIDATORS["patternProperties"](validator, patterns, value, schema) or ()
