"""Summaries know the files of all that they stand for."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from conversations.files.large_files import LargeFileService
from conversations.models import Summary
from conversations.types import NewMessage, NewPart, PartType, Role
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, say

pytestmark = pytest.mark.django_db


def test_files_travel_up_the_lineage():
    conversation = a_conversation(
        overrides={"leaf_batch_messages": 4, "fresh_tail_count": 1, "leaf_target_tokens": 300}
    )
    conversation_id = conversation.conversation_id
    picture = LargeFileService.from_settings().store(conversation_id=conversation_id, content=b"\x89PNG")
    said = [NewMessage(Role.USER, f"Message {n} about the harbour and its boats. " * 25) for n in range(32)]
    said[3] = NewMessage(Role.USER, "".join(f"2026-01-01 10:00:00 INFO step {n}\n" for n in range(5000)))
    said[21] = NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_name="a.png", file_url=picture.file_id),))

    (moved,) = say(conversation_id, *said).moved
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    for file_id, seq in ((moved.file_id, 4), (picture.file_id, 22)):
        covering = Summary.objects.filter(first_seq__lte=seq, last_seq__gte=seq)
        assert {summary.depth for summary in covering} >= {0, 1}
        assert [summary.pk for summary in covering if file_id not in summary.file_ids] == []
        others = Summary.objects.exclude(pk__in=covering.values("pk"))
        assert [summary.pk for summary in others if file_id in summary.file_ids] == []
        needed_by = RetrievalEngine.from_settings().describe(id=file_id).needed_by
        assert set(needed_by) == {f"msg_{message_of(conversation_id, seq)}", *(summary.pk for summary in covering)}
    leaf = Summary.objects.get(depth=0, first_seq__lte=4, last_seq__gte=4)
    assert moved.file_id in leaf.content or "log" in leaf.content


def message_of(conversation_id: int, seq: int) -> int:
    return a_store().list_messages(conversation_id=conversation_id, after_seq=seq - 1, limit=1)[0].message_id
