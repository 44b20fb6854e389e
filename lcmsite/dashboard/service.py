"""Puts a person's question to the catalogue: the same operation, with the same rules, as on every other face."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from lcmsite.access.keys import Caller
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.operations import CATALOGUE


def ask(caller: Caller, tool: str, **given: Any) -> Any:
    """What the operation of this name answers; what is None counts as not given.

    Raises Forbidden, Invalid, NotFound and whatever else the service raises, for `pages` to show.
    """
    operation = _operation(tool)
    values = {name: value for name, value in given.items() if value is not None}
    if operation.paging is not None and values.keys() - operation.params.model_fields.keys() == {
        operation.paging.argument
    }:
        values["cursor"] = operation.paging.cursor(values.pop(operation.paging.argument))
    return operation.perform(caller, values).result


def ask_in_text(caller: Caller, tool: str, texts: Mapping[str, Any], **given: Any) -> Any:
    """The same with values as a form has them, where numbers and flags are texts."""
    return _operation(tool).perform(caller, {**texts, **given}, in_text=texts).result


def may(caller: Caller, tool: str) -> bool:
    """Whether this person may ask it: a page offers nobody what would be refused."""
    return _operation(tool).may(caller)


@cache
def _operation(tool: str) -> Operation:
    return next(operation for operation in CATALOGUE if operation.tool == tool)
