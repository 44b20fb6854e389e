"""What is read last for an answer is said to be the last: the transaction ends while the answer is made of it."""

from __future__ import annotations

import select
from collections.abc import Iterator
from itertools import product
from types import ModuleType
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from conversations.files.large_files import LargeFileService
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from integrity.retention.tiers import Retention
from retrieval.assembler import ContextAssembler
from retrieval.assembly import selection_items
from retrieval.engine import RetrievalEngine
from retrieval.search import matches
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace
from tests.summaries import a_summary_of

pytestmark = pytest.mark.usefixtures("committed_db")

QUERIES = ("boats", "harbour boats", "which boats leave the harbour?", "5433", '"to be"', "->", "harbour absent")


@pytest.fixture
def conversation_id() -> int:
    """Whose first messages are cold, with summaries of summaries, files and calls of a tool."""
    texts = [f"Turn {n}: boats leave the harbour -> on port {5400 + n}, to be or not." for n in range(1, 81)]
    store, number = a_store(), a_conversation(*texts[:40]).conversation_id
    leaves = [a_summary_of(store, number, seqs=range(at, at + 5), content=texts[at]) for at in range(1, 31, 5)]
    a_summary_of(store, number, summaries=leaves[:3], content="Boats, boats, and a harbour.")
    Retention.from_settings().archive(conversation_id=number)
    said = [NewMessage(Role.USER, text) for text in texts[40:]]
    said[20:20] = [a_tool_call("call", path="harbour.ts"), a_tool_result("call", "boats on port 5433")]
    store.append_messages(conversation_id=number, messages=said)
    a_summary_of(store, number, seqs=range(41, 51), content="More boats in the harbour.")
    # Of messages with another between them: what covers those is looked for.
    a_summary_of(store, number, seqs=(74, 76), content="Boats, now and then.")
    files = LargeFileService.from_settings(Scope(a_workspace().pk))
    files.store(conversation_id=number, content=b"boats", file_name="harbour.txt", mime_type="text/plain")
    return number


def searches() -> Iterator[dict[str, Any]]:
    for query, sort, scope in product(QUERIES, ("recency", "relevance", "hybrid"), ("both", "all", "files")):
        yield {"query": query, "sort": sort, "scope": scope}
    for query in QUERIES:
        yield {"query": query, "sort": "recency", "cold": True, "scope": "messages"}
    for is_cold in (False, True):
        yield {"query": r"port 54\d+", "mode": "regex", "cold": is_cold}
    yield {"query": "boats", "tool_names": ["read_file"]}


def pages(conversation_id: int, **asked: Any) -> list[Any]:
    """All that is found, the first few pages of it."""
    engine, cursor, told = RetrievalEngine.from_settings(Scope(a_workspace().pk)), None, []
    for _ in range(4):
        page = engine.grep(conversation_id=conversation_id, limit=5, cursor=cursor, **asked)
        told.append((page.matches, page.more, page.note, page.used, page.dropped, page.relaxed))
        cursor = page.cursor
        if cursor is None:
            break
    return told


def test_searches_of_all_kinds_give_what_they_give_where_the_transaction_goes_on(conversation_id):
    for asked in searches():
        by_themselves = pages(conversation_id, **asked)

        with transaction.atomic():
            assert pages(conversation_id, **asked) == by_themselves


@pytest.mark.parametrize("query", [None, "which boats leave the harbour?", "->"])
@pytest.mark.parametrize("more", [{}, {"as_of": 60}, {"budget": 300}, {"format": "openai"}])
def test_so_do_contexts(conversation_id, query, more):
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))
    asked = {"conversation_id": conversation_id, "query": query, **more}
    by_itself = assembler.assemble(**asked)

    with transaction.atomic():
        assert assembler.assemble(**asked) == by_itself


def the_server_does_when(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """While the module makes records of what was read; filled as they are made."""
    told: list[str] = []
    makes = module.record

    def made(*given: Any) -> Any:
        if not told:
            select.select([connection.connection], [], [], 10)
            with psycopg.connect(**connection.get_connection_params()) as other:
                process = [connection.connection.info.backend_pid]
                told.extend(*other.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", process))
        return makes(*given)

    monkeypatch.setattr(module, "record", made)
    return told


@pytest.mark.parametrize(
    "asked",
    [
        {"sort": "recency"},
        {"sort": "relevance"},
        {"mode": "regex"},
        {"sort": "recency", "cold": True},
    ],
)
def test_when_matches_are_made_of_what_was_found_the_transaction_is_over(conversation_id, asked, monkeypatch):
    told = the_server_does_when(matches, monkeypatch)

    assert pages(conversation_id, query="boats", **asked)[0][0]

    assert told == ["idle"]


@pytest.mark.parametrize("query", [None, "boats"])
def test_when_items_are_made_for_a_context_the_transaction_is_over(conversation_id, query, monkeypatch):
    told = the_server_does_when(selection_items, monkeypatch)
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))

    assert assembler.assemble(conversation_id=conversation_id, query=query).items

    assert told == ["idle"]
