"""Every page sends few statements, and shows what anybody wrote as text; a search sends those of its fallbacks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from django.test import Client

from conversations.models import Workspace
from conversations.scope import Scope
from integrity.retention.tiers import Retention
from lcmsite.dashboard.navigation import MENU, TABS
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from retrieval.search import prepare
from tests.factories import a_workspace
from tests.lcmsite.dashboard.furnished import Furnished, furnished_in
from tests.lcmsite.dashboard.test_who_may_open import OF_SUPERUSERS, SHOWN
from tests.lcmsite.dashboard.visiting import HOSTILE, browser_of, logged_in
from tests.statements import counted_statements

MOST = 9
# The picture of a lineage: snapshot, conversation, and one statement each for summaries, raw messages, messages, runs
# and boundaries. The transcript shows it, too, with what of it is quarantined; for an earlier run, two more statements
# find when that was.
MOST_OF_A_LINEAGE = 14
# What is quarantined is looked up for the description, and again for the lines.
MOST_OF_A_FILE = MOST + 1
# A search without a match: session, person, memberships, snapshot, timeouts, extent, lexeme statistics (cached until
# the next ANALYZE), lexemes, and one statement for the query and for each of its five looser forms. A context with a
# query sends as many, for what the search found, its neighbours and the texts of messages, parts and summaries.
MOST_OF_A_SEARCH = 15
# Everything about a name: a search by recency, one without the aspect if nothing has it, and one by relevance.
MOST_OF_ABOUT = 21
# The packed texts of a cold history are one statement more.
MOST_OF_COLD = MOST + 1
WHO_AND_WHERE = 3
WORDS = ("the harbour", "its boats", "the lighthouse.txt", "Ann", "seven_ferries", HOSTILE)


furnished = furnished_in(WORDS)


@pytest.fixture(autouse=True)
def files_of_its_own(furnished: Furnished) -> None:
    """None: all tests here look at the same files."""


@pytest.fixture(autouse=True)
def lexeme_statistics(furnished: Furnished, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached, as on a site that is searched now and then."""
    monkeypatch.setattr(prepare, "_SETTLED_SECONDS", 0)
    RetrievalEngine.from_settings(Scope(Workspace.objects.get(name="default").pk)).grep(query="harbour")


@pytest.fixture(scope="module")
def ann(furnished: Furnished) -> Client:
    """An admin, who is shown everything, in three workspaces."""
    return logged_in("ann")


def asked_by(client: Client, addresses: Iterable[tuple[str, str]], *, as_parts: bool) -> dict[str, int]:
    """How often each of these asks, as a page, or as the part of one that a script asks for."""
    headers = {"HX-Request": "true"} if as_parts else {}
    asked = {}
    for _, address in addresses:
        asked[address] = statements_of(client, address, headers)
    assert all(count >= 2 for count in asked.values()), "who asks is asked for"
    return asked


def statements_of(client: Client, address: str, headers: dict[str, str]) -> int:
    with counted_statements() as sent:
        answer: Any = client.get(address, headers=headers)
        # A file's bytes are not read before somebody takes them.
        body = b"".join(answer)
    assert body or answer.status_code == 302, address
    assert HOSTILE.encode() not in body or "attachment" in answer.headers.get("Content-Disposition", ""), address
    assert answer.status_code in (200, 302), address
    return len(sent)


def too_many(asked: dict[str, int], most: int = MOST, *, is_cold: bool = False) -> dict[str, int]:
    """The addresses that send more than their kind of page may; `most` is that of a plain page."""

    def limit(address: str) -> int:
        # A context with a query is assembled by a search.
        if "/context/?query=" in address:
            return MOST_OF_A_SEARCH
        if "/about/?" in address:
            return MOST_OF_ABOUT + is_cold
        if "/files/file_" in address:
            return MOST_OF_A_FILE
        # A session is opened down to its summaries and messages, with their parts.
        if re.search(r"/lineage/|/projects/summaries/|/conversations/\d+/(messages/)?(\?|$)", address):
            return max(most, MOST_OF_A_LINEAGE + most - MOST)
        return most

    return {address: count for address, count in asked.items() if count > limit(address)}


