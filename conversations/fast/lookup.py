"""Look up one row of a model by a statement that is compiled and prepared once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Field, Model, QuerySet

from conversations.fast.prepared import rows

M = TypeVar("M", bound=Model)


@dataclass(frozen=True)
class OneRow(Generic[M]):
    """A compiled query for one row. Each call passes its parameters."""

    model: type[M]
    statement: str
    # All but generated columns, which are large and for search only.
    fields: tuple[Field[Any, Any], ...]

    @classmethod
    def from_queryset(cls, example: QuerySet[M]) -> OneRow[M]:
        """Compile the example's SQL; `get` passes parameters in the same order."""
        fields = tuple(each for each in example.model._meta.concrete_fields if not each.generated)
        statement, _ = example.values_list(*(each.attname for each in fields)).query.sql_with_params()
        return cls(example.model, statement, fields)

    def get(self, values: Sequence[Any]) -> M | None:
        """Run the query with these parameters; return the row, or None."""
        found = rows(self.statement, values)
        if not found:
            return None
        read = [
            field.from_db_value(value, None, connection) if hasattr(field, "from_db_value") else value
            for field, value in zip(self.fields, found[0], strict=True)
        ]
        return self.model.from_db(DEFAULT_DB_ALIAS, [each.attname for each in self.fields], read)
