"""What full text search sees of a text (`lcm_tsv`), and what it makes of a query (`lcm_tsquery`)."""

from __future__ import annotations

from random import Random

import pytest
from django.db import Error, OperationalError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.scope import EVERYTHING
from conversations.sql import ROOMS
from retrieval.search.filters import Filters
from retrieval.search.request import SearchRequest
from retrieval.types import GrepScope
from tests.factories import a_conversation
from tests.statements import execute, value

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("query", "content"),
    [
        ("forEach", "items.forEach(print)"),
        ("fts5", "see src/store/fts5-sanitize.ts"),
        ("localhost 8000", "open http://localhost:8000/api"),
        ("naïve", "a naive cafe"),
        ("CAFÉ", "cafe\u0301"),
        ("ABC123", "ＡＢＣ１２３"),
        ("PostgreSQL数据库", "我们决定使用PostgreSQL数据库来保存消息"),
        ("เป็น", "ไม่เป็นไรครับ"),
        ("running", "it runs"),
        ("vector", "#include <vector>"),
        ("<vector>", "#include <vector>"),
        ("invoice", "Promise<Invoice>"),
        ("walrus", "<!-- ask for the walrus -->"),
        ("argo", '<ship name="Argo"/>'),
        ("bounds", "while a<the bounds and c>d"),
        ("depth", "scan(&depth;"),
        *((word, "alpha\ufffdbravo charlie\ufffd delta") for word in ("alpha", "bravo", "charlie", '"alpha bravo"')),
        *((word, "the “gateway”—port 7171…") for word in ("gateway", "port", "7171", "gateway—port", "“gateway”")),
        ("deployed", "deployed🚀"),
        ("🚀", "deployed🚀"),
        ("harbour", "the harbour’s port"),
        ("Привет", "«Привет» мир"),
        ("数据库", "「数据库」、消息"),
        ("1,850", "the rent is £1,850"),
        ("160", "bake at 160°C"),
        ("strasse", "Hauptstraße 3, Straße"),
        ("oeufs", "des œufs"),
        ("lodz", "Łódź"),
        ("Iğdır", "ığdır"),
        ("ايجار", "إيجار الشقة"),
        ("القطة", "القِطَّةُ"),
        ("שלום", "שָׁלוֹם"),
        ("फाइल", "फ़ाइल"),
        ("मूँगफली", "मूंगफली"),
        ("кошка", "Кошку"),
        ('"не найден"', "Файл не найден."),
        ("красный", "красная машина"),
        ("сервером", "перезапустите сервер"),
        ("развёрнутый", "приложение развернуто"),
        ("API-ключами", "API-ключ"),
    ],
)
def test_a_query_finds_the_text(query, content):
    assert value("SELECT lcm_tsv(%s) @@ lcm_tsquery(%s)", content, query)


@pytest.mark.parametrize(
    ("query", "content"),
    [('"не найден"', "Файл найден."), ('"нет места"', "Есть место."), ("docker -том", "Docker: том переполнен.")],
)
def test_a_query_with_a_short_russian_word_does_not_find_the_opposite(query, content):
    assert not value("SELECT lcm_tsv(%s) @@ lcm_tsquery(%s)", content, query)


@pytest.mark.parametrize(
    "piece",
    ["a_", "1e@", "deadbeef01", "aB", "AB", "_", "a___________", "数", "数a", "ﷺ", "e\u0301", "\u0301", " ", "<a>", "<"]
    + ["a@", "a.", "a-", "/a", "&a;", "й", "http://a.b/c?d=e&", "./", "~/", "é", "🎉", "\\"],
)
def test_no_text_of_the_largest_size_is_too_much(piece):
    text = (piece * 250_000)[:250_000]

    # A minute: PostgreSQL's own parser takes many for some of these.
    value("SELECT set_config('statement_timeout', '60000', true)")

    assert value("SELECT length(lcm_tsv(%s)) >= 0", text)


def test_five_megabytes_of_distinct_words_are_searchable_by_those_among_the_first_quarter_million_characters():
    text = " ".join(f"word{number:x}" for number in range(600_000))
    late = text[251_000:].split()[1]

    assert len(text) > 5_000_000
    assert value("SELECT lcm_tsv(%s) @@ 'word1f'::tsquery", text)
    assert not value("SELECT lcm_tsv(%s) @@ %s::tsquery", text, late)


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


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seq=st.integers(1, 200_000), before=st.integers(0, 100_000), behind=st.integers(1, 5000))
def test_a_message_is_found_by_every_stretch_that_it_stands_in_and_by_none_far_away(seq, before, behind):
    request = SearchRequest("boat", scope=GrepScope.MESSAGES, conversation_id=7)
    filters = Filters(EVERYTHING, request, 200_000, 0, 200_000, newest=200_000)

    def is_among(after: int, upto: int, conversation_id: int = 7) -> bool:
        query = filters.blocks(after, upto)
        return bool(value("SELECT lcm_places(%s, %s) @@ %s::tsquery", conversation_id, seq, query))

    after = max(0, seq - 1 - before)
    assert is_among(after, seq)
    assert is_among(after, seq + behind)
    assert not is_among(seq + 1024, seq + 1024 + behind)
    assert not is_among(after, seq + behind, conversation_id=8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet=st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=200))
def test_every_text_has_lexemes_and_every_text_is_a_query(text):
    assert value("SELECT length(lcm_tsv(%s)) >= 0", text)
    assert value("SELECT numnode(lcm_tsquery(%s)) >= 0", text)


def test_texts_stored_with_an_earlier_fold_are_indexed_again():
    execute("CREATE OR REPLACE FUNCTION lcm_fold(content text) RETURNS text LANGUAGE sql IMMUTABLE RETURN content")
    a_conversation("the rent is £1,850", "إيجار الشقة", "Vec<Order>", "plain")
    found = "SELECT array_agg(content ORDER BY seq) FROM messages WHERE content_tsv @@ lcm_tsquery(%s)"

    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute((ROOMS / "conversations/sql/search.sql").read_text())

    assert value(found, "1,850") == ["the rent is £1,850"]
    assert value(found, "ايجار") == ["إيجار الشقة"]
    assert value(found, "order") == ["Vec<Order>"]
    with pytest.raises(Error, match="refused"), transaction.atomic():
        value("UPDATE messages SET content = 'changed' RETURNING 1")
