"""Grep says what has gone cold where it searches, and searches it on request, as it searches everything else."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from compaction.engine import CompactionEngine
from conversations.errors import Invalid
from integrity.retention.tiers import Retention
from retrieval.search import cold
from tests.factories import a_conversation, a_tool_call, a_workspace, say
from tests.retrieval.lineages import engine, pages

pytestmark = pytest.mark.django_db

SAID = (
    "We set the port to 5433 in src/store/getConfig.ts.",
    "The harbour was full of fishing boats.",
    "数据库连接失败 again and again.",
    "No port was free, so the boats stayed out.",
)


def gone_cold(*texts: str, **options: object) -> int:
    conversation_id = a_conversation(*texts, **options).conversation_id
    Retention.from_settings().archive(conversation_id=conversation_id)
    return conversation_id


def seqs(result) -> list[int]:
    return [match.first_seq for match in result.matches]


def test_what_is_cold_is_not_found_by_itself_and_the_answer_says_so():
    conversation_id = gone_cold(*SAID)

    found = engine().grep(query="harbour", conversation_id=conversation_id)

    assert (found.matches, found.cold, found.cold_messages) == ((), False, 4)
    assert "4 messages here are cold" in found.note
    assert "by grep with cold=true" in found.note


BY_WORDS = {
    "harbour": [2], "boat": [4, 2], "boats port": [4], '"fishing boats"': [2], "boats -harbour": [4],
    "harbour or config": [2, 1], "getConfig": [1], "数据库": [3], "to be": [], "nowhere": [],
}  # fmt: skip
BY_EXPRESSIONS = {r"port \w+ \d{4}": [1], r"\bboats?\b": [4, 2], "^$": []}


def test_cold_messages_are_found_by_the_words_and_expressions_that_find_others():
    cold, hot = gone_cold(*SAID), a_conversation(*SAID).conversation_id

    for mode, queries in (("full_text", BY_WORDS), ("regex", BY_EXPRESSIONS)):
        for query, expected in queries.items():
            in_the_cold = engine().grep(query=query, mode=mode, conversation_id=cold, cold=True)
            found = engine().grep(query=query, mode=mode, conversation_id=hot, sort="recency")

            assert seqs(in_the_cold) == expected
            assert [match.snippet for match in in_the_cold.matches] == [
                match.snippet for match in found.matches if match.first_seq in expected
            ]
            assert in_the_cold.cold


def test_only_what_is_cold_is_searched_in_the_cold():
    conversation_id = gone_cold(*SAID)
    say(conversation_id, "harbour, once more")

    hot = engine().grep(query="harbour", conversation_id=conversation_id)
    cold = engine().grep(query="harbour", conversation_id=conversation_id, cold=True)

    assert (seqs(hot), seqs(cold)) == ([5], [2])


def test_an_expression_that_matches_nothing_at_all_does_not_find_texts_that_are_elsewhere():
    conversation_id = gone_cold(*SAID)

    assert seqs(engine().grep(query="x*", mode="regex", conversation_id=conversation_id, scope="messages")) == []


def test_summaries_of_what_is_cold_are_found_and_lead_to_it():
    conversation_id = a_conversation(*(f"Boat {n} lay in the harbour of Rhodes, berth {n}. " * 20 for n in range(40)))
    conversation_id = conversation_id.conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    Retention.from_settings().archive(conversation_id=conversation_id)

    found = engine().grep(query="Rhodes", conversation_id=conversation_id)

    assert {match.kind for match in found.matches} == {"summary"}
    assert "Rhodes" in engine().expand(summary_id=found.matches[0].id, include_messages=True).items[0].content


def test_what_narrows_a_search_narrows_it_in_the_cold_too():
    conversation_id = a_conversation(*(f"boat {n}" for n in range(10))).conversation_id
    say(conversation_id, a_tool_call("c1", name="count_boats", boat=1))
    Retention.from_settings().archive(conversation_id=conversation_id)

    def found(**narrowed):
        return seqs(engine().grep(query="boat", conversation_id=conversation_id, cold=True, **narrowed))

    assert found(roles=["user"]) == [9, 7, 5, 3, 1]
    assert found(from_seq=3, to_seq=6) == [6, 5, 4, 3]
    assert found(tool_names=["count_boats"]) == [11]
    assert found(part_types=["tool"]) == [11]
    assert found(until=datetime(2000, 1, 1, tzinfo=UTC)) == []


def test_several_conversations_are_searched_in_the_order_in_which_things_were_said():
    first, second = gone_cold("one boat"), gone_cold("two boats")
    gone_cold("a boat of somebody else", workspace=a_workspace("elsewhere"))

    everywhere = engine().grep(query="boat", cold=True)
    told = engine().grep(query="boat")

    assert [match.conversation_id for match in everywhere.matches] == [second, first]
    assert (everywhere.cold_messages, told.cold_messages) == (2, 2)


def test_pages_of_cold_messages_follow_each_other_without_gap_or_repetition():
    conversation_id = gone_cold(*(f"boat number {n}" for n in range(230)))

    found = [
        seqs(page) for page in pages(engine().grep, query="boat", conversation_id=conversation_id, cold=True, limit=50)
    ]

    assert sum(found, []) == list(range(230, 0, -1))


def test_a_search_whose_time_is_over_gives_what_it_has_and_its_cursor_goes_on(monkeypatch):
    conversation_id = gone_cold(*(f"boat number {n}" if n % 100 == 5 else f"message {n}" for n in range(300)))
    monkeypatch.setattr(cold, "_PORTION", 500)
    monkeypatch.setattr(cold, "_SHARE", 2.0)

    *earlier, last = pages(engine().grep, query="boat", conversation_id=conversation_id, cold=True)

    assert sum(map(seqs, [*earlier, last]), []) == [206, 106, 6]
    assert len(earlier) >= 5
    assert all(page.more and page.bounded and "cursor continues" in page.note for page in earlier)


def test_what_cannot_be_asked_of_the_cold_is_refused():
    gone_cold(*SAID)

    wrong = ({"scope": "summaries"}, {"sort": "relevance"}, {"query": '"'}, {"query": "-boat"})
    for given, param in zip(wrong, ("cold", "sort", "query", "query"), strict=True):
        with pytest.raises(Invalid) as refusal:
            engine().grep(**{"query": "boat", "cold": True, **given})
        assert param in refusal.value.context["errors"]


@pytest.mark.parametrize(("pattern", "code"), [("a{2,1}", "bad_pattern"), (r"((a|b|ab)*)\1{3}c\1x", "search_timeout")])
def test_an_expression_that_is_none_or_takes_for_ever_is_refused_in_the_cold_too(pattern, code):
    gone_cold("ab" * 1000 + "cx")

    with pytest.raises(Invalid) as refusal:
        engine(search_timeout_ms=500).grep(query=pattern, mode="regex", cold=True)

    assert refusal.value.code == code
