"""What rests on quarantined content is withheld by every reader of a past, and another workspace sees none of it."""

from __future__ import annotations

import pytest

from conversations.errors import NotFound
from conversations.models import Message
from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from retrieval.engine import RetrievalEngine
from retrieval.history.project_history import ProjectHistory
from tests.factories import a_workspace
from tests.pasts import a_session_summary, a_summary_over


@pytest.fixture
def withheld(past):
    """The ids of a session of which a message is quarantined, and of the arc and the epoch above it."""
    hidden = Message.objects.get(conversation_id=past.sessions[0].conversation_id, seq=1)
    Quarantines.from_settings(Scope(a_workspace().pk)).quarantine(id=f"msg_{hidden.pk}", reason="wrong")
    return {past.sessions[0].pk, past.arcs[0].pk, past.epoch.pk}


def test_every_reader_withholds_its_text(history, past, withheld, assembler):
    describe = RetrievalEngine.from_settings(Scope(a_workspace().pk)).describe
    listed = history.timeline(project="harbour")
    opened = history.expand_session(summary_id=past.epoch.pk).items
    section = assembler.recall(project="harbour", budget=1000, share=1, query="5430")

    assert {entry.id for entry in listed if entry.quarantined} == withheld
    assert all(entry.content is None for entry in listed if entry.quarantined)
    assert all(describe(id=id).quarantined and describe(id=id).content is None for id in withheld)
    assert describe(id=past.sessions[1].pk).content
    assert [(item.quarantined, item.content) for item in opened] == [(True, ""), (False, past.arcs[1].content)]
    assert history.grep_sessions(query="5430").matches == ()
    assert [match.id for match in history.grep_sessions(query="5431").matches] == [past.sessions[1].pk]
    assert not withheld & set(section.past_ids)
    assert "port 5430" not in section.text.lower()


def test_what_was_made_again_without_it_is_shown(history, past, withheld):
    arc = a_summary_over(past.sessions[:2], "Its text repeats what is withheld.", supersedes=past.arcs[0])
    again = a_session_summary(past.sessions[0].conversation_id, "Made without it.", supersedes=past.sessions[0])
    arcs = history.timeline(project="harbour", kind="arc")
    renewed = a_summary_over([again, past.sessions[1]], "Renewed.", supersedes=arc)

    assert {entry.id for entry in arcs if entry.quarantined} == {arc.pk}
    shown = {entry.id: entry.content for entry in history.timeline(project="harbour", kind="arc")}
    assert shown[renewed.pk] == "Renewed."
    assert history.session_ago(conversation_id=past.conversations[1].conversation_id).session.content == again.content


def test_another_workspace_sees_nothing_of_it(past):
    scope = Scope(a_workspace("elsewhere").pk)
    others, describe = ProjectHistory.from_settings(scope), RetrievalEngine.from_settings(scope).describe

    with pytest.raises(NotFound):
        others.timeline(project="harbour")
    with pytest.raises(NotFound):
        others.expand_session(summary_id=past.epoch.pk)
    with pytest.raises(NotFound) as refusal:
        describe(id=past.epoch.pk)
    with pytest.raises(NotFound) as unknown:
        describe(id="ses_00000000000fffff")
    assert refusal.value.detail.replace(past.epoch.pk, "ses_00000000000fffff") == unknown.value.detail
