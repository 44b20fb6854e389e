"""People come in by a role in a workspace, and nowhere else."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.contrib.sessions.models import Session
from django.utils import timezone

from conversations.audit import AuditLog
from conversations.errors import Invalid, NotFound
from conversations.scope import Scope
from lcmsite.access import users
from lcmsite.tasks import forget_ended_sessions
from lcmsite.types import Role
from tests.factories import a_workspace
from tests.lcmsite.dashboard.visiting import browser_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def scope() -> Scope:
    return Scope(a_workspace().pk, actor="operator")


@pytest.mark.parametrize("name", ["", "a b", "a\x00b", "x" * 151, "a\nb"])
def test_a_name_is_one_that_can_be_typed(scope, name):
    with pytest.raises(Invalid, match="1 to 150"):
        users.add(scope, username=name, role=Role.READER)


def test_a_person_sees_the_workspaces_they_are_in(scope):
    theirs = Scope(a_workspace("theirs").pk)
    users.add(scope, username="ann", role=Role.READER)
    users.add(theirs, username="bob", role=Role.ADMIN)
    users.set_role(theirs, username="ann", role=Role.OPERATOR)

    seen = {user.username: users.workspaces_of(user) for user in get_user_model().objects.all()}

    assert [(workspace.name, role) for workspace, role in seen["ann"]] == [
        ("default", Role.READER),
        ("theirs", Role.OPERATOR),
    ]
    assert [workspace.name for workspace, _ in seen["bob"]] == ["theirs"]


def test_a_superuser_is_an_admin_everywhere_and_an_inactive_person_nowhere(scope):
    a_workspace("theirs")
    root = get_user_model().objects.create_superuser("root", password="x")
    users.add(scope, username="ann", role=Role.ADMIN)
    get_user_model().objects.filter(username="ann").update(is_active=False)

    assert [role for _, role in users.workspaces_of(root)] == [Role.ADMIN, Role.ADMIN]
    assert users.workspaces_of(get_user_model().objects.get(username="ann")) == []


def test_a_person_is_put_out_of_one_workspace_alone(scope):
    theirs = Scope(a_workspace("theirs").pk)
    users.add(scope, username="ann", role=Role.READER)
    users.set_role(theirs, username="ann", role=Role.READER)

    users.remove(scope, username="ann")

    assert users.list_members(scope) == []
    assert [member.username for member in users.list_members(theirs)] == ["ann"]
    with pytest.raises(NotFound):
        users.remove(scope, username="ann")
    with pytest.raises(NotFound):
        users.set_role(scope, username="nobody", role=Role.ADMIN)


def test_who_changed_whom_is_in_the_audit_log(scope):
    users.add(scope, username="ann", role=Role.READER)
    users.set_role(scope, username="ann", role=Role.ADMIN)
    users.reset_password(scope, username="ann")
    users.remove(scope, username="ann")

    acts = [(entry.actor, entry.act, entry.target, entry.detail) for entry in AuditLog(scope).list_acts()]
    assert acts[::-1] == [
        ("operator", "set_role", "ann", {"role": "reader"}),
        ("operator", "set_role", "ann", {"role": "admin"}),
        ("operator", "reset_password", "ann", {}),
        ("operator", "remove_member", "ann", {}),
    ]


def test_an_admin_leaves_when_there_is_another_and_is_put_out_by_others(scope):
    for name in ("ann", "bob"):
        users.add(scope, username=name, role=Role.ADMIN)

    users.set_role(Scope(scope.workspace_id, actor="user ann"), username="ann", role=Role.READER)
    # Whoever is at the machine can let somebody in again.
    users.remove(scope, username="bob")

    assert [(member.username, member.role) for member in users.list_members(scope)] == [("ann", Role.READER)]


def test_sessions_that_have_ended_are_forgotten_and_nobody_else_is_put_out():
    gone, here = browser_of("reader"), browser_of("operator")
    ended = Session.objects.filter(session_key=gone.cookies["sessionid"].value)
    ended.update(expire_date=timezone.now())

    forget_ended_sessions.call_local()

    assert not ended.exists()
    assert here.get("/w/default/").status_code == 200
