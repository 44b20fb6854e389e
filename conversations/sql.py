"""Reads that belong together: rows of prepared statements, all from one moment of the database."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import count
from pathlib import Path
from typing import Any, cast

import psycopg
from django.db import transaction
from psycopg.types.numeric import Int8

from conversations.fast.prepared import cursor_for, let_go, opened
from conversations.reading_block import ReadingBlock

ROOT = Path(__file__).parents[1]


@cache
def load(path: str) -> dict[str, str]:
    """Read a file of named statements: `retrieval/newest.sql` is the file `retrieval/sql/newest.sql`."""
    room, _, name = path.partition("/")
    statements = {}
    for block in re.split(r"^-- name: ", (ROOT / room / "sql" / name).read_text(), flags=re.MULTILINE)[1:]:
        title, _, statement = block.partition("\n")
        statements[title.strip()] = re.sub(r"^\s*--.*\n", "", statement, flags=re.MULTILINE).strip()
    return statements


@contextmanager
def snapshot(*, planned_once: bool = False) -> Iterator[Callable[[], None]]:
    """Let every read in the block see one moment of the database, whatever others commit meanwhile; nothing is written.

    Inside a transaction that is open already the reads are that transaction's, as isolated as it is. `planned_once`:
    what is prepared here is surely planned once, for any values. It gives `nothing_more_is_read`, which may be called
    where much is left to do with what was read: the block ends meanwhile, and to read in it after all is an error.
    """
    current = opened()
    if current.in_atomic_block or not current.autocommit:
        yield _nothing
        return
    block = ReadingBlock(current)
    with block:
        block.begin(planned_once=planned_once)
        yield block.nothing_more_is_read


def _nothing() -> None:
    """The transaction is not ours to end."""


def rows(
    statement: str, values: Sequence[Any] | Mapping[str, Any] = (), *, binary: bool = False
) -> list[tuple[Any, ...]]:
    """All rows of a statement that the server prepares once a connection; see `db.prepared` for what that saves.

    `binary`: in the server's own form, of which hundreds of numbers are read in a third of the time; of enums, that is
    bytes.
    """
    return _asked(statement, values, prepare=True, binary=binary)


def bound(statement: str, values: Mapping[str, Any]) -> str:
    """The statement with its values in it: what is planned for them (`rows_as_planned`), alone or as a piece."""
    current = opened()
    return psycopg.ClientCursor(cast(Any, current.connection)).mogrify(cast(Any, statement), values)


def rows_as_planned(statement: str, *, binary: bool = False) -> list[tuple[Any, ...]]:
    """All rows of a statement that has its values in it, for which the server plans it."""
    return _asked(statement, None, prepare=False, binary=binary)


def _asked(
    statement: str, values: Sequence[Any] | Mapping[str, Any] | None, *, prepare: bool, binary: bool
) -> list[tuple[Any, ...]]:
    current = opened()
    current.validate_no_broken_transaction()
    if current.queries_logged:
        # Whoever counts queries counts these, too.
        current.queries_log.append({"sql": statement, "time": "0"})
    try:
        with current.wrap_database_errors:
            sent, names = numbered(statement) if values is not None else (statement, ())
            if isinstance(values, Mapping):
                values = [values[name] for name in names]
            cursor = cursor_for(sent, current, psycopg.RawCursor)
            cursor.execute(cast(Any, sent), values, prepare=prepare, binary=binary)
            try:
                return cursor.fetchall()
            finally:
                let_go(cursor)
    except Exception:
        if current.in_atomic_block:
            transaction.set_rollback(True)
        raise


_PLACEHOLDER = re.compile(r"%(?:\((\w+)\)s|(.?))", re.DOTALL)


@lru_cache(maxsize=256)
def numbered(statement: str) -> tuple[bytes, tuple[str, ...]]:
    """The statement as the server takes it, and the names of its values in their order, if they have names.

    The driver would look through a statement of more than 4 kB anew each time: of a ranked search, that is a thirtieth.
    """
    names: dict[str, int] = {}
    places = count(1)

    def number(found: re.Match[str]) -> str:
        name, other = found.groups()
        if other == "%":
            return "%"
        if name is None and other != "s":
            raise ValueError(f"{found[0]!r} is no placeholder, and a lone % is written twice: {statement[:80]}")
        return f"${next(places)}" if name is None else f"${names.get(name) or names.setdefault(name, next(places))}"

    return _PLACEHOLDER.sub(number, statement).encode(), tuple(names)


def bigint(given: int) -> int:
    """A whole number as a value of one type, where the driver takes the least that holds it.

    The server prepares a statement once for all types of its values: of two places, it would do so up to four times.
    """
    return Int8(given)


def array(ids: Iterable[int]) -> str:
    """Whole numbers as a value for `= ANY(%s)`: the driver would take longer over a list of them than the server."""
    return "{" + ",".join(map(str, ids)) + "}"


def texts(given: Iterable[str]) -> str:
    """The same of texts, of which none is to be NULL."""
    return "{" + ",".join('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in given) + "}"
