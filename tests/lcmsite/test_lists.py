"""Every list is read to its end, page by page, and gives each row once, whatever comes in meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Model

from compaction.hosts.host_service import HostCompaction
from compaction.models import CompactionBoundary, CompactionPlan
from compaction.plans.plan_store import CompactionPlans
from conversations.errors import Invalid
from conversations.files.uploads import UploadService
from conversations.models import Quarantine, Upload
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.models import IntegrityReport
from lcmsite.access.keys import Caller
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.types import KeyScope
from retrieval.assembler import ContextAssembler
from retrieval.delegation.grants import Grants
from retrieval.models import AssemblyReceipt, Grant
from tests.factories import a_conversation, a_workspace

pytestmark = pytest.mark.django_db

ROWS = 5


def scope(workspace: str | None = None) -> Scope:
    return Scope(a_workspace(workspace).pk)


def a_quarantine(conversation_id: int, number: int) -> str:
    target = f"part_{number}_{number}"
    Quarantine.objects.create(conversation_id=conversation_id, target=target, reason="why")
    return target


def a_grant(conversation_id: int, number: int) -> str:
    grants = Grants.from_settings(scope())
    grant = grants.issue(workspace_id=a_workspace().pk, question="?", item_ids=(), depth=1, token_cap=4000, seconds=60)
    return grant.grant_id


def a_receipt(conversation_id: int, number: int) -> str:
    assembler = ContextAssembler.from_settings(scope())
    kept = assembler.assemble(conversation_id=conversation_id, budget=1000 + number, keep_receipt=True)
    return str(kept.receipt_id)


def a_plan(conversation_id: int, number: int) -> str:
    return CompactionPlans.from_settings(scope()).plan(conversation_id=conversation_id).plan_id


def a_boundary(conversation_id: int, number: int) -> str:
    reference = f"compaction {number}"
    hosts = HostCompaction.from_settings(scope())
    return hosts.record_boundary(conversation_id=conversation_id, host_reference=reference).host_reference


def an_upload(conversation_id: int, number: int) -> str:
    return UploadService.from_settings(scope()).begin(conversation_id=conversation_id, byte_size=4).upload_id


def a_report(conversation_id: int, number: int) -> str:
    return IntegrityChecker.from_settings(scope()).run(conversation_id=conversation_id).report_id


# A list's tool, what names a row, one row more; and the table of rows not named by numbers, which are of one moment.
LISTS: list[tuple[str, str, Callable[[int, int], str], type[Model] | None, str]] = [
    ("lcm_quarantines", "quarantine_id", a_quarantine, None, ""),
    ("lcm_grants", "grant_id", a_grant, Grant, "created_at"),
    ("lcm_receipts", "receipt_id", a_receipt, AssemblyReceipt, "created_at"),
    ("lcm_plans", "plan_id", a_plan, CompactionPlan, "created_at"),
    ("lcm_boundaries", "host_reference", a_boundary, CompactionBoundary, "recorded_at"),
    ("lcm_uploads", "upload_id", an_upload, Upload, "created_at"),
    ("lcm_reports", "report_id", a_report, IntegrityReport, "started_at"),
]
NAMES = ("tool", "key", "another", "table", "field")
IDS = [row[0] for row in LISTS]


def page_of(tool: str, workspace: str | None = None, **given: Any) -> Any:
    operation = next(each for each in CATALOGUE if each.tool == tool)
    wanted = {name: value for name, value in given.items() if name in operation.params.model_fields}
    caller = Caller(scope=scope(workspace), key_scopes=frozenset({KeyScope.READ}))
    return operation.perform(caller, wanted).result


def test_every_list_goes_on_by_a_cursor():
    with_limit = {each.tool for each in CATALOGUE if "limit" in each.params.model_fields}
    with_cursor = {each.tool for each in CATALOGUE if "cursor" in each.params.model_fields}

    # What cannot be had without a summary's impact is one answer, not a list.
    assert with_limit - with_cursor == {"lcm_impact"}
    assert len(with_cursor) > 15


@pytest.mark.parametrize(NAMES, LISTS, ids=IDS)
def test_pages_give_each_row_once_whatever_comes_in_meanwhile(tool, key, another, table, field):
    conversation_id = a_conversation(*(f"message {n}" for n in range(12))).conversation_id
    for number in range(ROWS):
        another(conversation_id, number)
    if table is not None:
        table.objects.update(**{field: "2026-01-31T12:00:00Z"})
    everything = [getattr(row, key) for row in page_of(tool, conversation_id=conversation_id, limit=100)]

    page = page_of(tool, conversation_id=conversation_id, limit=2)
    given = [getattr(row, key) for row in page]
    while page.next_cursor is not None:
        another(conversation_id, ROWS + len(given))
        page = page_of(tool, conversation_id=conversation_id, limit=2, cursor=page.next_cursor)
        given += [getattr(row, key) for row in page]

    assert len(everything) == ROWS
    assert given == everything


@pytest.mark.parametrize(NAMES, LISTS, ids=IDS)
def test_somebody_elses_cursor_leads_nowhere(tool, key, another, table, field):
    conversation_id = a_conversation("one", "two").conversation_id
    theirs = a_conversation("theirs", workspace=a_workspace("theirs")).conversation_id
    for number in range(2):
        another(conversation_id, number)
    cursor = page_of(tool, conversation_id=conversation_id, limit=1).next_cursor

    with pytest.raises(Invalid) as refusal:
        page_of(tool, "theirs", conversation_id=theirs, cursor=cursor)

    assert refusal.value.code == "bad_cursor"


def test_a_cursor_goes_on_only_in_the_request_it_came_from():
    one, other = (a_conversation("a", "b", "c").conversation_id for _ in range(2))
    cursor = page_of("lcm_messages", conversation_id=one, limit=1).next_cursor

    for changed in ({"conversation_id": other}, {"conversation_id": one, "after_seq": 2}):
        with pytest.raises(Invalid) as refusal:
            page_of("lcm_messages", **changed, cursor=cursor)
        assert refusal.value.code == "bad_cursor"
    assert [row.seq for row in page_of("lcm_messages", conversation_id=one, limit=5, cursor=cursor)] == [2, 3]


@pytest.mark.parametrize(
    ("tool", "first", "changed"),
    [
        ("lcm_list", {"newest_first": True}, {}),
        ("lcm_list", {"newest_first": True}, {"newest_first": True, "session_prefix": "b"}),
        # Its cursor is the number of a page, which counts pages of one size.
        ("lcm_browse", {"limit": 1}, {"limit": 2}),
    ],
)
def test_order_and_filters_stay_the_same_from_page_to_page(tool, first, changed):
    for session in ("a", "b", "c"):
        a_conversation(session_id=session)
    cursor = page_of(tool, **{"limit": 1, **first}).next_cursor

    with pytest.raises(Invalid) as refusal:
        page_of(tool, **changed, cursor=cursor)

    assert refusal.value.code == "bad_cursor"


@pytest.mark.parametrize("cursor", ["nonsense", "e30:x", "1", "MQ:aaaa"])
def test_what_is_no_cursor_of_the_list_is_refused(cursor):
    with pytest.raises(Invalid) as refusal:
        page_of("lcm_runs", cursor=cursor)

    assert refusal.value.code == "bad_cursor"


def test_a_cursor_of_another_list_is_refused():
    conversation_id = a_conversation("one", "two").conversation_id
    cursor = page_of("lcm_messages", conversation_id=conversation_id, limit=1).next_cursor

    with pytest.raises(Invalid, match="not a cursor of this list"):
        page_of("lcm_items", conversation_id=conversation_id, cursor=cursor)
