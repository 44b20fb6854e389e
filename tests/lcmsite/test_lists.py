"""Every list is read to its end, page by page, and gives each row once, whatever comes in meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import Model

from compaction.hosts.host_service import HostCompaction
from compaction.models import CompactionBoundary, CompactionPlan
from compaction.plans.plan_store import CompactionPlans
from conversations.errors import NotFound
from conversations.files.uploads import UploadService
from conversations.models import Upload
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.models import IntegrityReport
from integrity.repairs.quarantines import Quarantines
from lcmsite.access.keys import Caller
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.types import KeyScope
from retrieval.assembler import ContextAssembler
from retrieval.delegation.grants import Grants
from retrieval.models import AssemblyReceipt, Grant
from tests.factories import a_conversation, a_store, a_workspace

pytestmark = pytest.mark.django_db

# What says in a request where a list goes on.
GOES_ON = ("before", "after", "page")
ROWS = 5


def scope(workspace: str | None = None) -> Scope:
    return Scope(a_workspace(workspace).pk)


def a_quarantine(conversation_id: int, number: int) -> None:
    message = a_store().list_messages(conversation_id=conversation_id)[number]
    Quarantines.from_settings(scope()).quarantine(id=message.id, reason="why")


def a_grant(conversation_id: int, number: int) -> None:
    Grants.from_settings(scope()).issue(
        workspace_id=a_workspace().pk, question="?", item_ids=(), depth=1, token_cap=4000, seconds=60
    )


def a_receipt(conversation_id: int, number: int) -> None:
    assembler = ContextAssembler.from_settings(scope())
    assembler.assemble(conversation_id=conversation_id, budget=1000 + number, keep_receipt=True)


def a_plan(conversation_id: int, number: int) -> None:
    CompactionPlans.from_settings(scope()).plan(conversation_id=conversation_id)


def a_boundary(conversation_id: int, number: int) -> None:
    hosts = HostCompaction.from_settings(scope())
    hosts.record_boundary(conversation_id=conversation_id, host_reference=f"compaction {number}")


def an_upload(conversation_id: int, number: int) -> None:
    UploadService.from_settings(scope()).begin(conversation_id=conversation_id, byte_size=4)


def a_report(conversation_id: int, number: int) -> None:
    IntegrityChecker.from_settings(scope()).run(conversation_id=conversation_id)


# A list's tool, what says where it goes on, the field of a row that is said there, one row more; and the table of rows
# that have such a name, in which all are made to be of one moment.
LISTS: list[tuple[str, str, str, Callable[[int, int], None], type[Model] | None, str]] = [
    ("lcm_quarantines", "before_id", "quarantine_id", a_quarantine, None, ""),
    ("lcm_grants", "before_grant", "grant_id", a_grant, Grant, "created_at"),
    ("lcm_receipts", "before_receipt", "receipt_id", a_receipt, AssemblyReceipt, "created_at"),
    ("lcm_plans", "before_plan", "plan_id", a_plan, CompactionPlan, "created_at"),
    ("lcm_boundaries", "before_reference", "host_reference", a_boundary, CompactionBoundary, "recorded_at"),
    ("lcm_uploads", "before_upload", "upload_id", an_upload, Upload, "created_at"),
    ("lcm_reports", "before_report", "report_id", a_report, IntegrityReport, "started_at"),
]


def asked(tool: str, workspace: str | None = None, **given: Any) -> list[Any]:
    operation = next(each for each in CATALOGUE if each.tool == tool)
    wanted = {name: value for name, value in given.items() if name in operation.params.model_fields}
    caller = Caller(scope=scope(workspace), key_scopes=frozenset({KeyScope.READ}))
    return list(operation.perform(caller, wanted).result)


def test_every_list_that_is_cut_off_can_be_read_on():
    lists = [each for each in CATALOGUE if each.method.startswith("list_")]
    fields = {each.tool: each.params.model_fields for each in lists}

    cut_off = {tool for tool, names in fields.items() if "limit" in names}
    read_on = {tool for tool, names in fields.items() if any(name.startswith(GOES_ON) for name in names)}

    assert len(cut_off) > 10
    assert cut_off == read_on


@pytest.mark.parametrize(("tool", "goes_on", "key", "another", "table", "field"), LISTS, ids=[row[0] for row in LISTS])
def test_pages_give_each_row_once_whatever_comes_in_meanwhile(tool, goes_on, key, another, table, field):
    conversation_id = a_conversation(*(f"message {n}" for n in range(12))).conversation_id
    for number in range(ROWS):
        another(conversation_id, number)
    if table is not None:
        table.objects.update(**{field: "2026-01-31T12:00:00Z"})
    everything = [getattr(row, key) for row in asked(tool, conversation_id=conversation_id, limit=100)]

    given, here = [], {}
    while page := asked(tool, conversation_id=conversation_id, limit=2, **here):
        given += [getattr(row, key) for row in page]
        here = {goes_on: given[-1]}
        another(conversation_id, ROWS + len(given))

    assert len(everything) == ROWS
    assert given == everything


@pytest.mark.parametrize(("tool", "goes_on", "key", "another", "table", "field"), LISTS, ids=[row[0] for row in LISTS])
def test_somebody_elses_row_leads_nowhere(tool, goes_on, key, another, table, field):
    conversation_id = a_conversation("one", "two").conversation_id
    theirs = a_conversation("theirs", workspace=a_workspace("theirs")).conversation_id
    another(conversation_id, 0)
    [row] = asked(tool, conversation_id=conversation_id)

    if table is None:
        # A number that is no more than a place: behind it, there is what there is.
        assert asked(tool, "theirs", conversation_id=theirs, **{goes_on: getattr(row, key)}) == []
    else:
        with pytest.raises(NotFound):
            asked(tool, "theirs", conversation_id=theirs, **{goes_on: getattr(row, key)})
