"""Many conversations go cold while they are read and the process is killed again and again: no byte is lost."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from datetime import timedelta

import pytest

from compaction.engine import CompactionEngine
from conversations.models import ColdBlock, Conversation, Message, Summary
from conversations.models.conversation import today
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.policy import RetentionPolicy
from integrity.retention.tiers import Retention, StorageReport
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.factories import a_store, a_tool_call, a_tool_result, a_workspace
from tests.flows.processes import start, wait_until

# So many of each hundred are compacted, so that there are summaries to expand.
COMPACTED = 4
WORDS = ("harbour", "boat", "port 5433", "src/store/getConfig.ts", "数据库", "é", "\x00", "\ud800", "again", "never")
ARCHIVING = """
import django
django.setup()
from integrity.retention.tiers import Retention
while Retention.from_settings().sweep():
    pass
"""


@pytest.mark.timeout(7200)
@pytest.mark.parametrize(
    ("conversations", "kills"),
    [pytest.param(100, 2, marks=pytest.mark.thorough), pytest.param(10_000, 20, marks=pytest.mark.slow)],
)
def test_conversations_read_the_same_before_during_and_after_and_nothing_is_lost_by_kill_9(
    committed_db, conversations, kills
):
    chance = random.Random(11)
    ids = [_a_conversation(number, chance) for number in range(conversations)]
    before = _digests(ids)

    messages_cold = []
    for kill in range(kills):
        _as_if_unused()
        process = start("-c", ARCHIVING, cold_after_days=1, archive_seconds=3600)
        try:
            goal = conversations * (kill + 1) // (kills + 1)
            wait_until(lambda: ColdBlock.objects.count() >= goal, seconds=300, what="some are cold")  # noqa: B023
        finally:
            process.kill()
            process.wait()
        some = chance.sample(ids, 20)
        assert _digests(some) == {each: before[each] for each in some}
        messages_cold.append(Message.objects.filter(cold_block__isnull=False).count())

    total = Message.objects.count()
    assert all(0 < each < total for each in messages_cold)
    assert IntegrityChecker().run().is_clean
    _as_if_unused()
    while Retention(policy=RetentionPolicy(cold_after_days=1, archive_seconds=3600)).sweep():
        pass
    storage = StorageReport(Scope(a_workspace().pk)).storage()
    assert (storage.cold_messages, storage.hot_messages) == (total, 0)
    assert storage.bytes_saved > storage.cold_bytes_before / 2
    assert _digests(ids) == before

    for conversation_id in ids[::10]:
        Retention.from_settings().thaw(conversation_id=conversation_id)
    assert _digests(ids[::10]) == {each: before[each] for each in ids[::10]}
    assert IntegrityChecker().run().is_clean


def _a_conversation(number: int, chance: random.Random) -> int:
    """A few turns with a tool in them; some conversations are long enough for a summary."""
    store = a_store()
    conversation_id = store.open_conversation(session_id=f"session {number}").conversation_id
    is_long = number % 100 < COMPACTED

    def some(count: int) -> str:
        return " ".join(chance.choices(WORDS, k=count))

    messages = [
        NewMessage(Role.SYSTEM, f"You are number {number}.", metadata={"b": 1.50, "a": number}),
        NewMessage(Role.USER, f"{some(40)}?", author=f"user {number}"),
        a_tool_call(f"c{number}", path=some(3)),
        a_tool_result(f"c{number}", some(300)),
        NewMessage(Role.ASSISTANT, some(60), parts=(NewPart(PartType.REASONING, text_content=some(30)),)),
        *(NewMessage(Role.USER, some(200)) for _ in range(20 if is_long else 1)),
    ]
    store.append_messages(conversation_id=conversation_id, messages=messages)
    if is_long:
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


def _digests(conversation_ids: Iterable[int]) -> dict[int, str]:
    """What a model is given, what is expanded and what is listed of each, to the last byte, as one hash."""
    return {each: _digest(each) for each in conversation_ids}


def _digest(conversation_id: int) -> str:
    engine = RetrievalEngine.from_settings()
    shown = [
        repr(ContextAssembler.from_settings().assemble(conversation_id=conversation_id)),
        repr(a_store().list_messages(conversation_id=conversation_id)),
    ]
    for summary_id in Summary.objects.filter(conversation_id=conversation_id).values_list("pk", flat=True):
        page = engine.expand(summary_id=summary_id, depth=-1, include_messages=True)
        shown.append(repr(page.items))
        while page.cursor is not None:
            page = engine.expand(summary_id=summary_id, depth=-1, include_messages=True, cursor=page.cursor)
            shown.append(repr(page.items))
    return hashlib.sha256("\n".join(shown).encode("utf-8", "surrogatepass")).hexdigest()


def _as_if_unused() -> None:
    """As if a month had gone by; what was read was used today."""
    Conversation.objects.update(last_used_on=today() - timedelta(days=30))
