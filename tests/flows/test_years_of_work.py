"""Two hundred sessions of eight projects: summarized while workers are killed, and read back to the last byte."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from compaction.history.models import HistoryJob, SessionSummary
from compaction.history.session_history import SessionHistory
from compaction.history.types import HistoryKind
from conversations.models import Conversation, Message
from conversations.types import ConversationRecord, NewMessage, Role
from conversations.work.queue import WorkState
from retrieval.history.project_history import ProjectHistory
from retrieval.types import ItemKind
from tests.conversations.real_data import conversation_files, needs_data, rows_of
from tests.factories import a_store, say
from tests.flows.processes import wait_until
from tests.flows.storms import Workers
from tests.flows.walk import assert_clean
from tests.histories import all_done
from tests.retrieval.lineages import pages

# How many sessions each project has: two epochs and less, down to no arc.
PROJECTS = {"harbour": 72, "lighthouse": 40, "ferry": 33, "pier": 20, "crane": 15, "tide": 10, "buoy": 8, "rope": 2}
PER_ARC, PER_EPOCH = 8, 4
BEGAN, A_DAY = datetime(2026, 1, 5, 9, tzinfo=UTC), timedelta(days=1)
# A dead worker's job is soon another's.
TIGHT = {"job_lease_seconds": 2, "fresh_tail_count": 4, "leaf_chunk_tokens": 1000, "session_quiet_minutes": 0}


def real_texts() -> Iterator[str]:
    """What was written in real conversations, and then generated remarks."""
    for file in conversation_files():
        for row in rows_of(file):
            if text := row["content"].strip():
                yield text[:4000]
    for number in itertools.count():
        yield f"Remark {number}: service-{number % 37} listens on port {4000 + number}, as docs/{number}.md has it."


def write_on(conversation: ConversationRecord, texts: Iterator[str], count: int, *, begins: datetime) -> None:
    """Append messages, of one minute each."""
    roles = itertools.cycle((Role.USER, Role.ASSISTANT))
    messages = [
        NewMessage(role, text, created_at=begins + timedelta(minutes=minute))
        for minute, (role, text) in enumerate(zip(roles, itertools.islice(texts, count), strict=False))
    ]
    say(conversation.conversation_id, *messages)


def current(kind: HistoryKind, project: str) -> list[SessionSummary]:
    return list(SessionSummary.objects.current().filter(kind=kind, project__name=project).order_by("earliest_at"))


def assert_jobs_succeed() -> None:
    assert not HistoryJob.objects.filter(state=WorkState.FAILED).exists()


def messages_below(summary: SessionSummary) -> dict[int, str]:
    """Every message below the summary, as pages of the expansion give it back."""
    found: dict[int, str] = {}
    asked = {"summary_id": summary.pk, "depth": -1, "include_messages": True, "token_cap": 20_000}
    for page in pages(ProjectHistory.from_settings().expand_session, **asked):
        for item in page.items:
            if item.kind is ItemKind.MESSAGE:
                number = int(item.id.removeprefix("msg_"))
                found[number] = found.get(number, "") + item.content
    return found


@needs_data
@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_a_past_of_many_sessions_is_whole_whatever_is_killed(committed_db, settings):
    kills, chance, texts = 20, random.Random(4), real_texts()
    settings.LCM = {**settings.LCM, **TIGHT, "autocompact_disabled": True}
    history = SessionHistory.from_settings()
    names = [name for name, count in PROJECTS.items() for _ in range(count)]
    chance.shuffle(names)
    opened = [
        a_store().open_conversation(session_id=f"session-{number}", project=name) for number, name in enumerate(names)
    ]
    with Workers(2, **settings.LCM) as workers:
        for number, conversation in enumerate(opened):
            write_on(conversation, texts, chance.randint(4, 24), begins=BEGAN + number * A_DAY)
            history.request_session(conversation_id=conversation.conversation_id)
            if number % (len(opened) // kills) == 0:
                workers.kill_one()
        wait_until(all_done, seconds=600, what="every session has its summary, and what follows of it")
        assert_jobs_succeed()
        first = {row.pk for row in SessionSummary.objects.current()}
        # Weeks later, some are taken up again; one of them is in an epoch, another in an arc.
        continued = (*opened[:16:3], *opened[-8::3])
        for conversation in continued:
            write_on(conversation, texts, 6, begins=BEGAN + (len(opened) + 21) * A_DAY)
            history.request_session(conversation_id=conversation.conversation_id)
        wait_until(all_done, seconds=600, what="what was taken up again is renewed")
        assert_jobs_succeed()

    assert first - {row.pk for row in SessionSummary.objects.current()}, "nothing was renewed"
    for conversation in continued:
        [renewed] = SessionSummary.objects.current().filter(conversation_id=conversation.conversation_id)
        assert renewed.supersedes_id in first and renewed.latest_at - renewed.earliest_at > 21 * A_DAY
    for name, count in PROJECTS.items():
        of_project = Conversation.objects.filter(project__name=name)
        arcs, epochs = count // PER_ARC, count // PER_ARC // PER_EPOCH
        assert [len(current(kind, name)) for kind in HistoryKind] == [count, arcs, epochs]
        stored = dict(Message.objects.filter(conversation__in=of_project).values_list("message_id", "content"))
        tops = [*current(HistoryKind.EPOCH, name)]
        tops += [arc for arc in current(HistoryKind.ARC, name) if not has_parent(arc)]
        tops += [session for session in current(HistoryKind.SESSION, name) if not has_parent(session)]
        below = Counter()
        read: dict[int, str] = {}
        for top in tops:
            texts_below = messages_below(top)
            below.update(texts_below.keys())
            read |= texts_below
        assert read == stored
        assert set(below.values()) == {1}, "a message lies below two summaries on top"

    of_harbour = [conversation for conversation, name in zip(opened, names, strict=True) if name == "harbour"]
    ago = ProjectHistory.from_settings().session_ago(conversation_id=of_harbour[-1].conversation_id, sessions_ago=3)
    assert ago.session.session_id == of_harbour[-4].session_id and ago.session.content
    assert_clean()


def has_parent(summary: SessionSummary) -> bool:
    """Whether a current arc or epoch was made from it."""
    return summary.parent_links.filter(parent__in=SessionSummary.objects.current()).exists()
