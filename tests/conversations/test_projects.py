"""A conversation has one project and one parent, of its own workspace."""

from __future__ import annotations

import pytest

from conversations.errors import Conflict, Invalid, NotFound
from conversations.formats import normal_remote, project_of
from conversations.models import Project
from conversations.types import ParentLink
from tests.factories import a_store

pytestmark = pytest.mark.django_db


def test_a_project_is_made_by_its_first_use_and_shared_by_its_conversations():
    store = a_store()
    first = store.open_conversation(session_id="one", project="harbour")
    second = store.open_conversation(session_id="two", project="harbour")

    assert first.project == second.project == "harbour"
    assert Project.objects.count() == 1
    assert store.open_conversation(session_id="one").project == "harbour"
    assert [each.project for each in store.list_conversations()] == ["harbour", "harbour"]


def test_a_project_may_be_given_later_and_never_changed():
    store = a_store()
    store.open_conversation(session_id="one")

    placed, again = (store.open_conversation(session_id="one", project="harbour") for _ in range(2))

    assert (again.project, again.updated_at) == ("harbour", placed.updated_at)
    with pytest.raises(Conflict) as refusal:
        store.open_conversation(session_id="one", project="boats")
    assert refusal.value.code == "other_project"
    assert "harbour" in refusal.value.detail


def test_a_subagent_and_a_fork_name_their_parent():
    store = a_store()
    parent = store.open_conversation(session_id="one")
    agent = store.open_conversation(session_id="agent", parent_session_id="one")
    fork = store.open_conversation(session_id="fork", parent_session_id="one", parent_link=ParentLink.FORK)

    assert (agent.parent_id, agent.parent_link) == (parent.conversation_id, ParentLink.SUBAGENT)
    assert (fork.parent_id, fork.parent_link) == (parent.conversation_id, ParentLink.FORK)
    with pytest.raises(Conflict):
        store.open_conversation(session_id="fork", parent_session_id="agent")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"parent_session_id": "nowhere"}, NotFound),
        ({"parent_session_id": "agent"}, Invalid),
        ({"parent_session_id": "one"}, Invalid),
        ({"parent_link": ParentLink.FORK}, Invalid),
        ({"project": ""}, Invalid),
    ],
)
def test_a_parent_that_cannot_be_is_refused(given, error):
    store = a_store()
    store.open_conversation(session_id="one")
    store.open_conversation(session_id="agent", parent_session_id="one")

    with pytest.raises(error):
        store.open_conversation(session_id="one", **given)


@pytest.mark.parametrize(
    ("remote", "name"),
    [
        ("git@GitHub.com:harbour/boats.git", "github.com/harbour/boats"),
        ("https://ada:secret@github.com/harbour/boats.git/", "github.com/harbour/boats"),
        ("ssh://git@github.com:2222/harbour/boats", "github.com/harbour/boats"),
        ("github.com/harbour/boats", "github.com/harbour/boats"),
        ("nonsense", ""),
    ],
)
def test_a_remote_is_one_project_however_it_is_written(remote, name):
    assert normal_remote(remote) == name


@pytest.mark.parametrize(
    ("line", "project"),
    [
        ({"type": "user", "sessionId": "s", "cwd": "/home/ada/boats/"}, "/home/ada/boats"),
        ({"type": "session_meta", "payload": {"cwd": "/a", "git": {"repository_url": "git@h:b/c.git"}}}, "h/b/c"),
        ({"type": "session_meta", "payload": {"cwd": "/a", "git": None}}, "/a"),
        ({"type": "response_item", "payload": {"cwd": "/a"}}, ""),
        ({"type": "session", "id": "s", "cwd": "C:\\boats"}, "C:\\boats"),
        # As exported of a conversation without a project.
        ({"type": "user", "cwd": "/"}, ""),
        ({"type": "user", "cwd": 7}, ""),
    ],
)
def test_a_line_of_a_transcript_names_its_project(line, project):
    assert project_of(line) == project
