from __future__ import annotations

from typing import Any

import pytest

from compaction.summarizing.escalation import Accepted, Escalation, Lack
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.summarizer import SourceMessage, SummaryRequest
from conversations.types import Level
from tests.compaction.model_settings import Model


def count_words(text: str) -> int:
    return len(text.split())


SOURCES = tuple(
    SourceMessage(source_id=f"msg_{n}", seq=n, role="user", text=f"number {n} " + "word " * 98) for n in range(10)
)


def scripted(name: str = "scripted", **words: int) -> Model:
    """A model that answers with so many words at each level."""
    return Model(name=name, write=lambda request: "word " * words[request.level])


def escalate(normal: int, aggressive: int, **options: Any) -> tuple[Level, list[SummaryRequest]]:
    model = scripted(normal=normal, aggressive=aggressive)
    escalation = Escalation(chain=(model,), last_resort=TelegraphicSummarizer())
    request = SummaryRequest(sources=SOURCES, target_tokens=100, count_tokens=count_words, **options)
    accepted = escalation.summarize(request)
    assert accepted is not None
    assert accepted.tokens == count_words(accepted.draft.text)
    return accepted.level, model.requests


@pytest.mark.parametrize(("factor", "most"), [({}, 150), ({"target_factor": 1.0}, 100), ({"target_factor": 3.0}, 300)])
def test_a_text_of_up_to_the_factor_times_the_target_is_accepted_and_no_more(factor, most):
    first, second = escalate(most, 40, **factor), escalate(most + 1, 40, **factor)

    assert (first[0], second[0]) == (Level.NORMAL, Level.AGGRESSIVE)
    assert [[asked.target_tokens for asked in each[1]] for each in (first, second)] == [[100], [100, 50]]


@pytest.mark.parametrize("length", [0, 2000])
def test_when_nothing_is_acceptable_the_deterministic_level_ends_it(length):
    level, _ = escalate(length, length)

    assert level is Level.DETERMINISTIC


def test_a_source_shorter_than_any_summary_has_none():
    source = SourceMessage(source_id="msg_1", seq=1, role="user", text="ok")
    escalation = Escalation(chain=(scripted(normal=5, aggressive=5),), last_resort=scripted(deterministic=5))

    assert escalation.summarize(SummaryRequest(sources=(source,), target_tokens=10, count_tokens=count_words)) is None


def escalated(*chain: Any, models: tuple[str, ...]) -> Accepted:
    escalation = Escalation(chain=chain, last_resort=TelegraphicSummarizer(), models=frozenset(models))
    accepted = escalation.summarize(SummaryRequest(sources=SOURCES, target_tokens=100, count_tokens=count_words))
    assert accepted is not None
    return accepted


def test_a_rejected_answer_leads_to_the_next_level_and_not_to_the_next_model():
    chatty = Model(Rejected(Refusal.CHATTY), name="first")
    second = scripted("second", normal=90, aggressive=40)

    accepted = escalated(chatty, second, models=("first", "second"))

    assert (accepted.level, accepted.lack) == (Level.DETERMINISTIC, Lack.REJECTED)
    assert accepted.failures == ("first normal: chatty", "first aggressive: chatty")
    assert second.requests == []


def test_a_text_that_a_column_cannot_hold_is_made_one_that_it_can():
    careless = Model(write=lambda request: "NUL \x00 and half \ud800 a character")

    accepted = escalated(careless, models=())

    assert accepted.draft.text == "NUL \ufffd and half \ufffd a character"


def test_the_harder_a_summary_was_squeezed_the_less_it_is_relied_on():
    assert [level.confidence for level in Level] == [0.7, 0.5, 0.3]
