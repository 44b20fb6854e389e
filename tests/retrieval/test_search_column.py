"""What full text search sees of a text (`lcm_tsv`), and what it makes of a query (`lcm_tsquery`)."""

from __future__ import annotations

from random import Random

import pytest
from django.db import OperationalError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.scope import EVERYTHING
from retrieval.search.filters import Filters
from retrieval.search.request import SearchRequest
from retrieval.types import GrepScope
from tests.factories import a_conversation, a_store
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

CHINESE = "我们决定使用PostgreSQL数据库来保存消息"
JAPANESE = "エラーメッセージを確認してから再起動する"
KOREAN = "데이터베이스 연결이 끊어졌습니다"
THAI = "ไม่เป็นไรครับ"


def value(statement: str, *values: object) -> object:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]


def finds(query: str, content: str) -> bool:
    return bool(value("SELECT lcm_tsv(%s) @@ lcm_tsquery(%s)", content, query))


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("getSummary", "we call getSummary() here"),
        ("get summary", "we call getSummary() here"),
        ("summary", "we call getSummary() here"),
        ("http response", "class HTTPResponse:"),
        ("forEach", "items.forEach(print)"),
        ("fts5", "see src/store/fts5-sanitize.ts"),
        ("fts5-sanitize.ts", "see src/store/fts5-sanitize.ts"),
        ("src/store/fts5-sanitize.ts", "see src/store/fts5-sanitize.ts"),
        ("sanitize", "see src/store/fts5-sanitize.ts"),
        ("max_width", "MAX_WIDTH = 80"),
        ("max width", "MAX_WIDTH = 80"),
        ("localhost 8000", "open http://localhost:8000/api"),
        ("naive cafe", "a naïve Café"),
        ("naïve", "a naive cafe"),
        ("CAFÉ", "cafe\u0301"),
        ("ABC123", "ＡＢＣ１２３"),
        ("数据库", CHINESE),
        ("数据", CHINESE),
        ("保存", CHINESE),
        ("postgresql", CHINESE),
        ("PostgreSQL数据库", CHINESE),
        ("エラー", JAPANESE),
        ("再起動", JAPANESE),
        ("데이터", KOREAN),
        ("연결", KOREAN),
        ("เป็น", THAI),
        ("резервная", "Резервная копия"),
        ('"exact phrase"', "an exact phrase here"),
        ("running", "it runs"),
    ],
)
def test_a_query_finds_the_text(query, content):
    assert finds(query, content)


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("据数", CHINESE),
        ("数据消息", CHINESE),
        ('"phrase exact"', "an exact phrase here"),
        ("docker -compose", "docker compose"),
        ("-getSummary summary", "we call getSummary()"),
        ("the", "the the the"),
    ],
)
def test_a_query_does_not_find_the_text(query, content):
    assert not finds(query, content)


@pytest.mark.parametrize(
    "piece",
    ["a_", "1e@", "deadbeef01", "aB", "AB", "_", "a___________", "数", "数a", "ﷺ", "e\u0301", "\u0301", " ", "<a>", "<"]
    + ["a@", "a.", "a-", "/a", "&a;", "http://a.b/c?d=e&", "./", "~/", "é", "🎉", "\\"],
)
def test_no_text_of_the_largest_size_is_too_much(piece):
    text = (piece * 250_000)[:250_000]

    # Ten seconds: PostgreSQL's own parser takes minutes for some of these.
    value("SELECT set_config('statement_timeout', '10000', true)")

    assert value("SELECT length(lcm_tsv(%s)) >= 0", text)


def test_five_megabytes_of_distinct_words_are_searchable_by_the_first_of_them():
    text = " ".join(f"word{number:x}" for number in range(600_000))

    assert len(text) > 5_000_000
    assert value("SELECT lcm_tsv(%s) @@ 'word1f'::tsquery", text)


