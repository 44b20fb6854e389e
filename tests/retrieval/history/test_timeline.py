"""A project's time line: what is in it, in which order, page by page; and the session so many before."""

import pytest

from conversations.errors import NotFound
from conversations.models import Conversation
from conversations.scope import Scope
from retrieval.history.project_history import ProjectHistory
from retrieval.history.timelines import entries
from tests.factories import a_conversation, a_workspace
from tests.pasts import a_project, a_session, a_session_summary, a_summary_over


def shown(entries):
    return [entry.id or entry.session_id for entry in entries]


def newest_first(past):
    first, second, third, fourth, fifth = (each.pk for each in past.sessions)
    older = [past.epoch.pk, past.arcs[1].pk, fourth, third, past.arcs[0].pk, second, first]
    return ["session-of-5", fifth, *older]


def test_everything_current_comes_newest_first_what_stands_for_others_before_them(history, past):
    entries = history.timeline(project="harbour")

    assert shown(entries) == newest_first(past)
    assert [entry.part_of for entry in entries[3:5]] == [past.epoch.pk, past.arcs[1].pk]
    assert entries[0].content is None and entries[1].content == past.sessions[4].content
    epoch = entries[2]
    assert (epoch.children, epoch.sessions, epoch.conversation_id) == (2, 4, None)
    assert (entries[1].message_count, entries[1].title, entries[1].project) == (5, "Day 4", "harbour")


@pytest.mark.parametrize("size", [1, 7])
def test_pages_give_every_entry_once(history, past, size):
    found, after = [], None
    while page := history.timeline(project="harbour", limit=size, after=after):
        found += page
        after = page[-1].place

    assert shown(found) == newest_first(past)


def test_one_kind_alone_can_be_listed(history, past):
    for kind, count in (("session", 6), ("arc", 2), ("epoch", 1)):
        assert [entry.kind for entry in history.timeline(project="harbour", kind=kind)] == [kind] * count


def test_the_entries_of_several_conversations_are_read_at_once(past):
    asked = [past.conversations[place].conversation_id for place in (1, 3, 5)]

    found = entries(past.project, scope=Scope(a_workspace().pk), conversation_ids=asked, limit=9)

    assert [each.conversation_id for each in found] == asked[::-1]
    assert [each.content for each in found] == [None, past.sessions[3].content, past.sessions[1].content]
    assert [each.part_of for each in found[1:]] == [past.arcs[1].pk, past.arcs[0].pk]


def test_what_was_made_again_is_listed_once_and_says_what_it_does_not_cover(history, past):
    session = past.sessions[4]
    again = a_session_summary(session.conversation_id, "It went on.", supersedes=session)
    Conversation.objects.filter(pk=session.conversation_id).update(next_seq=9)

    [entry] = [each for each in history.timeline(project="harbour") if each.conversation_id == session.conversation_id]

    assert (entry.id, entry.content, entry.behind) == (again.pk, "It went on.", 3)


def test_the_project_is_found_by_a_conversation_of_it(history, past):
    number = past.conversations[0].conversation_id

    assert shown(history.timeline(conversation_id=number)) == newest_first(past)
    alone = a_conversation("alone")
    assert shown(history.timeline(conversation_id=alone.conversation_id)) == [alone.session_id]
    with pytest.raises(NotFound, match="no project"):
        history.session_ago(conversation_id=alone.conversation_id)


def test_a_project_is_found_by_any_name_that_can_be_stored(history):
    session = a_session(a_project("港\u3000一\n"))

    assert shown(history.timeline(project="港\u3000一\n")) == [session.session_id]
    for name in ("harbour\x00", "harbour\ud800"):
        with pytest.raises(NotFound, match="no project"):
            history.timeline(project=name)


def test_without_a_project_all_of_the_workspace_is_listed(history, past):
    alone = a_conversation("alone")
    a_session(a_project("theirs", a_workspace("elsewhere")))

    assert shown(history.timeline()) == [alone.session_id, *newest_first(past)]


def test_projects_are_listed_by_name_with_what_they_have(history, past):
    a_session(a_project("a boat"))

    boat, harbour = history.list_projects()

    assert (boat.name, boat.conversations, boat.sessions, boat.arcs) == ("a boat", 1, 0, 0)
    assert (harbour.conversations, harbour.sessions, harbour.arcs, harbour.epochs) == (6, 5, 2, 1)
    assert history.list_projects(after_name="a boat") == [harbour]


def test_the_session_so_many_before_comes_in_one_call_with_its_summary(history, past):
    here = past.conversations[5].conversation_id

    for sessions_ago in (1, 2, 5):
        found = history.session_ago(conversation_id=here, sessions_ago=sessions_ago)

        assert (found.session.id, found.session.content) == (
            past.sessions[-sessions_ago].pk,
            past.sessions[-sessions_ago].content,
        )
        assert found.session.id in found.calls[0]


def test_subagents_and_empty_conversations_are_no_sessions_ago(history):
    project = a_project("boats")
    first = a_session(project)
    helper = a_session(project)
    Conversation.objects.filter(pk=helper.conversation_id).update(
        parent_id=first.conversation_id, parent_link="subagent"
    )
    empty = a_conversation()
    Conversation.objects.filter(pk=empty.conversation_id).update(project=project)
    here = a_session(project)

    found = history.session_ago(conversation_id=here.conversation_id)

    assert found.session.conversation_id == first.conversation_id
    assert found.session.id is None and "lcm_expand_range" in found.calls[0]
    assert "include_messages=true" in found.calls[0]
    with pytest.raises(NotFound, match="does not have 2 sessions before it"):
        history.session_ago(conversation_id=here.conversation_id, sessions_ago=2)


def test_texts_of_a_page_end_where_they_cost_too_much(past):
    short = ProjectHistory.from_settings(Scope(a_workspace().pk))
    most = short.timeline(project="harbour", limit=2)[1].token_count
    short = ProjectHistory(policy=type(short.policy)(max_expand_tokens=most), tokens=short.tokens, scope=short.scope)

    entries = short.timeline(project="harbour")

    assert [entry.id for entry in entries if entry.content is not None] == [past.sessions[4].pk]


def test_an_arc_of_arcs_that_were_made_again_counts_the_sessions_below(history, past):
    renewed = a_summary_over(past.sessions[2:4], "Renewed.", supersedes=past.arcs[1])

    entries = {entry.id: entry for entry in history.timeline(project="harbour")}

    assert renewed.pk in entries and past.arcs[1].pk not in entries
    assert entries[past.sessions[3].pk].part_of == renewed.pk
