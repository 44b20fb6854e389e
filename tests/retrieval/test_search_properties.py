"""Search beside the plainest search there is, and page beside page, on random conversations and questions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from conversations.content.tokens import TokenEstimator
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.engine import RetrievalEngine
from retrieval.policy import RetrievalPolicy
from retrieval.types import GrepResult
from tests.factories import a_workspace, say
from tests.retrieval.naive_search import WORDS, Corpus, Item, a_corpus, criteria_for, questions
from tests.statements import analyze

pytestmark = pytest.mark.django_db

# No page ends for want of tokens.
ROOMY = RetrievalPolicy(max_grep_tokens=10_000_000)
# So many pages are small; the rest of a list is read in large ones.
SMALL_PAGES = 6
LARGEST = 200
# By relevance, no fewer are ranked.
RANKED = 200
QUESTIONS_A_CORPUS = 3
PATTERNS = ("boat|crab", "re[dx] ", "^sail", "fjord$", r"\btide\b.*\blamp\b", "oat", "lib/harbour[.]py", "quartz")

small = st.lists(st.integers(1, 60), min_size=2, max_size=3)
page_sizes = st.lists(st.sampled_from((1, 2, 3, 7, 20, 60)), min_size=1, max_size=3)


def engine() -> RetrievalEngine:
    return RetrievalEngine(policy=ROOMY, tokens=TokenEstimator("o200k_base"), scope=Scope(a_workspace().pk))


def many(examples: int) -> settings:
    # An example is told by its seed: to look for a smaller one takes minutes.
    phases = [Phase.explicit, Phase.reuse, Phase.generate]
    return settings(max_examples=examples, deadline=None, phases=phases, suppress_health_check=list(HealthCheck))


@contextmanager
def forgotten() -> Iterator[None]:
    """What is stored within is gone afterwards."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def pages(sizes: Sequence[int], *, growing: int | None = None, **asked: Any) -> Iterator[GrepResult]:
    """Page after page, while the conversation `growing` goes on with what is searched for."""
    cursor, number = None, 0
    while number == 0 or cursor is not None:
        limit = sizes[number % len(sizes)] if number < SMALL_PAGES else LARGEST
        page = engine().grep(limit=limit, cursor=cursor, **asked)
        assert page.more is (page.cursor is not None)
        yield page
        cursor, number = page.cursor, number + 1
        if growing is not None:
            messages = [NewMessage(Role.USER, f"{asked['query']} {' '.join(WORDS)}")] * 2
            say(growing, *messages)


def ids(*results: GrepResult) -> list[str]:
    return [match.id for result in results for match in result.matches]


def assert_newest_first(found: Sequence[GrepResult], expected: Sequence[Item], criteria: Mapping[str, Any]) -> None:
    """The same things, each once, in the order in which they came; of one place, in any order."""
    is_one = not criteria.keys().isdisjoint({"conversation_id", "under"})
    places = {item.id: item.place(among_several=not is_one) for item in expected}
    given = ids(*found)
    assert [id for id in given if id not in places] == []
    assert [places[id] for id in given] == sorted((places[id] for id in given), reverse=True)
    assert len(set(given)) == len(given)
    # Of words that many texts hold, and none all of them, an answer may leave some out, and then says so.
    if not found[0].bounded:
        assert len(given) == len(places)


def ask_for_words(corpus: Corpus, data: st.DataObject) -> None:
    question, criteria, sizes = (data.draw(each) for each in (questions, criteria_for(corpus), page_sizes))
    growing = data.draw(st.sampled_from((None, corpus.conversation_ids[0])))
    if question.has_phrase and criteria["scope"] in ("files", "all"):
        # What was seen in a file says it in words of its own, with others between.
        criteria["scope"] = "both"

    with forgotten():
        found = list(pages(sizes, growing=growing, query=question.text, sort="recency", **criteria))

    expected = question.answers(corpus.asked(criteria))
    note(f"{question.text!r} {criteria}: {len(expected)} expected, bounded: {found[0].bounded}")
    assert_newest_first(found, expected, criteria)


def ask_for_a_pattern(corpus: Corpus, data: st.DataObject) -> None:
    pattern, criteria, sizes = (
        data.draw(each) for each in (st.sampled_from(PATTERNS), criteria_for(corpus), page_sizes)
    )
    growing = data.draw(st.sampled_from((None, corpus.conversation_ids[0])))

    with forgotten():
        found = list(pages(sizes, growing=growing, query=pattern, mode="regex", **criteria))

    expected = [item for item in corpus.asked(criteria) if re.search(pattern, item.text, re.M)]
    assert_newest_first(found, expected, criteria)


def ask_by_relevance(corpus: Corpus, data: st.DataObject) -> None:
    question, criteria, sizes = (data.draw(each) for each in (questions, criteria_for(corpus), page_sizes))
    asked = {"query": question.text, "sort": data.draw(st.sampled_from(("relevance", "hybrid"))), **criteria}
    growing = data.draw(st.sampled_from((None, corpus.conversation_ids[0])))
    whole = ids(*pages([LARGEST], **asked))

    with forgotten():
        seen = ids(*pages(sizes, growing=growing, **asked))

    assert seen == whole
    assert len(set(seen)) == len(seen)


def ask_for_one_word(corpus: Corpus, data: st.DataObject) -> None:
    """All that holds it is found, however it is sorted."""
    word, criteria = data.draw(st.sampled_from(WORDS)), data.draw(criteria_for(corpus))

    found = ids(*pages([LARGEST], query=word, sort="relevance", **criteria))

    expected = {item.id for item in corpus.asked(criteria) if word in item.words}
    note(f"{word} {criteria}: {len(expected)} expected")
    assert set(found) <= expected
    assert len(found) == len(expected) or len(found) >= RANKED


WAYS = [ask_for_words, ask_for_a_pattern, ask_by_relevance, ask_for_one_word]


@pytest.mark.parametrize("examples", [4, pytest.param(60, marks=pytest.mark.thorough)])
def test_a_search_of_small_conversations_finds_what_is_there(examples):
    @many(examples)
    @given(st.integers(0, 2**32), small, st.data())
    def holds(seed: int, sizes: list[int], data: st.DataObject) -> None:
        with forgotten():
            corpus = a_corpus(seed, sizes=sizes)
            for ask in WAYS * QUESTIONS_A_CORPUS:
                ask(corpus, data)

    holds()


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("size", [3_000, 12_000])
def test_a_search_of_large_conversations_finds_what_is_there(size):
    corpus = a_corpus(size, sizes=[size, size // 4, 5], batch=400)

    @many(size // 100)
    @given(st.sampled_from(WAYS), st.data())
    def holds(ask: Callable[[Corpus, st.DataObject], None], data: st.DataObject) -> None:
        ask(corpus, data)

    holds()
    # How common the words are decides how they are looked for.
    analyze()
    holds()
