"""What each trick of `conversations/fast/` saves: the same work with it and without it, by turns, on one database.

python -m tests.benchmarks.plain_ways
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from tests.scratch_database import scratch_database

ROUNDS = 15
MESSAGES = 500


def main() -> None:
    with scratch_database():
        # Not imported above: models want a Django that is set up.
        from itertools import islice

        from conversations.scope import Scope
        from tests.benchmarks.corpus import Corpus
        from tests.benchmarks.ingest import a_store

        store = a_store()
        number = store.open_conversation(session_id="plain ways").conversation_id
        store.append_messages(conversation_id=number, messages=list(islice(Corpus(MESSAGES), MESSAGES)))
        message = store.list_messages(conversation_id=number, limit=1)[0].message_id
        scope: Scope = store.scope
        _compare("prepared statements: get a message", _unprepared, lambda: store.get_message(message_id=message), 20)
        _compare("look-up of one row: a conversation", _by_orm, lambda: scope.conversation(number), 50)
        _compare("records: a page of 500", _constructed, lambda: store.list_messages(conversation_id=number, limit=500))


@contextmanager
def _unprepared() -> Iterator[None]:
    from conversations.fast.prepared import PreparedCursor

    def execute(cursor: Any, query: Any, params: Any = None, **options: Any) -> Any:
        return super(PreparedCursor, cursor).execute(query, params, **{**options, "prepare": False})

    with patch.object(PreparedCursor, "execute", execute):
        yield


@contextmanager
def _by_orm() -> Iterator[None]:
    from conversations.fast.lookup import OneRow

    def get(query: Any, values: Any) -> Any:
        names = ("pk", "workspace_id")[: len(values)]
        return query.model.objects.filter(**dict(zip(names, values, strict=True))).first()

    with patch.object(OneRow, "get", get):
        yield


@contextmanager
def _constructed() -> Iterator[None]:
    with patch("conversations.store.read.record", lambda kind, values: kind(**values)):
        yield


def _compare(name: str, without: Callable[[], Any], work: Callable[[], object], times: int = 1) -> None:
    from tests.benchmarks.measure import duel

    def fast(_: Any) -> None:
        for _ in range(times):
            work()

    def plain(_: Any) -> None:
        with without():
            fast(None)

    found = duel(floor=plain, ours=fast, work=[(None, None)] * (ROUNDS + 1))
    with_it, without_it = (1000 * laps.cost / times for laps in (found.ours, found.floor))
    print(f"{name:<45} {with_it:8.2f} ms, the plain way {without_it:8.2f} ms: {without_it - with_it:+.2f} ms")


if __name__ == "__main__":
    main()
