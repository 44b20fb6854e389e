"""What ties conversations together survives a ledger: project, parent, and the summary of each session."""

from __future__ import annotations

import io
from typing import Any

import pytest

from compaction.history.history_worker import HistoryWorker
from compaction.history.models import SessionSummary
from compaction.history.session_history import SessionHistory
from conversations.errors import Conflict, Invalid
from conversations.models import Conversation, Project
from conversations.scope import Scope
from conversations.types import ParentLink
from integrity.retention.erasure import Erasures
from tests.conversations.ledger import verifier
from tests.conversations.ledger.forging import accepts, bytes_of, of
from tests.conversations.ledger.ledgers import another_database, exported, imported, objects_in, verified
from tests.factories import a_conversation, a_store, a_workspace
from tests.histories import a_session, current, go_on, members, summarize, work_off
from tests.integrity.erasing import assert_clean, erased


def a_family() -> None:
    """A session with a subagent and a fork, whose names come before its own; all in one project."""
    a_session(3)
    for name, parent, link in (
        ("agent", "harbour-3", ParentLink.SUBAGENT),
        ("agent of agent", "agent", None),
        ("a fork", "harbour-3", ParentLink.FORK),
    ):
        options = {"project": "harbour", "parent_session_id": parent, "parent_link": link}
        a_conversation("one", "two", session_id=name, **options)


def relations() -> list[tuple[Any, ...]]:
    ours = Conversation.objects.filter(workspace=a_workspace()).order_by("session_id")
    return list(ours.values_list("session_id", "project__name", "parent__session_id", "parent_link"))


def test_projects_parents_and_session_summaries_come_along(db, tmp_path):
    a_family()
    sessions = [a_session(number) for number in range(2)]
    summarize(sessions)
    go_on(sessions[0])
    summarize(sessions[:1])
    before, summaries = relations(), list(SessionSummary.objects.order_by("summary_id").values_list("pk", "content"))
    ledger = exported()
    assert accepts(ledger) and verified(ledger).counts.session_summaries == len(summaries) == 3
    another_database()

    report = imported(ledger, tmp_path)

    assert len(report.conversations) == len(before) and relations() == before
    assert list(SessionSummary.objects.order_by("summary_id").values_list("pk", "content")) == summaries
    assert exported() == ledger
    assert_clean()


def test_what_rests_on_a_session_is_the_same_for_what_comes_later(db, tmp_path):
    session = a_session(1)
    summarize([session])
    [before] = SessionSummary.objects.values_list("pk", flat=True)
    ledger = exported()
    another_database()
    imported(ledger, tmp_path)
    copy = a_store().find_conversation(session_id="harbour-1")

    assert not SessionHistory.from_settings().summarize_session(conversation_id=copy.conversation_id).created
    go_on(copy)
    summarize([copy])

    [newest] = current(0)
    assert (newest.supersedes_id, newest.project.name, newest.last_seq) == (before, "harbour", 7)
    assert_clean()


def test_arcs_are_made_again_from_imported_sessions(db, settings, tmp_path):
    settings.LCM = {"sessions_per_arc": 2}
    summarize([a_session(1), a_session(2)])
    [arc] = current(1)
    of_arc = [each.pk for each in members(arc)]
    ledger = exported()
    another_database()

    imported(ledger, tmp_path)
    HistoryWorker.from_settings().sweep()
    work_off()

    [again] = current(1)
    assert ([each.pk for each in members(again)], again.content) == (of_arc, arc.content)
    assert again.summary_hash == arc.summary_hash
    assert_clean()


def test_an_erased_session_summary_is_a_tombstone_in_the_copy_too(db, tmp_path):
    session = a_session(1)
    summarize([session])
    scope = Scope(a_workspace().pk, actor="operator")
    erased(Erasures.from_settings(scope), session.conversation_id, from_seq=2, to_seq=2)
    ledger = exported()
    assert accepts(ledger)
    another_database()

    imported(ledger, tmp_path)

    [copied] = SessionSummary.objects.all()
    assert (copied.content, copied.erased_by.act) == ("", "import_ledger")
    assert exported() == ledger
    assert_clean()


def test_a_ledger_of_before_is_imported_and_stays_as_it_was(db, tmp_path):
    a_family()
    summarize([a_session(1)])
    objects = [each for each in objects_in(exported()) if each["type"] != "session_summary"]
    for each in objects:
        for name in ("project", "parent_session_id", "parent_link"):
            each.pop(name, None)
        each.get("counts", {}).pop("session_summaries", None)
    objects[-1]["lines"] = len(objects)
    ledger = bytes_of(objects)
    assert verified(ledger).is_clean and accepts(ledger)
    another_database()

    imported(ledger, tmp_path)

    assert {row[1:] for row in relations()} == {(None, None, None)}
    assert exported() == ledger


def test_a_child_is_imported_behind_its_parent(db, tmp_path):
    a_family()
    ids = dict(Conversation.objects.values_list("session_id", "pk"))
    child, parent = exported(ids["agent"]), exported(ids["harbour-3"])
    assert verified(child).is_clean
    another_database()
    imported(parent, tmp_path, "somebody else's")

    with pytest.raises(Conflict, match="has the parent 'harbour-3', which is missing") as refused:
        imported(child, tmp_path)
    assert not Conversation.objects.filter(workspace=a_workspace()).exists()
    assert not Project.objects.filter(workspace=a_workspace()).exists()
    imported(parent, tmp_path)
    imported(child, tmp_path)

    assert refused.value.code == "parent_not_there"
    assert exported(Conversation.objects.get(session_id="agent").pk) == child


def test_parents_in_a_circle_are_refused_and_nothing_is_written(db, tmp_path):
    a_family()
    objects = objects_in(exported())
    parent = of(objects, "end", session_id="harbour-3")
    parent |= {"parent_session_id": "agent of agent", "parent_link": "fork"}
    ledger = bytes_of(objects)
    another_database()

    with pytest.raises(Invalid, match="its own parent through others") as refused:
        imported(ledger, tmp_path)

    assert refused.value.code == "ledger_does_not_verify"
    assert not Conversation.objects.filter(workspace=a_workspace()).exists()
    with pytest.raises(AssertionError, match="parent"):
        verifier.verify(io.BytesIO(ledger))
