"""Texts of conversations that nobody uses move to the cold tier by the workspace's rule, and come back on request."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.files.storage import InMemoryStorage
from pydantic import ValidationError

from compaction.engine import CompactionEngine
from conversations.audit import AuditLog
from conversations.errors import ConversationBusy, Invalid
from conversations.files.large_files import LargeFileService
from conversations.models import ColdBlock, Conversation, Message, Summary
from conversations.models.conversation import today
from conversations.scope import Scope
from conversations.types import ConversationRecord
from integrity.checker import IntegrityChecker
from integrity.models import ColdProgress
from integrity.params import SetRetentionParams
from integrity.policy import RetentionPolicy
from integrity.retention.tiers import Retention, StorageReport
from integrity.retention.types import Tier
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.breaking import breaking

pytestmark = pytest.mark.django_db

WORDS = "There was some talk about the harbour and its boats. " * 10


def retention(workspace_id: int | None = None, **policy: int) -> Retention:
    return Retention(policy=RetentionPolicy(**policy), scope=Scope(workspace_id, actor="key 7"))


def unused_for(days: int, *texts: str, **options: object) -> ConversationRecord:
    conversation = a_conversation(*(texts or (f"{WORDS} {n}" for n in range(10))), **options)
    Conversation.objects.filter(pk=conversation.conversation_id).update(last_used_on=today() - timedelta(days=days))
    return conversation


def cold_messages_of(conversation: ConversationRecord) -> int:
    return Conversation.objects.get(pk=conversation.conversation_id).cold_messages


def test_what_was_not_used_for_so_many_days_goes_cold_and_by_default_nothing():
    due, not_yet = unused_for(30), unused_for(29)

    assert Retention.from_settings().sweep() == 0
    assert retention(cold_after_days=30).sweep() == 10
    assert (cold_messages_of(due), cold_messages_of(not_yet)) == (10, 0)


def test_a_workspace_has_its_own_rule_before_the_default():
    sooner, never, silent = (a_workspace(name) for name in ("sooner", "never", "silent"))
    retention(sooner.pk).set_retention(cold_after_days=5)
    retention(never.pk).set_retention(cold_after_days=36_500)
    conversations = [unused_for(10, workspace=workspace) for workspace in (sooner, never, silent)]

    retention(cold_after_days=20).sweep()
    first = [cold_messages_of(each) for each in conversations]
    retention(cold_after_days=10).sweep()

    assert first == [10, 0, 0]
    assert [cold_messages_of(each) for each in conversations] == [10, 0, 10]


def test_a_rule_is_told_with_what_is_due_and_every_change_of_it_is_in_the_audit_log():
    workspace = a_workspace()
    unused_for(10)
    service = retention(workspace.pk, cold_after_days=20)

    rules = service.get_retention(), service.set_retention(cold_after_days=7), service.set_retention()

    assert [(each.cold_after_days, each.effective_days, each.due_conversations) for each in rules] == [
        (None, 20, 0),
        (7, 7, 1),
        (None, 20, 0),
    ]
    acts = AuditLog(Scope(workspace.pk)).list_acts()
    assert [(each.actor, each.act, each.detail) for each in acts] == [
        ("key 7", "set_retention", {"before": before, "after": after}) for before, after in ((7, None), (None, 7))
    ]


def test_a_rule_is_of_one_workspace_and_in_days_of_a_calendar():
    for days in (0, -1, 36_501):
        with pytest.raises(ValidationError, match="cold_after_days"):
            SetRetentionParams(cold_after_days=days)
    with pytest.raises(Invalid, match="name a workspace"):
        retention().get_retention()


def test_whoever_reads_a_conversation_uses_it_and_what_is_listed_is_not_used():
    by_assembly, by_expansion, by_range, by_append, listed = (
        unused_for(10, *(f"{WORDS} {n}" for n in range(30))) for _ in range(5)
    )
    CompactionEngine.from_settings().compact(conversation_id=by_expansion.conversation_id)
    summary = Summary.objects.filter(conversation_id=by_expansion.conversation_id).first()
    breaking("UPDATE summaries SET created_at = created_at - interval '10 days'")
    engine = RetrievalEngine.from_settings()

    ContextAssembler.from_settings().assemble(conversation_id=by_assembly.conversation_id)
    engine.expand(summary_id=summary.pk)
    engine.expand_range(conversation_id=by_range.conversation_id, from_seq=1, to_seq=2)
    say(by_append.conversation_id, "again")
    a_store().list_conversations()
    a_store().get_conversation(conversation_id=listed.conversation_id)

    days = dict(Conversation.objects.values_list("pk", "last_used_on"))
    used = [by_assembly, by_expansion, by_range, by_append]
    assert {days[each.conversation_id] for each in used} == {today()}
    assert days[listed.conversation_id] == today() - timedelta(days=10)


def test_a_conversation_is_archived_and_thawed_on_request_and_says_what_moved():
    conversation_id = a_conversation(*(f"{WORDS} {n}" for n in range(250))).conversation_id
    service = retention()

    cold = service.archive(conversation_id=conversation_id)
    again = service.archive(conversation_id=conversation_id)
    hot = service.thaw(conversation_id=conversation_id)

    assert (cold.tier, cold.messages, cold.blocks, cold.cold_messages, cold.more) == (Tier.COLD, 250, 3, 250, False)
    assert cold.bytes_in_blocks < cold.bytes_in_rows / 5
    assert (again.messages, again.blocks, again.cold_messages) == (0, 0, 250)
    assert (hot.tier, hot.messages, hot.blocks, hot.cold_messages, hot.more) == (Tier.HOT, 250, 3, 0, False)
    assert not ColdBlock.objects.exists()
    assert IntegrityChecker().run().is_clean


def a_slow(service: Retention) -> Retention:
    """A service whose clock says that each stretch took fifteen seconds."""
    times = iter(range(0, 10_000, 15))
    return replace(service, clock=lambda: next(times))


def test_what_takes_too_long_goes_on_with_the_next_call():
    conversation_id = a_conversation(*(f"{WORDS} {n}" for n in range(250))).conversation_id
    slow = a_slow(retention(archive_seconds=20))

    cold = [slow.archive(conversation_id=conversation_id) for _ in range(2)]
    hot = [slow.thaw(conversation_id=conversation_id) for _ in range(2)]

    assert [(each.messages, each.more, each.cold_messages) for each in cold] == [(200, True, 200), (50, False, 250)]
    assert [(each.messages, each.more, each.cold_messages) for each in hot] == [(200, True, 50), (50, False, 0)]


def test_the_sweep_goes_on_where_it_was_stopped_and_then_leaves_the_conversation_alone():
    conversation = unused_for(30, *(f"{WORDS} {n}" for n in range(250)))
    slow = a_slow(retention(cold_after_days=30, archive_seconds=40))

    moved = [slow.sweep(), slow.sweep(), slow.sweep()]

    assert (sum(moved), moved[2]) == (250, 0)
    assert moved[0] < 250
    assert ColdProgress.objects.get().through_seq == cold_messages_of(conversation) == 250


def test_a_conversation_that_is_being_compacted_is_passed_over_until_it_is_free():
    busy, free = unused_for(40), unused_for(30)

    with another_session_compacts(busy.conversation_id):
        retention(cold_after_days=30).sweep()
        with pytest.raises(ConversationBusy):
            retention().archive(conversation_id=busy.conversation_id)
        while_busy = (cold_messages_of(busy), cold_messages_of(free))
    retention(cold_after_days=30).sweep()

    assert while_busy == (0, 10)
    assert cold_messages_of(busy) == 10


def test_damaged_messages_are_named_stay_where_they_are_and_are_not_tried_again_at_every_wake_up():
    conversation = unused_for(30)
    breaking("UPDATE messages SET content = 'another' WHERE seq = 4")
    damaged = Message.objects.get(seq=4)

    service = retention(cold_after_days=30)
    moved, again = service.sweep(), service.sweep()
    told = service.archive(conversation_id=conversation.conversation_id)

    assert (moved, again) == (9, 0)
    assert told.damaged_ids == (f"msg_{damaged.pk}",)
    assert Message.objects.get(seq=4).content == "another"


@pytest.mark.parametrize(("meanwhile", "moved"), [("thawed", 10), ("said", 1)])
def test_what_was_used_since_goes_cold_when_its_time_comes(meanwhile, moved):
    conversation_id = unused_for(30).conversation_id
    service = retention(cold_after_days=30)
    service.sweep()
    if meanwhile == "thawed":
        service.thaw(conversation_id=conversation_id)
    else:
        say(conversation_id, "again")

    soon = service.sweep()
    Conversation.objects.update(last_used_on=today() - timedelta(days=30))

    assert (soon, service.sweep()) == (0, moved)


def test_a_cold_conversation_is_compacted_like_any_other():
    texts = [f"{WORDS} {n} said about service-{n}." for n in range(60)]
    summaries = []
    for is_cold in (True, False):
        conversation_id = a_conversation(*texts).conversation_id
        if is_cold:
            retention().archive(conversation_id=conversation_id)
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)
        made = Summary.objects.filter(conversation_id=conversation_id).order_by("first_seq")
        summaries.append(list(made.values_list("content", flat=True)))

    assert summaries[0]
    assert summaries[0] == summaries[1]
    assert IntegrityChecker().run().is_clean


def test_what_a_model_sees_and_what_is_expanded_is_the_same_cold():
    conversation_id = a_conversation(*(f"{WORDS} {n}" for n in range(60))).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    summary_id = Summary.objects.first().pk
    assembler, engine = ContextAssembler.from_settings(), RetrievalEngine.from_settings()

    def seen():
        return (
            assembler.assemble(conversation_id=conversation_id, budget=5_000),
            assembler.assemble(conversation_id=conversation_id, as_of=12, format="openai"),
            engine.expand(summary_id=summary_id, include_messages=True),
            engine.expand_range(conversation_id=conversation_id, from_seq=1, to_seq=60, only_messages=True).items,
            engine.describe(id=f"msg_{Message.objects.first().pk}"),
            a_store().get_summary_messages(summary_id=summary_id),
        )

    before = seen()
    retention().archive(conversation_id=conversation_id)

    assert seen() == before


def test_storage_is_told_by_tier_for_one_workspace(monkeypatch):
    monkeypatch.setattr("conversations.files.large_files.default_storage", InMemoryStorage())
    scope = Scope(a_workspace().pk)
    conversation_id = a_conversation(*(f"{WORDS} {n}" for n in range(120))).conversation_id
    a_conversation(*(f"{WORDS} {n}" for n in range(3)))
    a_conversation(WORDS, workspace=a_workspace("elsewhere"))
    LargeFileService.from_settings(scope).store(conversation_id=conversation_id, content=b"twelve bytes")
    before = StorageReport(scope).storage()

    moved = retention(scope.workspace_id).archive(conversation_id=conversation_id)

    after = StorageReport(scope).storage()
    assert (before.conversations, before.messages, before.hot_messages, before.cold_messages) == (2, 123, 123, 0)
    assert (before.files, before.file_bytes, before.bytes_saved) == (1, 12, 0)
    assert (after.hot_messages, after.cold_messages, after.cold_blocks) == (3, 120, 2)
    assert after.cold_bytes == moved.bytes_in_blocks
    assert after.bytes_saved == moved.bytes_in_rows - moved.bytes_in_blocks > 0
    assert before.hot_bytes - after.hot_bytes == moved.bytes_in_rows
