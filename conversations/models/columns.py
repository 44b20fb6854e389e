"""Column types that Django lacks, full text search, and rows as records."""

from __future__ import annotations

import json
from dataclasses import fields
from enum import StrEnum
from typing import Any, Self, TypeVar

from django.contrib.postgres.search import SearchQuery, SearchRank
from django.db import models
from django.db.models import F

R = TypeVar("R")


def record_of(record_type: type[R], row: models.Model, /, **values: Any) -> R:
    """Build a record from these values, and from the row's columns of the same names.

    Hashes become hexadecimal texts.
    """
    kind: Any = record_type
    columns = {each.name: getattr(row, each.name) for each in fields(kind) if each.name not in values}
    hashes = {name: bytes(value).hex() for name, value in columns.items() if isinstance(value, bytes | memoryview)}
    return record_type(**columns | hashes | values)


class EnumField(models.TextField):
    """A column of a PostgreSQL enum type."""

    def __init__(self, enum: type[StrEnum], type_name: str, **options: Any) -> None:
        self.enum = enum
        self.type_name = type_name
        options["choices"] = [(member.value, member.value) for member in enum]
        super().__init__(**options)

    def deconstruct(self) -> tuple[str, str, Any, dict[str, Any]]:
        name, path, args, options = super().deconstruct()
        del options["choices"]
        return name, path, [self.enum, self.type_name, *args], options

    def db_type(self, connection: Any) -> str:
        return self.type_name


class SeqRangesField(models.Field):
    """Ranges of seqs, as an int8multirange."""

    def db_type(self, connection: Any) -> str:
        return "int8multirange"


class ExactJSONField(models.JSONField):
    """A `json` column: keeps keys in order and characters that `jsonb` refuses."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        # The driver has parsed it already; Django disables that only for `jsonb`.
        return value

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        # As text: Django would send it as `jsonb`, which refuses some characters.
        return None if value is None else json.dumps(value)

    def db_type(self, connection: Any) -> str:
        return "json"


class JSONTextField(ExactJSONField):
    """JSON in a text column, so that a row's hash (`row_seal`) covers its exact text."""

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        return None if value is None else json.loads(value)

    def db_type(self, connection: Any) -> str:
        return "text"


class LexemeQuery(SearchQuery):
    """A websearch query with the lexemes of `lcm_tsv`; see `sql/search.sql`."""

    SEARCH_TYPES: dict[str, str] = {"plain": "lcm_tsquery"}


class SearchableQuerySet(models.QuerySet):
    """Rows with a `content_tsv`, a column for search that is never read."""

    def matching(self, text: str) -> Self:
        """Rows that match a websearch query (words, "a phrase", or, -without), ranked."""
        query = LexemeQuery(text)
        return self.filter(content_tsv=query).annotate(rank=SearchRank(F("content_tsv"), query))

    def readable(self) -> Self:
        return self.defer("content_tsv")
