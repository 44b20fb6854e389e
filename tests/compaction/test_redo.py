"""What was summarized while no model could be reached is summarized again when one can, and nothing is lost by it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from compaction.llm.types import ModelFailed, Refused, Unreachable
from compaction.policy import CompactionPolicy
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.types import Outcome
from conversations.models import ContextItem, Summary
from integrity.checker import IntegrityChecker
from retrieval.engine import RetrievalEngine
from tests.compaction.model_settings import Model, asking_only
from tests.factories import a_conversation, say
from tests.integrity.breaking import found

pytestmark = pytest.mark.django_db

AWAY = Unreachable("nobody answers")
LONG = "Something worth remembering was said about service-7 and port 5433. " * 10


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def engine(model: Model) -> CompactionEngine:
    policy = CompactionPolicy(leaf_chunk_tokens=1000, leaf_target_tokens=100, condensed_target_tokens=200)
    return replace(asking_only(model, CompactionEngine.from_settings()), policy=policy)


def compacted_without_a_model(engine: CompactionEngine, model: Model, messages: int) -> int:
    conversation = a_conversation(*[f"{LONG} {n}" for n in range(messages)])
    model.failure = AWAY
    engine.compact(conversation_id=conversation.conversation_id)
    model.failure = None
    return conversation.conversation_id


def shown(conversation_id: int) -> list[Summary]:
    items = ContextItem.objects.filter(conversation_id=conversation_id, summary__isnull=False).order_by("ordinal")
    return [item.summary for item in items.select_related("summary")]


def test_the_old_text_is_no_longer_found(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 16)
    grep = RetrievalEngine.from_settings().grep
    find = partial(grep, query="5433", scope="summaries", conversation_id=conversation_id)
    assert find().matches

    engine.redo(conversation_id=conversation_id)

    assert find().matches == ()


def test_while_the_model_is_still_away_nothing_changes(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 16)
    model.failure = AWAY
    before = shown(conversation_id)

    result = engine.redo(conversation_id=conversation_id)

    assert result.outcome is Outcome.UNAVAILABLE
    assert shown(conversation_id) == before


def test_asking_again_and_again_for_what_a_model_will_not_do_piles_up_no_rows(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 16)
    model.failure = Rejected(Refusal.CHATTY)
    engine.redo(conversation_id=conversation_id)
    rows = Summary.objects.count()

    engine.redo(conversation_id=conversation_id)

    assert Summary.objects.count() == rows


def test_attempts_count_for_one_summary_and_only_while_a_model_is_there(engine, model):
    engine = replace(engine, policy=replace(engine.policy, condense_fan_in=100))
    conversation_id = compacted_without_a_model(engine, model, 28)

    def attempt(failure: ModelFailed, *, but_for: str = "nothing") -> tuple[str, int, bool]:
        """What waits after a redo that failed but for one text, the attempts at it, and whether it has to rest."""

        def fail() -> None:
            is_answered = any(but_for in source.text for source in model.requests[-1].sources)
            model.failure = None if is_answered else failure

        model.meanwhile = fail
        engine.redo(conversation_id=conversation_id)
        [run] = engine.list_runs(conversation_id=conversation_id, limit=1)
        details = run.details
        return details["waiting_for_a_model"], details["attempts_without_an_answer"], "next_attempt_at" in details

    first, second, third = ((each.summary_id, f"5433.  {each.first_seq - 1}") for each in shown(conversation_id)[:3])
    assert [attempt(Refused("no")) for _ in range(2)] == [(first[0], 1, True), (first[0], 2, True)]
    assert attempt(AWAY) == (first[0], 2, False)
    assert attempt(Refused("no"), but_for=second[1]) == (first[0], 3, True)
    assert attempt(Refused("no"), but_for=first[1]) == (third[0], 1, True)


def test_where_nothing_is_degraded_no_model_is_asked(engine, model):
    conversation_id = a_conversation(*[f"{LONG} {n}" for n in range(16)]).conversation_id
    engine.compact(conversation_id=conversation_id)
    model.requests.clear()

    assert engine.redo(conversation_id=conversation_id).outcome is Outcome.NOTHING_TO_DO
    assert model.requests == []


def test_a_source_that_two_branches_share_is_summarized_again_once(engine, model):
    conversation_id = compacted_without_a_model(engine, model, 40)
    rewind = partial(Branches.from_settings().move_head, conversation_id=conversation_id)
    rewind(head_seq=shown(conversation_id)[0].last_seq - 1)
    say(conversation_id, *[f"{LONG} another {n}" for n in range(30)])
    model.failure = AWAY
    engine.compact(conversation_id=conversation_id)
    model.failure = None

    engine.redo(conversation_id=conversation_id)
    rewind(head_seq=40)
    engine.redo(conversation_id=conversation_id)

    assert not any(each.is_degraded for each in shown(conversation_id))
    assert found(IntegrityChecker.from_settings().run(conversation_id=conversation_id)) == {}