def test_a_text_that_leaves_no_room_for_its_place_is_cut_once_more():
    # Of a script without spaces, every pair of characters is a lexeme, here nearly always another one.
    text = "".join(map(chr, Random(1).choices(range(0x4E00, 0x9FA0), k=110_000)))
    place = (2**62, 2**62)
    fits, too_much = 100_000, len(text)
    while too_much - fits > 1:
        size = (fits + too_much) // 2
        try:
            with transaction.atomic():
                value("SELECT length(lcm_tsv_of(%s))", text[:size])
            fits = size
        except OperationalError:
            too_much = size

    with pytest.raises(OperationalError, match="too long for tsvector"), transaction.atomic():
        value("SELECT length(lcm_tsv_of(%s) || lcm_places(%s, %s))", text[:fits], *place)

    assert value("SELECT lcm_tsv_at(%s, %s, %s) @@ %s::tsquery", text[:fits], *place, f"'in {place[0]}'")


def test_the_index_for_words_tells_conversations_apart_by_what_no_text_holds():
    of_one = a_conversation("a boat").conversation_id
    of_another = a_conversation(f"a boat, in {of_one}", f"a boat, 'in {of_one}'").conversation_id

    found = {
        each: value(
            "SELECT array_agg(DISTINCT conversation_id) FROM messages WHERE content_tsv @@ %s::tsquery",
            f"'boat' & 'in {each}'",
        )
        for each in (of_one, of_another)
    }

    assert found == {of_one: [of_one], of_another: [of_another]}


def test_a_summary_stands_where_its_last_message_does():
    conversation_id = a_conversation(*["a boat"] * 1030).conversation_id
    early = a_summary_of(a_store(), conversation_id, seqs=range(1, 1024), content="About boats.")
    late = a_summary_of(a_store(), conversation_id, seqs=range(1024, 1030), content="About boats.")

    found = {
        block: value(
            "SELECT array_agg(summary_id) FROM summaries WHERE content_tsv @@ %s::tsquery",
            f"'boat' & 'in {conversation_id}/{block}'",
        )
        for block in (0, 1, 2)
    }

    assert found == {0: [early.summary_id], 1: [late.summary_id], 2: None}


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seq=st.integers(1, 200_000), before=st.integers(0, 100_000), behind=st.integers(1, 5000))
def test_a_message_is_found_by_every_stretch_that_it_stands_in_and_by_none_far_away(seq, before, behind):
    request = SearchRequest("boat", scope=GrepScope.MESSAGES, conversation_id=7)
    filters = Filters(EVERYTHING, request, 200_000, 0, 200_000, newest=200_000)

    def is_among(after: int, upto: int, conversation_id: int = 7) -> bool:
        query = filters.blocks(after, upto)
        return bool(value("SELECT lcm_places(%s, %s) @@ %s::tsquery", conversation_id, seq, query))

    assert is_among(max(0, seq - 1 - before), seq)
    assert is_among(max(0, seq - 1 - before), seq + behind)
    assert not is_among(seq + 1024, seq + 1024 + behind)
    assert not is_among(max(0, seq - 1 - before), seq + behind, conversation_id=8)


def test_what_comes_after_a_quarter_million_characters_is_not_in_the_index():
    assert value("SELECT lcm_tsv(%s) @@ 'zebra'::tsquery", "zebra " + "x " * 125_000 + "late")
    assert not value("SELECT lcm_tsv(%s) @@ 'late'::tsquery", "zebra " + "x " * 125_000 + "late")


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.text(
        alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\x00"),
        max_size=200,
    )
)
def test_every_text_has_lexemes_and_every_text_is_a_query(text):
    assert value("SELECT length(lcm_tsv(%s)) >= 0", text)
    assert value("SELECT numnode(lcm_tsquery(%s)) >= 0", text)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="数据库消息确认", min_size=2, max_size=5), st.text(alphabet="的了 是在a", max_size=6))
def test_any_run_of_chinese_is_found_in_whatever_stands_around_it(word, around):
    assert finds(word, around + word + around)


def test_the_functions_are_immutable():
    names = ["lcm_tsv", "lcm_tsv_of", "lcm_fold", "lcm_bigrams", "lcm_compound_parts", "lcm_broken", "lcm_tsquery"]

    with connection.cursor() as cursor:
        cursor.execute("SELECT proname, provolatile FROM pg_proc WHERE proname = ANY(%s)", [names])
        assert dict(cursor.fetchall()) == dict.fromkeys(names, "i")
