"""Page after page, a list of matches is given once and whole, whatever is said meanwhile; no page floods a context."""

from __future__ import annotations

import json

import pytest
from django.test import override_settings

from conversations.content.tokens import TokenEstimator
from conversations.errors import Invalid
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from lcmsite.catalogue.json_text import as_ascii_json
from retrieval.engine import RetrievalEngine
from retrieval.policy import RetrievalPolicy
from retrieval.search.query import compiled_query
from retrieval.search.relevance import relevance_search
from retrieval.types import GrepResult, GrepSort
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.statements import analyze
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

ROOMY = RetrievalPolicy(max_grep_tokens=10_000_000)


def engine(policy: RetrievalPolicy = ROOMY) -> RetrievalEngine:
    return RetrievalEngine(policy=policy, tokens=TokenEstimator("o200k_base"), scope=Scope(a_workspace().pk))


@pytest.fixture
def talk() -> int:
    """Sixty messages, with summaries over the first of them."""
    colours = ("red", "green", "blue")
    texts = [f"{colours[n % 3]} boats {'-> harbour' if n % 4 else 'sea'} {'word ' * (n % 7)}{n}" for n in range(60)]
    number = a_conversation(*texts).conversation_id
    for n in (1, 4, 7):
        a_summary_of(a_store(), number, seqs=[n, n + 1, n + 2], content=f"boats -> and harbour, {n}")
    return number


def ids(result: GrepResult) -> list[str]:
    return [match.id for match in result.matches]


def test_newest_first_gives_any_word_only_if_nothing_has_all(talk):
    both = engine().grep(query="red sea", sort="recency", conversation_id=talk)
    either = engine().grep(query="zebra sea", sort="recency", conversation_id=talk)

    assert not both.relaxed
    assert all("red" in match.snippet.text and "sea" in match.snippet.text for match in both.matches)
    assert (either.relaxed, either.used, either.dropped) == (True, ("sea",), ("zebra",))
    assert all("sea" in match.snippet.text for match in either.matches)


def test_of_what_fits_alike_hybrid_gives_the_newer_and_of_what_fits_far_better_the_older():
    filler = [f"We speak of the weather, number {number}." for number in range(40)]
    conversation = a_conversation("zebra giraffe okapi", "lion", *filler, "lion", "zebra", *filler)

    def order(query: str) -> list[int]:
        found = engine().grep(query=query, sort="hybrid", conversation_id=conversation.conversation_id)
        return [match.first_seq for match in found.matches]

    assert order("lion") == [43, 2]
    assert order("zebra giraffe okapi")[0] == 1


@pytest.mark.parametrize(("texts", "is_told"), [(30, False), (31, True)])
def test_the_last_page_says_so_if_more_was_found_than_was_ranked(monkeypatch, texts, is_told):
    monkeypatch.setattr(relevance_search, "_RANKED", 10)
    conversation_id = a_conversation(*(f"boats number {n}" for n in range(texts))).conversation_id

    result = engine().grep(query="boats", conversation_id=conversation_id, limit=50)

    assert len(result.matches) == 30
    assert ("best were ranked" in (result.note or "")) is is_told


def test_later_pages_rank_as_many_as_the_first_whatever_is_appended(monkeypatch):
    monkeypatch.setattr(compiled_query, "MOST_CANDIDATES", 20)
    number = a_conversation(*(f"error number {n}" for n in range(400))).conversation_id
    analyze()
    asked = {"query": "error", "conversation_id": number, "limit": 12}

    first = engine().grep(**asked)
    messages = [NewMessage(Role.USER, "a harbour")] * 400
    say(number, *messages)
    second = engine().grep(**asked, cursor=first.cursor)

    assert sorted(match.first_seq for match in (*first.matches, *second.matches)) == list(range(381, 401))


