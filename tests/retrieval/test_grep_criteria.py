"""What a search can be narrowed to, in every mode and sort, and what contradicts itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from conversations.errors import Invalid, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import Summary
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from retrieval.engine import RetrievalEngine
from retrieval.policy import RetrievalPolicy
from retrieval.search import prepare
from retrieval.search.query import compiled_query
from retrieval.search.relevance import relevance_search
from retrieval.search.request import SearchRequest
from retrieval.types import GrepMode, GrepScope, GrepSort, ItemKind
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
from tests.integrity.erasing import erased
from tests.retrieval.lineages import engine
from tests.statements import analyze
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

MORNING = datetime(2026, 3, 1, 9, tzinfo=UTC)
WAYS = [{"sort": "relevance"}, {"sort": "hybrid"}, {"sort": "recency"}, {"mode": "regex"}]


@pytest.fixture(scope="module")
def talk(module_rows: None) -> int:
    """Six messages about boats, a minute apart, with two summaries and one over both."""
    thought = NewPart(PartType.REASONING, text_content="They dry slowly.")
    answer = NewPart(PartType.TEXT, text_content="The boats are painted.")
    messages = [
        NewMessage(Role.USER, "Which boats are there?"),
        a_tool_call("c1", name="read_file", path="boats.txt"),
        a_tool_result("c1", "seven boats"),
        NewMessage(Role.USER, "Paint the boats."),
        a_tool_call("c2", name="paint", what="boats"),
        NewMessage(Role.ASSISTANT, parts=(thought, answer)),
    ]
    number = a_conversation().conversation_id
    timed = [replace(each, created_at=MORNING + timedelta(minutes=minute)) for minute, each in enumerate(messages)]
    say(number, *timed)
    leaves = [a_summary_of(a_store(), number, seqs=[n, n + 1], content=f"The boats of {n}.") for n in (1, 3)]
    a_summary_of(a_store(), number, summaries=leaves, content="All boats.")
    return number


@pytest.mark.parametrize(
    ("narrowed", "messages", "summaries"),
    [
        ({"roles": ["user"]}, [1, 4], []),
        ({"roles": ["user", "tool"]}, [1, 3, 4], []),
        ({"part_types": ["reasoning"]}, [6], []),
        ({"part_types": ["tool"]}, [2, 3, 5], []),
        ({"tool_names": ["paint"]}, [5], []),
        ({"tool_names": ["paint", "read_file"], "roles": ["tool"]}, [3], []),
        ({"tool_names": ["nothing"]}, [], []),
        ({"from_seq": 3}, [3, 4, 5, 6], [(3, 4), (1, 4)]),
        ({"to_seq": 2}, [1, 2], [(1, 2), (1, 4)]),
        ({"from_seq": 3, "to_seq": 4, "scope": "messages"}, [3, 4], []),
        ({"since": MORNING + timedelta(minutes=2)}, [3, 4, 5, 6], [(3, 4), (1, 4)]),
        ({"until": MORNING + timedelta(minutes=2)}, [1, 2], [(1, 2), (1, 4)]),
        ({"since": MORNING + timedelta(minutes=1), "until": MORNING + timedelta(minutes=2)}, [2], [(1, 2), (1, 4)]),
        ({"depth": 0}, [], [(1, 2), (3, 4)]),
        ({"depth": 1}, [], [(1, 4)]),
        ({"under": (1, 4)}, [1, 2, 3, 4], [(1, 2), (3, 4)]),
        ({"under": (3, 4)}, [3, 4], []),
    ],
    ids=str,
)
def test_only_what_was_asked_for_is_found(talk, narrowed, messages, summaries):
    ids = {(each.first_seq, each.last_seq): each.summary_id for each in Summary.objects.all()}
    below = {"under": ids[narrowed["under"]]} if "under" in narrowed else {}

    for way in WAYS:
        found = engine().grep(query="boats", conversation_id=talk, **way, **(narrowed | below)).matches

        assert sorted(each.first_seq for each in found if each.kind is ItemKind.MESSAGE) == messages
        assert {each.id for each in found if each.kind is ItemKind.SUMMARY} == {ids[range] for range in summaries}


def test_of_a_very_common_word_the_newest_of_those_asked_for_are_looked_at_wherever_they_are(monkeypatch):
    for module in (compiled_query, relevance_search):
        monkeypatch.setattr(module, "MOST_CANDIDATES", 20)
    conversation = a_conversation(*(f"error number {number}" for number in range(400)))
    analyze()

    def found(**narrowed: Any) -> set[int]:
        result = engine().grep(query="error", conversation_id=conversation.conversation_id, limit=50, **narrowed)
        assert result.bounded
        return {match.first_seq for match in result.matches}

    assert found(roles=["user"]) == set(range(361, 400, 2))
    assert found(roles=["user"], to_seq=99) == set(range(61, 100, 2))
    assert found(to_seq=99) == set(range(80, 100))
    # Of all conversations, places are ids, which other conversations have, too: how far back it looks is an estimate.
    everywhere = engine().grep(query="error", limit=20)
    assert everywhere.bounded
    assert len(everywhere.matches) == 20


def test_which_tool_was_called_is_found_out_of_the_newest_with_a_very_common_word_and_the_answer_says_so(monkeypatch):
    for module in (compiled_query, relevance_search):
        monkeypatch.setattr(module, "MOST_CANDIDATES", 20)
    monkeypatch.setattr(relevance_search, "MOST_PROMISING", 50)
    monkeypatch.setattr(prepare, "MOST_CALLS", 20)
    calls = [
        a_tool_call(f"call_{number}", name="paint" if number % 10 == 0 else "read_file", text=f"error number {number}")
        for number in range(200)
    ]
    conversation_id = a_conversation().conversation_id
    say(conversation_id, *calls)
    analyze()

    result = engine().grep(query="error", conversation_id=conversation_id, tool_names=["paint"], limit=50)

    assert {match.first_seq for match in result.matches} == {151, 161, 171, 181, 191}
    assert result.bounded
    assert "the newest" in result.note


def test_what_has_to_do_with_a_tool_is_the_same_however_often_it_was_called(monkeypatch):
    calls = [
        message
        for number in range(5)
        for message in (
            *(a_tool_call(f"call_{number}_{n}", name=name, text="boats") for n, name in enumerate(["steer", "sail"])),
            *(a_tool_result(f"call_{number}_{n}", "boats and more boats") for n in (1, 0)),
        )
    ]
    conversation_id, other = a_conversation("boats").conversation_id, a_conversation("boats").conversation_id
    for each in (conversation_id, other):
        say(each, *calls)

    def found(**asked: Any) -> list[tuple[int, int]]:
        matches = engine().grep(query="boats", limit=100, scope="messages", **asked).matches
        return sorted((match.conversation_id, match.first_seq) for match in matches)

    tools = (["steer"], ["sail", "steer"], ["nothing"])
    for way, where, names in product(WAYS, ({"conversation_id": conversation_id}, {}), tools):
        monkeypatch.setattr(prepare, "MOST_CALLS", 300)
        told_by_calls = found(tool_names=names, **where, **way)
        monkeypatch.setattr(prepare, "MOST_CALLS", 0)
        assert told_by_calls == found(tool_names=names, **where, **way)
        assert len(told_by_calls) == (0 if names == ["nothing"] else 10 * len(names) * (1 if where else 2))


def test_a_neighbour_that_was_not_asked_for_is_no_answer():
    conversation = a_conversation("Which boat is it?", "The red one.", "And which harbour?", "The northern one.")

    for way in WAYS:
        result = engine().grep(
            query="which boat is in the harbour?" if "sort" in way else "boat|harbour",
            conversation_id=conversation.conversation_id,
            roles=["assistant"],
            **way,
        )

        assert {match.role for match in result.matches} <= {Role.ASSISTANT}


@pytest.mark.parametrize("taken", ["erased", "cold"])
def test_a_neighbour_without_its_text_is_no_answer(taken):
    number = a_conversation("The red boat sails.", "It left at nine.").conversation_id
    say(number, "Where is the red boat moored?", "In the northern harbour.")
    if taken == "erased":
        erased(Erasures.from_settings(), number, from_seq=1, to_seq=2)
    else:
        Retention.from_settings().archive(conversation_id=number)
        say(number, "Is the red boat still moored there?")

    result = engine().grep(query="where is the red boat moored?", conversation_id=number)

    assert result.matches
    assert all(match.snippet.text for match in result.matches)


def test_a_list_of_conversations_is_searched_and_no_other():
    ids = [a_conversation(f"boats in number {number}").conversation_id for number in range(4)]

    for way in WAYS:
        result = engine().grep(query="boats", conversation_ids=[ids[0], ids[2], ids[0]], **way)

        assert {match.conversation_id for match in result.matches} == {ids[0], ids[2]}
        assert (result.conversation_id, result.conversation_ids) == (None, (ids[0], ids[2]))
        of_one = engine().grep(query="boats", conversation_ids=[ids[1]], **way)
        assert [match.conversation_id for match in of_one.matches] == [ids[1]]


def test_a_list_with_a_conversation_of_somebody_else_is_refused():
    mine = a_conversation("boats").conversation_id
    theirs = a_conversation("boats", workspace=a_workspace("another")).conversation_id

    for other in (theirs, 2**80):
        with pytest.raises(NotFound):
            engine().grep(query="boats", conversation_ids=[mine, other])


def test_below_a_summary_of_somebody_else_there_is_nothing_to_see():
    workspace = a_workspace("another")
    theirs = a_conversation("boats", workspace=workspace)
    summary = a_summary_of(a_store(workspace), theirs.conversation_id, seqs=[1])

    with pytest.raises(NotFound):
        engine().grep(query="boats", under=summary.summary_id)


def test_files_are_found_by_name_and_by_what_was_seen_in_them():
    conversation = a_conversation("Here it comes.", "Thanks.")
    files = LargeFileService.from_settings(Scope(a_workspace().pk))
    stored = files.store(
        conversation_id=conversation.conversation_id,
        content=b"harbour,boats\nnorth,7\nsouth,9\n",
        file_name="fleet-report.csv",
        mime_type="text/csv",
    )
    a_conversation("harbour boats", "fleet-report.csv")

    for way in WAYS:
        by_name = engine().grep(query="fleet-report", scope="files", **way)
        inside = engine().grep(query="harbour", scope="all", conversation_id=conversation.conversation_id, **way)
        others = RetrievalEngine.from_settings(Scope(a_workspace("another").pk))

        for result in (by_name, inside):
            (match,) = result.matches
            assert (match.id, match.kind, match.file_name) == (stored.file_id, ItemKind.FILE, "fleet-report.csv")
            assert (match.conversation_id, match.session_id) == (conversation.conversation_id, conversation.session_id)
            assert match.snippet.highlights
        assert others.grep(query="harbour", scope="all", **way).matches == ()


@pytest.mark.parametrize(
    ("narrowed", "param"),
    [
        ({"from_seq": 5, "to_seq": 4, "conversation_id": 1}, "to_seq"),
        ({"from_seq": 1}, "from_seq"),
        ({"to_seq": 1, "conversation_ids": (1, 2)}, "to_seq"),
        ({"since": MORNING, "until": MORNING}, "until"),
        ({"conversation_id": 1, "conversation_ids": (1,)}, "conversation_ids"),
        ({"roles": ("user",), "scope": GrepScope.SUMMARIES}, "roles"),
        ({"tool_names": ("x",), "scope": GrepScope.FILES}, "tool_names"),
        ({"depth": 0, "scope": GrepScope.MESSAGES}, "depth"),
        ({"depth": 0, "roles": ("user",)}, "depth"),
        ({"from_seq": 1, "conversation_id": 1, "scope": GrepScope.FILES}, "from_seq"),
        ({"mode": GrepMode.REGEX, "sort": GrepSort.RELEVANCE}, "sort"),
        ({"cold": True, "sort": GrepSort.HYBRID}, "sort"),
        ({"cold": True, "scope": GrepScope.FILES}, "cold"),
        ({"query": " "}, "query"),
        ({"query": "x" * 10_001}, "query"),
        ({"query": "x" * 501, "mode": GrepMode.REGEX}, "query"),
        ({"query": "a\x00b"}, "query"),
    ],
)
def test_filters_that_nothing_could_meet_are_refused_and_say_which(narrowed, param):
    request = SearchRequest(**{"query": "boats", "scope": GrepScope.ALL, **narrowed})

    with pytest.raises(Invalid) as refusal:
        request.validated(RetrievalPolicy())

    assert list(refusal.value.context["errors"]) == [param]


def test_a_summary_and_another_conversation_contradict_each_other():
    summary = a_summary_of(a_store(), a_conversation("boats").conversation_id, seqs=[1])
    other = a_conversation("boats").conversation_id

    with pytest.raises(Invalid, match="another conversation"):
        engine().grep(query="boats", under=summary.summary_id, conversation_id=other)
