"""A session, arc or epoch summary is described with what it rests on, and by its place among the others."""

from __future__ import annotations

import pytest

from compaction.history.types import HistoryKind
from conversations.errors import NotFound
from conversations.types import Level
from retrieval.types import Description, ItemKind, MessageSpan
from tests.pasts import a_session_summary
from tests.retrieval.lineages import engine


def describe(id: str) -> Description:
    return engine().describe(id=id)


def test_a_session_says_on_which_summaries_and_messages_it_rests(past):
    session = past.sessions[0]

    described = describe(session.pk)

    assert (described.kind, described.history_kind, described.depth) == (
        ItemKind.SESSION_SUMMARY,
        HistoryKind.SESSION,
        0,
    )
    assert (described.project, described.conversation_id) == ("harbour", past.conversations[0].conversation_id)
    assert described.sources == (session.memory_links.get(memory_summary__isnull=False).memory_summary_id,)
    assert described.source_messages == (MessageSpan(3, 5),)
    assert (described.first_seq, described.last_seq, described.message_count) == (1, 5, 5)
    assert (described.earliest_at, described.latest_at) == (session.earliest_at, session.latest_at)
    assert (described.level, described.confidence, described.is_degraded) == (Level.NORMAL, 0.7, False)
    assert described.derived == (past.arcs[0].pk,)
    assert described.active
    assert described.content == session.content


@pytest.mark.parametrize(("kind", "messages"), [(HistoryKind.ARC, 10), (HistoryKind.EPOCH, 20)])
def test_an_arc_and_an_epoch_name_their_members_and_what_holds_them(past, kind, messages):
    summary, members, above = {
        HistoryKind.ARC: (past.arcs[0], past.sessions[:2], (past.epoch.pk,)),
        HistoryKind.EPOCH: (past.epoch, past.arcs, ()),
    }[kind]

    described = describe(f'<session id="{summary.pk}" trust="untrusted">')

    assert (described.id, described.history_kind, described.conversation_id) == (summary.pk, kind, None)
    assert described.sources == tuple(member.pk for member in members)
    assert (described.derived, described.source_messages) == (above, ())
    assert described.message_count == messages
    assert described.opening_tokens == sum(member.token_count for member in members)


def test_one_that_was_made_again_names_what_supersedes_it(past):
    again = a_session_summary(past.conversations[0].conversation_id, "Anew.", supersedes=past.sessions[0])

    before, after = describe(past.sessions[0].pk), describe(again.pk)

    assert (before.active, before.superseded_by, before.supersedes) == (False, again.pk, None)
    assert (after.active, after.superseded_by, after.supersedes) == (True, None, before.id)


def test_expand_names_the_tool_that_opens_one(past):
    with pytest.raises(NotFound, match="lcm_expand_session opens it"):
        engine().expand(summary_id=past.epoch.pk)