def test_every_address_that_can_be_opened_is_asked_for(furnished):
    named = {name for pages in MENU.values() for name in pages} | set(TABS)
    shown = {name for names in SHOWN.values() for name in names.split()}
    shown |= {name for verb, name, _ in OF_SUPERUSERS if verb == "GET"}

    pages = {name for name, _ in (*furnished.pages(), *furnished.pages_of_the_site())}
    others = {name for name, _ in (*furnished.pieces(), *furnished.ways_out())}

    assert named <= pages
    # A ledger is all that there is of a conversation, whatever that takes.
    assert pages | others | {"context-text", "conversation-ledger"} == shown


@pytest.mark.parametrize(
    ("username", "kinds", "as_parts", "most"),
    [
        ("ann", ("pages", "ways_out"), False, MOST),
        # A superuser sees what belongs to the whole site, too.
        ("sue", ("pages_of_the_site",), False, MOST),
        ("ann", ("pieces",), True, MOST),
        # Any page may be requested by a script, too, and many of them then give a part: a list's next page, say.
        pytest.param("ann", ("pages",), True, MOST, marks=pytest.mark.thorough),
        ("ann", ("answers",), True, MOST_OF_A_SEARCH),
    ],
)
def test_no_page_asks_more_than_it_may_or_repeats_markup(furnished, username, kinds, as_parts, most):
    addresses = [each for kind in kinds for each in getattr(furnished, kind)()]

    assert too_many(asked_by(logged_in(username), addresses, as_parts=as_parts), most) == {}


@pytest.fixture
def cold(furnished: Furnished) -> Iterator[None]:
    """Its texts packed in blocks, for as long as a test looks at them."""
    retention = Retention.from_settings(Scope(Workspace.objects.get(name="default").pk))
    retention.archive(conversation_id=furnished.conversation_id)
    yield
    retention.thaw(conversation_id=furnished.conversation_id)


@pytest.mark.thorough
def test_nor_does_a_history_that_went_cold(furnished, ann, cold):
    parts = [*furnished.pages(), *furnished.pieces()]
    shown = ann.get(f"/w/default/conversations/{furnished.conversation_id}/trust/").content.decode()

    assert ">cold</span>" in shown
    assert too_many(asked_by(ann, furnished.pages(), as_parts=False), MOST_OF_COLD, is_cold=True) == {}
    assert too_many(asked_by(ann, parts, as_parts=True), MOST_OF_COLD, is_cold=True) == {}
    assert too_many(asked_by(ann, furnished.answers(), as_parts=True), MOST_OF_A_SEARCH, is_cold=True) == {}


def test_the_page_adds_who_asks_and_where_and_nothing_else(furnished, ann):
    """To what the same question asks of the service itself, however much there is to show of what it finds."""
    here = furnished.conversation_id
    searched = f"/w/default/search/?query=harbour&scope=all&conversation_id={here}"
    assembled = f"/w/default/conversations/{here}/context/?budget=900&query=harbour"
    scope = Scope(Workspace.objects.get(name="default").pk)

    asked = asked_by(ann, [("search", searched), ("inspector", assembled)], as_parts=True)
    with counted_statements() as found:
        RetrievalEngine.from_settings(scope).grep(query="harbour", scope="all", conversation_id=here, limit=20)
    with counted_statements() as chosen:
        ContextAssembler.from_settings(scope).assemble(conversation_id=here, budget=900, query="harbour")

    assert asked == {searched: len(found) + WHO_AND_WHERE, assembled: len(chosen) + WHO_AND_WHERE}


def test_what_belongs_to_another_workspace_looks_like_nothing(furnished):
    stranger = browser_of("admin", workspace=a_workspace("theirs"), name="eve")
    # One address of each name; the history of a repair is a filter of the own audit log.
    named = {
        name: address
        for name, address in (*furnished.pages(), *furnished.pieces(), *furnished.ways_out())
        if name == "place" or (name != "repair-history" and re.search(r"/(\d+|[a-z]+_[0-9a-f]+)/", address))
    }

    statuses = {
        name: stranger.get(each.replace("/w/default/", "/w/theirs/")).status_code for name, each in named.items()
    }

    assert len(named) > 25
    assert {name: status for name, status in statuses.items() if status != 404} == {}
