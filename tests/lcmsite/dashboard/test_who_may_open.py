"""Who may open which page: every address of the site, for everybody who could come, no cell left out."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import reverse

from conversations.scope import Scope
from lcmsite.access import users
from lcmsite.types import Role
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.dashboard.visiting import logged_in
from tests.lcmsite.paths import paths_below

READER, OPERATOR, ADMIN = Role.READER, Role.OPERATOR, Role.ADMIN
LADDER = (READER, OPERATOR, ADMIN)

# Who may open each page of a workspace, by its name in `urls`. Who adds one says here, a second time, who may open it.
SHOWN = {
    READER: """
        projects project session-summary rests-on overview pulse shelf runs jobs history-jobs map-runs map-run
        map-progress conversation-runs conversation-jobs plans plan plan-progress conversations transcript more-messages
        message job lineage lineage-window lineage-summary lineage-sources lineage-branch impact search ask about
        boundaries inspector context-text compare-receipts files conversation-files file file-lines file-download grants
        workspaces integrity place scan report repairs repair-plans quarantine retention storage conversation-trust
        conversation-ledger
    """,
    OPERATOR: "import",
    ADMIN: "keys members settings audit repair-history erasures choose-erasure",
}
# And who may send the form that goes to it.
DONE = {
    READER: "keep-receipt begin-scan ask",
    OPERATOR: "compact make-plan execute-plan revoke-grant import plan-repairs backfill steer-map-run redo-session",
    ADMIN: """
        create-key revoke-key add-member set-role remove-member approve-repairs apply-repairs undo-repairs
        withhold release set-retention archive thaw preview-erasure erase
    """,
}
# Of no workspace: for everybody, and for everybody who is logged in.
OPEN = {"nothing_here", "healthz", "readyz", "metrics", "login", "schema", "docs"}
LOGGED_IN = {"home", "password", "logout"}

ROWS: list[tuple[str, str, Role | None]] = [
    ("GET", name, role) for role, names in SHOWN.items() for name in names.split()
]
ROWS += [("POST", name, role) for role, names in DONE.items() for name in names.split()]
# What refuses somebody who is an admin of one workspace only: it belongs to the whole site.
OF_SUPERUSERS = [
    ("POST", "create-workspace", None),
    ("GET", "models", None),
    ("GET", "clock", None),
    ("POST", "reset-model", None),
]
ROWS += OF_SUPERUSERS

# Things that there are not: who may open a page is told so, who may not is told that.
NOWHERE = {"conversation_id": 987654321, "job_id": 1, "scan_id": 1, "api_key_id": 987654321, "quarantine_id": 987654321}


# Every address of the site but the admin's, and those of the API's operations, which have no names.
PATTERNS = {each.name: each for path, each in paths_below() if each.name and not path.startswith("admin/")}


def test_every_address_has_a_row_and_every_row_an_address():
    rows = {name for _, name, _ in ROWS} | OPEN | LOGGED_IN

    assert set(PATTERNS) == rows
    assert len({(verb, name) for verb, name, _ in ROWS}) == len(ROWS)


@pytest.fixture(scope="module")
def browsers(module_rows: None) -> dict[str, Client]:
    """Somebody of each role, an admin of another workspace, a member of none, a superuser, and nobody."""
    ours, theirs = a_workspace(), a_workspace("theirs")
    a_conversation("hello")
    for role in LADDER:
        users.add(Scope(ours.pk), username=role.value, role=role)
    users.add(Scope(theirs.pk), username="stranger", role=ADMIN)
    get_user_model().objects.create_user("nowhere")
    get_user_model().objects.create_superuser("super")
    found = {"nobody": Client()}
    for name in (*(role.value for role in LADDER), "stranger", "nowhere", "super"):
        found[name] = logged_in(name)
    return found


def address_of(name: str) -> str:
    wanted = PATTERNS[name].pattern.converters
    given: dict[str, Any] = {each: NOWHERE.get(each, "nothing") for each in wanted} | {"workspace": "default"}
    return reverse(name, kwargs={each: given[each] for each in wanted})


def rungs(role: Role | None) -> int:
    """How far up the ladder a role is; above it for what belongs to the whole site."""
    return LADDER.index(role) if role in LADDER else len(LADDER)


@pytest.mark.sampled(12)
@pytest.mark.parametrize(("verb", "name", "needed"), ROWS, ids=[f"{verb} {name}" for verb, name, _ in ROWS])
def test_who_may(browsers, verb, name, needed):
    address = address_of(name)

    statuses = {}
    for who, browser in browsers.items():
        answer = browser.generic(verb, address)
        statuses[who] = answer.status_code
        assert "no-store" in answer["Cache-Control"], who
        if who == "nobody":
            assert answer["Location"].startswith("/login/?next="), "it asks who comes"

    assert statuses["nobody"] == 302
    assert statuses["stranger"] == statuses["nowhere"] == 404
    for role in LADDER:
        may = rungs(role) >= rungs(needed)
        assert (statuses[role.value] != 403) == may, (role, statuses)
        assert statuses[role.value] not in (401, 405, 500), (role, statuses)
    assert statuses["super"] not in (401, 403, 405, 500)


def test_some_pages_are_open_and_some_for_whoever_is_logged_in(browsers):
    """Without a workspace; and nobody is logged out by a link."""
    opened = [
        browsers["nobody"].get(reverse(name)).status_code for name in ("healthz", "readyz", "login", "schema", "docs")
    ]
    asked = [browsers["nobody"].get(reverse(name)).status_code for name in ("home", "password")]
    inside = [browsers["reader"].get(reverse(name)).status_code for name in ("home", "password", "logout")]

    assert (opened, asked, inside) == ([200] * 5, [302] * 2, [302, 200, 405])
    assert browsers["reader"].get("/w/default/").status_code == 200
    assert browsers["nobody"].get("/w/default/pulse/")["Location"] == "/login/?next=/w/default/pulse/"


@pytest.mark.thorough
def test_the_admin_is_for_staff_alone(browsers):
    """Every address of it: who is an admin of a workspace, and no more, is asked to log in as somebody else."""
    paths = [re.sub(r"<(path:object_id|id|path:content_type_id)>", "1", f"/{path}") for path, _ in paths_below()]
    addresses = [each for each in paths if re.match(r"/admin/(?!login/|logout/)[^<^]*$", each)]
    assert len(addresses) > 40

    for address in addresses:
        for who in ("nobody", "reader", "operator", "admin", "stranger"):
            answer = browsers[who].get(address)
            assert answer.status_code in (302, 403, 404), (address, who)
            assert answer.status_code != 302 or "login" in answer["Location"], (address, who)
