"""What was summarized while no model could be reached is summarized again when one can, and nothing is lost by it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from compaction.engine import CompactionEngine
from compaction.llm.types import Unreachable
from compaction.policy import CompactionPolicy
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest
from compaction.types import CompactionResult, Outcome
from conversations.models import ContextItem, Summary
from conversations.types import Level
from integrity.checker import IntegrityChecker
from retrieval.engine import RetrievalEngine
from retrieval.types import ItemKind
from tests.factories import a_conversation

pytestmark = pytest.mark.django_db

LONG = "Something worth remembering was said about service-7 and port 5433. " * 10


@dataclass
class Model:
    """A model that is there, or is not."""

    is_there: bool = True
    asked: list[SummaryRequest] = field(default_factory=list)
    name: str = "model"

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        self.asked.append(request)
        if not self.is_there:
            raise Unreachable("nobody answers")
        return SummaryDraft(text=f"Written by a model, number {len(self.asked)}.", model="a-model", tokens_in=100)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def engine(model: Model) -> CompactionEngine:
    built = CompactionEngine.from_settings()
    escalation = Escalation(
        chain=(model,),
        last_resort=TelegraphicSummarizer(),
        count_tokens=built.store.tokens.count,
        models=frozenset({model.name}),
    )
    policy = CompactionPolicy(leaf_chunk_tokens=1000, leaf_target_tokens=100, condensed_target_tokens=200)
    return replace(built, escalation=escalation, policy=policy)


def compacted_without_a_model(engine: CompactionEngine, model: Model, messages: int) -> int:
    conversation = a_conversation(*[f"{LONG} {n}" for n in range(messages)])
    model.is_there = False
    engine.compact(conversation_id=conversation.conversation_id)
    model.is_there = True
    return conversation.conversation_id


def redone(engine: CompactionEngine, conversation_id: int) -> CompactionResult:
    return engine.redo(conversation_id=conversation_id)


def shown(conversation_id: int) -> list[Summary]:
    items = ContextItem.objects.filter(conversation_id=conversation_id, summary__isnull=False).order_by("ordinal")
    return [item.summary for item in items.select_related("summary")]


def test_a_summary_made_while_no_model_was_there_says_so(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 30)

    summary = shown(conversation_id)[0]

    assert summary.is_degraded
    assert (summary.level, summary.model) == (Level.DETERMINISTIC, "telegraphic")
    assert summary.quality["lack"] == "unavailable"
    assert summary.quality["failures"] == ["model normal: unreachable"]


def test_when_the_model_is_back_its_summaries_stand_in_the_context_and_the_old_ones_are_kept(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 30)
    before = shown(conversation_id)

    result = redone(engine, conversation_id)

    after = shown(conversation_id)
    degraded = Summary.objects.filter(is_degraded=True).count()
    assert (result.outcome, result.redone_summaries) == (Outcome.COMPACTED, degraded)
    assert [summary.supersedes_id for summary in after] == [summary.summary_id for summary in before]
    assert not any(summary.is_degraded for summary in after)
    assert {summary.model for summary in after} == {"a-model"}
    assert Summary.objects.filter(pk__in=[summary.pk for summary in before]).count() == len(before)


def test_a_condensed_summary_is_made_again_from_sources_that_were_made_again(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 80)
    assert any(summary.depth == 1 for summary in shown(conversation_id))

    redone(engine, conversation_id)

    top = next(summary for summary in shown(conversation_id) if summary.depth == 1)
    sources = [link.source for link in top.source_links.select_related("source")]
    assert not any(source.is_degraded for source in sources)
    assert all(source.supersedes_id is not None for source in sources)
    assert IntegrityChecker.from_settings().run().is_clean


def test_after_a_redo_every_message_is_still_found_below_the_context_once(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 80)
    redone(engine, conversation_id)
    retrieval = RetrievalEngine.from_settings()

    seqs = []
    for summary in shown(conversation_id):
        cursor = None
        while True:
            page = retrieval.expand(summary_id=summary.pk, depth=-1, include_messages=True, cursor=cursor)
            seqs += [item.first_seq for item in page.items if item.kind == ItemKind.MESSAGE]
            cursor = page.cursor
            if cursor is None:
                break

    raw = ContextItem.objects.filter(conversation_id=conversation_id, message__isnull=False).count()
    assert sorted(set(seqs)) == list(range(1, 80 - raw + 1))


def test_the_old_text_is_no_longer_found(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 30)
    redone(engine, conversation_id)

    found = RetrievalEngine.from_settings().grep(query="5433", scope="summaries", conversation_id=conversation_id)

    assert found.matches == ()


def test_while_the_model_is_still_away_nothing_changes(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 30)
    model.is_there = False
    before = shown(conversation_id)

    result = redone(engine, conversation_id)

    assert result.outcome is Outcome.UNAVAILABLE
    assert shown(conversation_id) == before


def test_where_nothing_is_degraded_no_model_is_asked(engine, model):
    conversation = a_conversation(*[f"{LONG} {n}" for n in range(30)])
    engine.compact(conversation_id=conversation.conversation_id)
    model.asked.clear()

    result = redone(engine, conversation.conversation_id)

    assert result.outcome is Outcome.NOTHING_TO_DO
    assert model.asked == []


def test_a_model_that_is_not_there_is_asked_once_a_chunk_and_not_at_every_level(engine, model):
    compacted_without_a_model(engine, model, 30)

    assert {request.level for request in model.asked} == {Level.NORMAL}


def test_asking_again_and_again_for_what_a_model_will_not_do_piles_up_no_rows(engine, model, monkeypatch):
    conversation_id = compacted_without_a_model(engine, model, 30)

    def chat(self: Model, request: SummaryRequest) -> SummaryDraft:
        raise Rejected(Refusal.CHATTY)

    monkeypatch.setattr(Model, "summarize", chat)
    redone(engine, conversation_id)
    rows = Summary.objects.count()

    redone(engine, conversation_id)

    assert Summary.objects.count() == rows
