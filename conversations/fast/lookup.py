"""Look up one row of a model by a statement that is compiled and prepared once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import DEFERRED, Model, QuerySet

from conversations.sql import rows

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class OneRow(Generic[M]):
    """A query for one row, with its parameters left open."""

    model: type[M]
    statement: str
    columns: tuple[str, ...]
    # The positions of the model's generated fields, which are not read.
    unread: tuple[int, ...]
    # By position: fields that convert what comes from the database.
    readers: tuple[tuple[int, Callable[..., Any]], ...]

    @classmethod
    def like(cls, example: QuerySet[M]) -> OneRow[M]:
        """The query of this example, to be run with other values in the same order."""
        every = example.model._meta.concrete_fields
        # A generated column is for search only, and large.
        fields = [field for field in every if not field.generated]
        columns = tuple(field.attname for field in fields)
        statement, _ = example.values_list(*columns).query.sql_with_params()
        readers = [(place, getattr(field, "from_db_value", None)) for place, field in enumerate(fields)]
        return cls(
            model=example.model,
            statement=statement,
            columns=columns,
            unread=tuple(place for place, field in enumerate(every) if field.generated),
            readers=tuple((place, reader) for place, reader in readers if reader is not None),
        )

    def get(self, values: Sequence[Any]) -> M | None:
        """The row for these values, or None."""
        found = rows(self.statement, values)
        return self.made(found[0]) if found else None

    def made(self, values: Sequence[Any]) -> M:
        """An instance of these values of `columns`, whatever statement read them."""
        row = list(values)
        for place, reader in self.readers:
            row[place] = reader(row[place], None, connection)
        # With every field named, Django need not look for each among the columns.
        for place in self.unread:
            row.insert(place, DEFERRED)
        return self.model.from_db(DEFAULT_DB_ALIAS, self.columns, row)
