"""Search by regular expression."""

from __future__ import annotations

import pytest

from conversations.errors import Invalid
from retrieval.search.patterns.pattern_search import NEAR
from tests.factories import a_conversation, a_store
from tests.retrieval.lineages import engine
from tests.statements import counted_statements
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def found(pattern: str, **options) -> list[str]:
    return [match.snippet.text for match in engine().grep(query=pattern, mode="regex", **options).matches]


def test_a_pattern_finds_the_newest_first_and_shows_what_it_matched():
    conversation = a_conversation("port 5432", "nothing", "port 5433", "port none")

    matches = engine().grep(query=r"port \d+", mode="regex", conversation_id=conversation.conversation_id).matches

    assert [match.first_seq for match in matches] == [3, 1]
    shown = matches[0].snippet
    assert [shown.text[begin:end] for begin, end in shown.highlights] == ["port 5433"]


def test_a_match_deep_in_a_long_text_is_shown_with_its_place():
    content = "x" * 300_000 + " needle-77 " + "y" * 300_000
    a_conversation(content, overrides={"large_file_tokens": 0})

    (match,) = engine().grep(query=r"needle-\d+", mode="regex").matches

    begin, end = match.snippet.highlights[0]
    assert match.snippet.text[begin:end] == "needle-77"
    assert content[match.snippet.offset :].startswith(match.snippet.text)


def test_what_is_near_what_is_far_and_each_other_table_is_searched_by_one_statement():
    texts = ["needle one"] + ["hay"] * (2 * NEAR + 10) + ["needle two"]
    conversation = a_conversation(*texts)
    summary = a_summary_of(a_store(), conversation.conversation_id, seqs=[1, 2], content="About a needle.")

    with counted_statements() as sent:
        answer = engine().grep(query="needle", mode="regex", scope="all", conversation_id=conversation.conversation_id)

    assert [match.id == summary.summary_id for match in answer.matches] == [False, True, False]
    assert sum("strpos" in statement for statement in sent) == 4


@pytest.mark.parametrize("pattern", ["(", "*a", "a{2,1}", "a{1,300}", "[[:nothing:]]", "[b-a]"])
def test_what_the_database_refuses_is_invalid_and_says_why(pattern):
    a_conversation("anything")

    with pytest.raises(Invalid, match="not a valid regular expression") as refusal:
        engine().grep(query=pattern, mode="regex")

    assert refusal.value.code == "bad_pattern"


def test_a_catastrophic_pattern_is_called_off_and_the_search_after_it_works():
    conversation = a_conversation("ab" * 1000 + "cx")

    with pytest.raises(Invalid) as refusal:
        engine(search_timeout_ms=200).grep(
            query=r"((a|b|ab)*)\1{3}c\1x", mode="regex", conversation_id=conversation.conversation_id
        )

    assert refusal.value.code == "search_timeout"
    assert "Narrow it" in refusal.value.detail
    assert "LCM_SEARCH_TIMEOUT_MS" in refusal.value.detail
    assert len(found("abcx$")) == 1


def test_a_pattern_that_matches_nothing_at_all_matches_everywhere():
    a_conversation("one", "two")

    assert found("x*") == ["two", "one"]
