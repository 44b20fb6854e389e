"""A workspace keeps an admin, whoever acts at the same moment."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest
from django.db import transaction

from conversations.errors import Conflict
from conversations.scope import Scope
from lcmsite.access import users
from lcmsite.connections import closing_connections
from lcmsite.types import Role
from tests.factories import a_workspace


@pytest.mark.parametrize("leave", [users.remove, partial(users.set_role, role=Role.READER)])
def test_of_two_admins_who_put_each_other_out_at_once_one_stays(committed_db, leave):
    by_operator = Scope(a_workspace().pk, actor="operator")
    for name in ("ann", "bob"):
        users.add(by_operator, username=name, role=Role.ADMIN)
    ann, bob = (Scope(by_operator.workspace_id, actor=f"user {name}") for name in ("ann", "bob"))

    with ThreadPoolExecutor(1) as threads:
        with transaction.atomic():
            leave(ann, username="bob")
            second = threads.submit(closing_connections, lambda: leave(bob, username="ann"))
            assert not wait([second], timeout=0.3).done
        with pytest.raises(Conflict, match="the only admin") as refusal:
            second.result(timeout=30)
    assert refusal.value.code == "last_admin"

    roles = {member.username: member.role for member in users.list_members(by_operator)}
    assert roles["ann"] is Role.ADMIN and roles.get("bob") is not Role.ADMIN
