from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from compaction.escalation import Escalation
from compaction.summarizers.base import SourceMessage, SummaryDraft, SummaryRequest
from compaction.summarizers.telegraphic import TelegraphicSummarizer
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


def escalate(normal: int, aggressive: int) -> tuple[Level, list[SummaryRequest]]:
    model = Scripted({Level.NORMAL: normal, Level.AGGRESSIVE: aggressive})
    escalation = Escalation(chain=(model,), last_resort=TelegraphicSummarizer(), count_tokens=count_words)
    accepted = escalation.summarize(SummaryRequest(sources=SOURCES, target_tokens=100, count_tokens=count_words))
    assert accepted is not None
    assert accepted.tokens == count_words(accepted.draft.text)
    return accepted.level, model.asked


def test_a_good_text_is_accepted_at_the_first_level():
    level, asked = escalate(90, 40)

    assert level is Level.NORMAL
    assert len(asked) == 1


def test_a_text_of_up_to_three_times_the_target_is_accepted_and_no_more():
    assert escalate(300, 40)[0] is Level.NORMAL
    assert escalate(301, 40)[0] is Level.AGGRESSIVE


def test_the_aggressive_level_asks_for_half():
    _, asked = escalate(2000, 40)

    assert [request.target_tokens for request in asked] == [100, 50]


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
