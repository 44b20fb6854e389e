"""Many conversations go cold while they are read and the process is killed again and again: no byte is lost."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import pytest

from compaction.engine import CompactionEngine
from conversations.models import ColdBlock, Conversation, Message, Summary
from conversations.models.conversation import today
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.policy import RetentionPolicy
from integrity.retention.space_used import StorageReport
from integrity.retention.tiers import Retention
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.factories import a_store, a_tool_call, a_tool_result, a_workspace
from tests.flows.processes import start, wait_until

# So many of each hundred are compacted, so that there are summaries to expand.
COMPACTED = 4
PATIENCE = 300
UNUSED = timedelta(days=30)

ARCHIVING = """
import django
django.setup()
from integrity.retention.tiers import Retention
while Retention.from_settings().sweep():
    pass
"""


@dataclass(frozen=True)
class Crowd:
    """So many conversations, and how often the process that archives them is killed."""

    conversations: int
    kills: int


SIZES = [
    pytest.param(Crowd(conversations=100, kills=2), id="a hundred", marks=pytest.mark.thorough),
    pytest.param(Crowd(conversations=10_000, kills=20), id="ten thousand", marks=pytest.mark.slow),
]


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("crowd", SIZES)
def test_conversations_read_the_same_before_during_and_after_and_nothing_is_lost_by_kill_9(committed_db, crowd, capsys):
    chance = random.Random(11)
    ids = [_a_conversation(number, chance) for number in range(crowd.conversations)]
    before = _digests(ids)
    _unused()

    messages_cold = []
    for kill in range(crowd.kills):
        process = start("-c", ARCHIVING, cold_after_days=1, archive_seconds=3600)
        try:
            goal = crowd.conversations * (kill + 1) // (crowd.kills + 1)
            wait_until(lambda: ColdBlock.objects.count() >= goal, seconds=PATIENCE, what="some are cold")  # noqa: B023
        finally:
            process.kill()
            process.wait()
        some = chance.sample(ids, 20)
        assert _digests(some) == {each: before[each] for each in some}
        messages_cold.append(Message.objects.filter(cold_block__isnull=False).count())
        _unused()

    total = Message.objects.count()
    assert all(0 < each < total for each in messages_cold)
    assert IntegrityChecker().run().is_clean
    while Retention(policy=RetentionPolicy(cold_after_days=1, archive_seconds=3600)).sweep():
        pass
    storage = StorageReport(Scope(a_workspace().pk)).storage()
    assert (storage.cold_messages, storage.hot_messages) == (total, 0)
    assert _digests(ids) == before

    for conversation_id in ids[::10]:
        Retention.from_settings().thaw(conversation_id=conversation_id)
    thawed = ids[::10]
    assert _digests(thawed) == {each: before[each] for each in thawed}
    assert IntegrityChecker().run().is_clean
    with capsys.disabled():
        print(
            f"\n{len(ids):,} conversations, {total:,} messages: {storage.cold_bytes_before:,} bytes in rows, "
            f"{storage.cold_bytes:,} in blocks, {storage.bytes_saved:,} saved"
        )
    assert storage.bytes_saved > storage.cold_bytes_before / 2


def _a_conversation(number: int, chance: random.Random) -> int:
    """A few turns with a tool in them; some conversations are long enough for a summary."""
    store = a_store()
    conversation_id = store.open_conversation(session_id=f"session {number}").conversation_id
    words = [
        "harbour",
        "boat",
        "port 5433",
        "src/store/getConfig.ts",
        "数据库",
        "é",
        "\x00",
        "\ud800",
        "again",
        "never",
    ]
    is_long = number % 100 < COMPACTED

    def some(count: int) -> str:
        return " ".join(chance.choices(words, k=count))

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
    told = [
        repr(ContextAssembler.from_settings().assemble(conversation_id=conversation_id)),
        repr(a_store().list_messages(conversation_id=conversation_id)),
    ]
    for summary_id in Summary.objects.filter(conversation_id=conversation_id).values_list("pk", flat=True):
        cursor = None
        while True:
            page = engine.expand(summary_id=summary_id, depth=-1, include_messages=True, cursor=cursor)
            told.append(repr(page.items))
            if (cursor := page.cursor) is None:
                break
    return hashlib.sha256("\n".join(told).encode("utf-8", "surrogatepass")).hexdigest()


def _unused() -> None:
    """As if a month had gone by; what was read above was used today."""
    Conversation.objects.update(last_used_on=today() - UNUSED)
