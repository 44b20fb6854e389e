"""One row as an instance of its model, by a question that Django puts into words once and the server prepares.

To make the words takes Django four times as long as to have the answer, and every service begins with such a question.
"""

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
    """A question for one row, its values left open."""

    model: type[M]
    statement: str
    columns: tuple[str, ...]
    # The places of the model's other fields.
    unread: tuple[int, ...]
    # By place: columns that come from the database as something else than what the model has them as.
    readers: tuple[tuple[int, Callable[..., Any]], ...]

    @classmethod
    def like(cls, example: QuerySet[M]) -> OneRow[M]:
        """What this example asks, to be asked with other values in the same order."""
        every = example.model._meta.concrete_fields
        # A generated column is for searching only, large, and never worth reading.
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
        """The row that answers the question with these values; None if there is none."""
        found = rows(self.statement, values)
        return self.made(found[0]) if found else None

    def made(self, values: Sequence[Any]) -> M:
        """An instance of these values of `columns`, which were read by whatever question."""
        row = list(values)
        for place, reader in self.readers:
            row[place] = reader(row[place], None, connection)
        # Else Django would look for each field among the columns.
        for place in self.unread:
            row.insert(place, DEFERRED)
        return self.model.from_db(DEFAULT_DB_ALIAS, self.columns, row)