def test_what_is_new_comes_up_from_as_far_behind_among_summaries_as_among_messages(monkeypatch):
    monkeypatch.setattr(relevance_search, "_PROMISING", -55)
    conversation_id = a_conversation(*(f"boats number {n}" for n in range(9))).conversation_id
    for seq in range(1, 10):
        a_summary_of(a_store(), conversation_id, seqs=[seq], content="boats " * (10 - seq))

    asked = {"query": "boats", "scope": "summaries", "conversation_id": conversation_id, "limit": 50}
    by_relevance, hybrid = (
        [match.first_seq for match in engine().grep(**asked, sort=sort).matches] for sort in ("relevance", "hybrid")
    )

    assert len(by_relevance) == 5
    assert 9 in hybrid


def test_a_cursor_of_another_search_and_a_text_that_is_none_are_refused(talk):
    first = engine().grep(query="boats", conversation_id=talk, limit=5)
    others = [
        {"query": "harbour", "conversation_id": talk},
        {"query": "boats"},
        {"query": "boats", "conversation_id": talk, "sort": GrepSort.RECENCY},
        {"query": "boats", "conversation_id": talk, "roles": ["user"]},
        {"query": "boats", "conversation_id": talk, "mode": "regex"},
        {"query": "boats", "conversation_id": talk, "scope": "messages"},
    ]

    for other in others:
        with pytest.raises(Invalid) as refusal:
            engine().grep(cursor=first.cursor, **other)
        assert refusal.value.code == "bad_cursor"
    for cursor in ("", "nonsense", "e30:1xUN0v:p21rpvUeGLzkiP", "x" * 5000):
        with pytest.raises(Invalid) as refusal:
            engine().grep(query="boats", conversation_id=talk, cursor=cursor)
        assert refusal.value.code == "bad_cursor"
    elsewhere = RetrievalEngine.from_settings(Scope())
    with pytest.raises(Invalid):
        elsewhere.grep(query="boats", conversation_id=talk, cursor=first.cursor)


def test_a_cursor_is_signed_with_the_key_of_its_time_and_read_for_as_long_as_that_is_kept(talk):
    asked = {"query": "boats", "sort": "recency", "conversation_id": talk, "limit": 5}
    with override_settings(SECRET_KEY="first" * 10):
        first = engine().grep(**asked)

    with override_settings(SECRET_KEY="second" * 10, SECRET_KEY_FALLBACKS=["first" * 10]):
        second = engine().grep(cursor=first.cursor, **asked)

    with override_settings(SECRET_KEY="second" * 10):
        assert engine().grep(cursor=second.cursor, **asked).matches
        with pytest.raises(Invalid, match="not a cursor that grep gave"):
            engine().grep(cursor=first.cursor, **asked)


@pytest.mark.parametrize("asked", [{"query": "boats", "sort": "recency"}, {"query": "->"}], ids=["words", "literally"])
def test_no_page_takes_more_tokens_than_its_cap_and_the_cursor_has_the_rest(talk, asked):
    count = TokenEstimator("o200k_base").count
    whole = engine().grep(**asked, limit=200)

    seen: list[str] = []
    cursor = None
    while True:
        page = engine().grep(**asked, limit=200, max_tokens=1500, cursor=cursor)
        assert count(json.dumps(json.loads(as_ascii_json(page))["items"], ensure_ascii=False)) <= 1500
        seen += ids(page)
        cursor = page.cursor
        if cursor is None:
            break
        assert page.more

    assert seen == ids(whole)
    assert len(seen) > 40


@pytest.mark.parametrize(("cap", "max_tokens", "most"), [(10**7, 1, 1), (1000, 10**6, 19), (1000, None, 19)])
def test_a_page_is_capped_without_being_asked_and_never_empty(talk, cap, max_tokens, most):
    page = engine(RetrievalPolicy(max_grep_tokens=cap)).grep(query="boats", max_tokens=max_tokens)

    assert 1 <= len(page.matches) <= most
    assert page.more
