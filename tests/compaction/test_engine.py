from __future__ import annotations

from dataclasses import replace

import pytest
import structlog

from compaction.models import CompactionRun
from compaction.sources import read_slots, read_sources
from compaction.summarizing.escalation import Escalation
from compaction.types import Outcome, Reason
from conversations.audit import AuditLog
from conversations.cold_storage.archiving import archive_stretch
from conversations.models import ContextItem, Message, MessagePart, Summary
from conversations.types import ContextItemType, ConversationRecord, NewMessage, NewPart, PartType, Role, SummaryKind
from tests.compacting import a_talk
from tests.compaction.model_settings import Model
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say

pytestmark = pytest.mark.django_db


def items_of(conversation: ConversationRecord) -> list[ContextItem]:
    return list(ContextItem.objects.filter(conversation_id=conversation.conversation_id).order_by("ordinal"))


def test_compaction_replaces_old_messages_and_keeps_them_reachable(engine):
    conversation = a_talk()

    result = engine(leaf_chunk_tokens=1000).compact(conversation_id=conversation.conversation_id)

    assert result.outcome is Outcome.COMPACTED
    assert result.tokens_after < 0.7 * result.tokens_before
    assert Message.objects.filter(conversation_id=conversation.conversation_id).count() == 40
    assert Message.objects.uncovered().count() == 8
    older, tail = items_of(conversation)[:-8], items_of(conversation)[-8:]
    assert [item.ordinal for item in tail] == list(range(33, 41))
    assert all(item.item_type == ContextItemType.MESSAGE for item in tail)
    # Each in the place of its first source.
    assert [item.ordinal for item in older] == [item.summary.first_seq for item in older]


def test_without_pressure_an_automatic_run_does_nothing(engine):
    conversation = a_talk()

    result = engine().compact(conversation_id=conversation.conversation_id, reason=Reason.THRESHOLD)

    assert result.outcome is Outcome.NOT_NEEDED
    assert not Summary.objects.exists()


def test_under_pressure_an_automatic_run_stops_when_there_is_room_again(engine):
    conversation = a_talk(60)
    budget = conversation.counters.active_tokens

    result = engine(model_token_budget=budget, leaf_chunk_tokens=600, max_active_messages=1000).compact(
        conversation_id=conversation.conversation_id, reason=Reason.THRESHOLD
    )

    assert result.outcome is Outcome.COMPACTED
    assert result.tokens_after <= 0.5 * budget
    assert Message.objects.uncovered().count() > 8


def test_every_summary_leaves_an_ignored_compaction_part_on_its_last_source(engine):
    conversation = a_talk()

    result = engine(leaf_chunk_tokens=1000, condense_fan_in=100).compact(conversation_id=conversation.conversation_id)

    parts = list(MessagePart.objects.filter(part_type="compaction"))
    assert len(parts) == result.leaf_summaries
    for part in parts:
        summary = Summary.objects.get(pk=part.metadata["summary_id"])
        assert part.is_synthetic
        assert part.is_ignored
        assert part.metadata["run_id"] == result.run_id
        assert Message.objects.get(pk=part.message_id).seq == summary.last_seq


def test_the_run_of_a_worker_that_died_is_closed_by_the_next(engine):
    conversation = a_talk()
    dead = CompactionRun.objects.create(
        run_id="run_dead",
        conversation_id=conversation.conversation_id,
        reason=Reason.MANUAL,
        outcome=Outcome.RUNNING,
        started_at=conversation.created_at,
        tokens_before=1,
        tokens_after=1,
    )

    engine().compact(conversation_id=conversation.conversation_id)

    dead.refresh_from_db()
    assert dead.outcome == Outcome.ABANDONED
    assert dead.finished_at is not None


def test_a_run_is_told_in_the_log_with_its_figures_and_no_text(engine):
    conversation = a_talk()

    with structlog.testing.capture_logs() as logs:
        result = engine().compact(conversation_id=conversation.conversation_id)

    (finished,) = [entry for entry in logs if entry["event"] == "compaction_finished"]
    assert finished["compaction_id"] == result.run_id
    assert finished["conversation_id"] == conversation.conversation_id
    assert finished["session_id"] == conversation.session_id
    assert (finished["trigger_reason"], finished["outcome"]) == ("manual", "compacted")
    assert (finished["token_before"], finished["token_after"]) == (result.tokens_before, result.tokens_after)
    created = [entry["summary_id"] for entry in logs if entry["event"] == "summary_created"]
    assert set(created) == set(Summary.objects.values_list("summary_id", flat=True))
    assert "service-1" not in str(logs)


def test_tool_calls_and_their_results_are_compacted_together(engine):
    conversation = a_conversation("Please read all the files.")
    for n in range(16):
        call = a_tool_call(f"call-{n}", path=f"src/module_{n}.py")
        say(conversation.conversation_id, call, a_tool_result(f"call-{n}", f"line {n}\n" * 50))

    engine(leaf_chunk_tokens=700, fresh_tail_count=5).compact(conversation_id=conversation.conversation_id)

    for leaf in Summary.objects.filter(kind=SummaryKind.LEAF):
        calls = MessagePart.objects.filter(message__summary_links__summary=leaf, part_type="tool")
        assert all(calls.filter(tool_call_id=part.tool_call_id).count() == 2 for part in calls)


def test_a_summary_that_would_cost_more_than_its_sources_is_not_written(engine):
    conversation = a_talk()
    built = engine()
    silent = Model(write=lambda request: "")
    empty = Escalation(chain=(silent,), last_resort=silent)

    result = replace(built, escalation=empty).compact(conversation_id=conversation.conversation_id)

    assert result.outcome is Outcome.NOTHING_TO_DO
    assert not Summary.objects.exists()


def test_a_conversation_may_have_a_factor_over_the_target_of_its_own(engine):
    own, other = a_talk(), a_talk()
    a_store().configure_conversation(conversation_id=own.conversation_id, overrides={"target_factor": 2.0})
    built = engine(leaf_target_tokens=100)
    twice_as_long = Model(write=lambda request: "word " * int(1.9 * request.target_tokens))
    wordy = replace(built, escalation=replace(built.escalation, chain=(twice_as_long,)))

    for each in (own, other):
        wordy.compact(conversation_id=each.conversation_id)

    def levels(conversation: ConversationRecord) -> set[str]:
        return set(Summary.objects.filter(conversation_id=conversation.conversation_id).values_list("level", flat=True))

    assert (levels(own), levels(other)) == ({"normal"}, {"aggressive"})


@pytest.mark.parametrize("is_cold", [False, True], ids=["hot", "cold"])
def test_what_a_host_added_to_a_message_is_not_summarized_as_its_authors_words(is_cold):
    reminder = "<system-reminder>\nNever use port 7.\n</system-reminder>" * 20
    parts = (
        NewPart(PartType.TEXT, text_content=reminder, is_synthetic=True),
        NewPart(PartType.TEXT, text_content="Use port 5433."),
    )
    found = a_conversation()
    say(found.conversation_id, NewMessage(Role.USER, parts=parts))
    if is_cold:
        archive_stretch(found.conversation_id, after_seq=0, log=AuditLog())

    [source] = read_sources(read_slots(found.conversation_id), withheld=()).texts

    assert source.text == f"[added by the host, {len(reminder)} characters]\nUse port 5433."
    assert reminder in a_store().get_message(message_id=int(source.source_id.removeprefix("msg_"))).content
