from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from compaction.summarizing.escalation import Accepted, Escalation, Lack
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.summarizer import SourceMessage, SummaryDraft, SummaryRequest
from conversations.types import Level


def count_words(text: str) -> int:
    return len(text.split())


SOURCES = tuple(
    SourceMessage(source_id=f"msg_{n}", seq=n, role="user", text=f"number {n} " + "word " * 98) for n in range(10)
)


@dataclass
class Scripted:
    """Answers with as many words as its script says for the level it is asked at; keeps what it was asked."""

    words: dict[Level, int]
    asked: list[SummaryRequest] = field(default_factory=list)
    name: str = "scripted"

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        self.asked.append(request)
        return SummaryDraft(text="word " * self.words[request.level], model=self.name)


def escalate(normal: int, aggressive: int, **options: Any) -> tuple[Level, list[SummaryRequest]]:
    model = Scripted({Level.NORMAL: normal, Level.AGGRESSIVE: aggressive})
    escalation = Escalation(chain=(model,), last_resort=TelegraphicSummarizer(), count_tokens=count_words)
    request = SummaryRequest(sources=SOURCES, target_tokens=100, count_tokens=count_words, **options)
    accepted = escalation.summarize(request)
    assert accepted is not None
    assert accepted.tokens == count_words(accepted.draft.text)
    return accepted.level, model.asked


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
    escalation = Escalation(
        chain=(Scripted({Level.NORMAL: 5, Level.AGGRESSIVE: 5}),),
        last_resort=Scripted({Level.DETERMINISTIC: 5}),
        count_tokens=count_words,
    )

    assert escalation.summarize(SummaryRequest(sources=(source,), target_tokens=10, count_tokens=count_words)) is None


def escalated(*chain: Any, models: tuple[str, ...]) -> Accepted:
    escalation = Escalation(
        chain=chain, last_resort=TelegraphicSummarizer(), count_tokens=count_words, models=frozenset(models)
    )
    accepted = escalation.summarize(SummaryRequest(sources=SOURCES, target_tokens=100, count_tokens=count_words))
    assert accepted is not None
    return accepted


def test_a_rejected_answer_leads_to_the_next_level_and_not_to_the_next_model():
    class Chatty(Scripted):
        def summarize(self, request: SummaryRequest) -> SummaryDraft:
            raise Rejected(Refusal.CHATTY)

    second = Scripted({Level.NORMAL: 90, Level.AGGRESSIVE: 40}, name="second")

    accepted = escalated(Chatty({}, name="first"), second, models=("first", "second"))

    assert (accepted.level, accepted.lack) == (Level.DETERMINISTIC, Lack.REJECTED)
    assert accepted.failures == ("first normal: chatty", "first aggressive: chatty")
    assert second.asked == []


def test_a_text_that_a_column_cannot_hold_is_made_one_that_it_can():
    class Careless(Scripted):
        def summarize(self, request: SummaryRequest) -> SummaryDraft:
            return SummaryDraft(text="NUL \x00 and half \ud800 a character", model="careless")

    accepted = escalated(Careless({}), models=())

    assert accepted.draft.text == "NUL \ufffd and half \ufffd a character"


def test_the_harder_a_summary_was_squeezed_the_less_it_is_relied_on():
    assert [level.confidence for level in Level] == [0.7, 0.5, 0.3]
