"""Who may come in: grants, keys, members and workspaces, given and taken back in the browser by those who may."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.auth import authenticate
from django.test import RequestFactory

from conversations.audit import AuditLog
from conversations.errors import Unauthenticated
from conversations.models import Workspace
from conversations.scope import Scope
from lcmsite.access import keys, users
from lcmsite.types import KeyScope, Role
from retrieval.delegation.grants import Grants
from tests.factories import a_workspace
from tests.lcmsite.dashboard.visiting import HOSTILE, page_of, shown_links

pytestmark = pytest.mark.django_db
HERE = "/w/default/"
# A user's name has no blanks.
HOSTILE_NAME = "<img/src=x/onerror=alert(1)>"


def scope() -> Scope:
    return Scope(a_workspace().pk)


def a_grant(question: str = "Which port?") -> str:
    grant = Grants.from_settings(scope()).issue(
        workspace_id=a_workspace().pk, question=question, item_ids=["sum_1"], depth=2, token_cap=4000, seconds=300
    )
    return grant.grant_id


def acts() -> list[tuple[str, str, str]]:
    return [(entry.actor, entry.act, entry.target) for entry in AuditLog(scope()).list_acts()]


def test_grants_are_listed_with_what_was_read_by_them(admin):
    grant_id = a_grant(HOSTILE)
    with Grants.from_settings(scope()).reserve(grant_id=grant_id, wanted=1000) as room:
        room.used = 700

    page = page_of(admin, f"{HERE}grants/")

    assert grant_id in page and "700 of 4,000 tokens" in page and "active" in page
    assert HOSTILE not in page


def test_who_may_write_takes_a_grant_back(reader, operator):
    grant_id = a_grant()
    path = f"{HERE}grants/{grant_id}/revocation/"
    assert reader.post(path).status_code == 403
    assert "Revoke" not in reader.get(f"{HERE}grants/").content.decode().partition("<main")[2]
    page = operator.post(path, follow=True).content.decode()

    assert "was revoked" in page and "revoked" in page
    assert Grants.from_settings(scope()).get_grant(grant_id=grant_id).state == "revoked"


def test_a_key_is_shown_once_and_opens_the_workspace(admin):
    made = admin.post(f"{HERE}keys/new/", {"name": HOSTILE, "scope": "write", "days": "7"})
    page = made.content.decode()
    key = re.findall(r'<code id="new-key">(lcm_[^<]+)</code>', page)[0]

    listed = page_of(admin, f"{HERE}keys/")

    assert made.status_code == 201 and "no-store" in made["Cache-Control"]
    assert keys.caller_of(key).key_scopes == {KeyScope.WRITE}
    assert keys.list_keys(scope())[0].expires_at is not None
    assert key not in listed and key[:8] in listed
    assert HOSTILE not in page + listed and "&lt;script&gt;" in listed
    assert acts()[0][:2] == ("user a-admin", "issue_key")


def test_a_key_that_is_taken_back_opens_nothing_and_a_foreign_one_looks_like_none(admin):
    issued = keys.issue(workspace_id=a_workspace().pk, name="laptop")
    theirs = keys.issue(workspace_id=a_workspace("theirs").pk, name="theirs")

    page = admin.post(f"{HERE}keys/{issued.record.api_key_id}/revocation/", follow=True).content.decode()

    assert "was revoked" in page
    with pytest.raises(Unauthenticated):
        keys.caller_of(issued.key)
    assert admin.post(f"{HERE}keys/{theirs.record.api_key_id}/revocation/").status_code == 404
    assert keys.caller_of(theirs.key)
    assert acts()[0] == ("user a-admin", "revoke_key", f"key {issued.record.api_key_id}")


def test_a_key_that_cannot_be_is_refused_beside_the_form(admin):
    for name, what, days in (("", "read", ""), ("x", "all", ""), ("x", "read", "10000000")):
        answer = admin.post(f"{HERE}keys/new/", {"name": name, "scope": what, "days": days})
        assert answer.status_code == 400 and 'role="alert"' in answer.content.decode()
    assert keys.list_keys(scope()) == []


def test_a_new_member_is_let_in_with_a_password_shown_once(admin):
    page = admin.post(f"{HERE}members/new/", {"username": HOSTILE_NAME, "role": "operator"}).content.decode()
    password = html.unescape(re.findall(r'<code id="new-password">([^<]+)</code>', page)[0])

    listed = page_of(admin, f"{HERE}members/")

    assert authenticate(RequestFactory().post("/login/"), username=HOSTILE_NAME, password=password)
    assert password not in listed
    assert HOSTILE_NAME not in page + listed and "&lt;img/src" in listed
    assert acts()[0] == ("user a-admin", "set_role", HOSTILE_NAME)


def test_somebody_of_another_workspace_is_let_in_by_name(admin):
    users.add(Scope(a_workspace("theirs").pk), username="bob", role=Role.READER)

    taken = admin.post(f"{HERE}members/new/", {"username": "bob", "role": "reader"})
    let_in = admin.post(f"{HERE}members/new/", {"username": "bob", "role": "reader", "known": "yes"}, follow=True)

    assert taken.status_code == 409 and "There is already a user" in taken.content.decode()
    assert "bob is now reader." in let_in.content.decode()


def test_roles_are_changed_and_people_put_out(admin):
    users.add(scope(), username="bob", role=Role.READER)

    admin.post(f"{HERE}members/role/", {"username": "bob", "role": "operator"})
    changed = {member.username: member.role for member in users.list_members(scope())}
    admin.post(f"{HERE}members/removal/", {"username": "bob"})

    assert changed["bob"] is Role.OPERATOR
    assert [member.username for member in users.list_members(scope())] == ["a-admin"]
    assert [act[:2] for act in acts()[:2]] == [("user a-admin", "remove_member"), ("user a-admin", "set_role")]


def test_what_cannot_be_done_to_members_is_told(admin):
    users.add(Scope(a_workspace("theirs").pk), username="outsider", role=Role.READER)

    for what, username, role, status in (
        ("new", "a b", "reader", 400),
        ("new", "bob", "king", 400),
        ("role", "nobody", "reader", 404),
        ("role", "a-admin", "king", 400),
        ("role", "outsider", "admin", 404),
        ("removal", "nobody", "", 404),
    ):
        answer = admin.post(f"{HERE}members/{what}/", {"username": username, "role": role})
        assert answer.status_code == status and 'role="alert"' in answer.content.decode()
    assert [member.username for member in users.list_members(scope())] == ["a-admin"]


def test_the_only_admin_stays_and_one_of_two_may_leave(admin):
    alone = [
        admin.post(f"{HERE}members/role/", {"username": "a-admin", "role": "reader"}),
        admin.post(f"{HERE}members/removal/", {"username": "a-admin"}),
    ]
    users.add(scope(), username="bob", role=Role.ADMIN)
    left = admin.post(f"{HERE}members/removal/", {"username": "a-admin"})

    assert [answer.status_code for answer in alone] == [409, 409]
    assert "You are the only admin" in alone[0].content.decode()
    assert left.status_code == 302 and left["Location"] == "/"
    assert [member.username for member in users.list_members(scope())] == ["bob"]


def test_pages_of_admins_are_offered_to_nobody_else(reader, operator, admin):
    pages = {f"{HERE}{path}/" for path in ("keys", "members", "settings", "audit")}

    assert [pages & {*shown_links(page_of(each, HERE))} for each in (reader, operator, admin)] == [set(), set(), pages]


def test_workspaces_are_shown_to_those_in_them_and_made_by_superusers(reader, superuser):
    a_workspace(HOSTILE)
    users.add(Scope(a_workspace("<img src=x onerror=alert(1)>").pk), username="bob", role=Role.READER)

    seen = reader.get(f"{HERE}workspaces/").content.decode()
    made = superuser.post(f"{HERE}workspaces/new/", {"name": "research"}, follow=True).content.decode()
    again = superuser.post(f"{HERE}workspaces/new/", {"name": "research"})

    assert "<img src=x" not in made and "&lt;img src=x" in made and HOSTILE not in made
    assert "Create a workspace" in made and "Create a workspace" not in seen
    assert reader.post(f"{HERE}workspaces/new/", {"name": "mine"}).status_code == 403
    assert "/w/research/" in shown_links(made) and Workspace.objects.filter(name="research").exists()
    assert again.status_code == 409 and "There is already a workspace" in again.content.decode()
    [act] = AuditLog(Scope(Workspace.objects.get(name="research").pk)).list_acts()
    assert (act.actor, act.act, act.target) == ("user sue", "create_workspace", "research")


def test_a_workspace_has_a_name_that_an_address_can_hold(superuser):
    for name in ("", "a/b", "..", "\x00", "x" * 1001):
        answer = superuser.post(f"{HERE}workspaces/new/", {"name": name})
        assert answer.status_code == 400 and 'role="alert"' in answer.content.decode()
    assert list(Workspace.objects.values_list("name", flat=True)) == ["default"]
