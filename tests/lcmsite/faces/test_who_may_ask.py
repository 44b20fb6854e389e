"""Who may ask what of the API: every operation and every other path, for everybody who could come, no cell left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from conversations.scope import Scope
from lcmsite.access import keys
from lcmsite.catalogue.operation import Operation, placeholders
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.models import ApiKey
from tests.factories import a_workspace
from tests.lcmsite.callers import Api, an_api_key
from tests.lcmsite.faces.questions import questions
from tests.lcmsite.paths import paths_below

READ, WRITE, ADMIN, OPERATOR = "read", "write", "admin", "operator"
LADDER = (READ, WRITE, ADMIN)

# What a key must hold for each operation. Who adds one says here, a second time, who may ask it.
NEEDS = {
    READ: """
        schema list find show messages message items evaluate runs job run activity jobs plans show_plan boundaries
        coverage file read_file read_lines files uploads show_upload grep describe describe_range impact expand
        expand_range expand_query grants grant browse lineage lineage_window assemble recall receipts receipt
        compare_receipts check integrity scan reports report repair_plans repairs quarantines retention storage
        branches journal journal_subpaths about projects timeline expand_session session_ago grep_sessions history_job
        history_jobs map_runs map_status map_items map_output map_record
    """,
    WRITE: """
        open change configure append rewind fork turn append_journal compact redo backfill summarize_session
        redo_session plan execute_plan flush boundary store_file begin_upload put_chunk finish_upload abort_upload
        revoke_grant plan_repairs map_submit map_pause map_resume map_cancel map_retry_failed map_claim map_heartbeat
        map_complete map_release
    """,
    ADMIN: """
        approve_repairs apply_repairs undo_repairs quarantine release read_quarantined archive thaw
        set_retention preview_erasure erase audit rebuild
    """,
    # No key at all: what belongs to the whole site.
    OPERATOR: "models reset_model",
}
ROWS = {f"lcm_{name}": scope for scope, names in NEEDS.items() for name in names.split()}

# What REST alone has: streams.
STREAMS = {"download": ("files/{file_id}/download/", READ), "ledger": ("conversations/{conversation_id}/ledger/", READ)}
# Without a key; the last two are answers to paths that there are not.
OPEN_PATHS = {"v1/schema/", "v1/docs/", "<path:rest>", ""}


def test_every_operation_has_a_row_and_every_row_an_operation():
    assert {operation.tool for operation in CATALOGUE} == set(ROWS)
    assert len(ROWS) == sum(len(names.split()) for names in NEEDS.values())


def test_every_path_of_the_api_is_an_operation_a_stream_or_open():
    of_operations = {path for operation in CATALOGUE for path in operation.paths}
    of_streams = {path for path, _ in STREAMS.values()}

    every = {path.removeprefix("api/") for path, _ in paths_below() if path.startswith("api/")}
    paths = {re.sub(r"<(?:str|path):(\w+)>", r"{\1}", path) if path not in OPEN_PATHS else path for path in every}

    assert {path.removeprefix("v1/") for path in paths - OPEN_PATHS} == of_operations | of_streams
    assert paths >= OPEN_PATHS


@pytest.fixture(scope="module")
def nobody_at_all(harbour_world: Any) -> dict[str, str]:
    """What lets nobody in."""
    revoked, expired = an_api_key(None, ADMIN), an_api_key(None, ADMIN)
    newest = ApiKey.objects.order_by("-api_key_id")
    keys.revoke(Scope(), key=str(newest[1].pk))
    ApiKey.objects.filter(pk=newest[0].pk).update(expires_at=timezone.now() - timedelta(days=1))
    return {"no key": "", "a made-up key": "lcm_" + "x" * 43, "a revoked key": revoked, "an expired key": expired}


@pytest.fixture(scope="module")
def strangers(harbour_world: Any) -> dict[str, str]:
    elsewhere = a_workspace("elsewhere")
    return {scope: an_api_key(elsewhere, scope) for scope in LADDER}


@pytest.fixture(scope="module")
def our_own(harbour_world: Any) -> dict[str, str]:
    return {scope: an_api_key(None, scope) for scope in LADDER}


def suffices(held: str, needed: str) -> bool:
    return needed != OPERATOR and LADDER.index(held) >= LADDER.index(needed)


@pytest.mark.sampled(15)
@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.tool)
def test_who_may_perform_it(world, nobody_at_all, strangers, our_own, operation):
    needed = ROWS[operation.tool]
    for given in _one_of_each_path(operation, world):
        for who, key in nobody_at_all.items():
            assert _told(key, operation, given) == (401, True), who
        for scope, key in strangers.items():
            # A foreign workspace's things are not there for them; what is of no one thing, they ask of their own.
            owned = any(name in given for name in placeholders(operation.path))
            reply = Api(key).perform(operation, given)
            if not suffices(scope, needed):
                assert reply.status == 403, scope
            elif owned:
                assert (reply.status, reply.body["code"]) == (404, "not_found"), scope
            else:
                assert reply.status not in (401, 403), scope
                assert "and its boats" not in str(reply.body), "not a word that was said here"
        for scope, key in our_own.items():
            with transaction.atomic():
                reply = Api(key).perform(operation, given)
                # So that whoever asks next finds everything as it was.
                transaction.set_rollback(True)
            if not suffices(scope, needed):
                assert (reply.status, reply.body["code"]) == (403, "forbidden"), scope
            elif scope == needed:
                assert reply.status == operation.status, (scope, reply.body)
            else:
                # What the first one did to files is not undone.
                assert reply.status not in (401, 403), (scope, reply.body)


def test_a_stranger_finds_lists_and_counts_nothing_of_ours(world, strangers):
    for operation in CATALOGUE:
        for given in _one_of_each_path(operation, world):
            is_owned = any(name in given for name in placeholders(operation.path))
            if is_owned or operation.verb == "GET":
                reply = Api(strangers[ADMIN]).perform(operation, given)
                # The acts that gave the stranger these keys are not ours.
                items = [each for each in reply.body.get("items", ()) if each.get("act") != "issue_key"]
                assert (items, reply.body.get("conversations", 0)) == ([], 0), operation.tool
                assert reply.status in (403, 404) or not is_owned, operation.tool


def _one_of_each_path(operation: Operation, there_is: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The shortest question at each of the operation's paths."""
    asked = set()
    for given in questions(operation, there_is):
        of_one = all(name in given for name in placeholders(operation.path))
        if of_one not in asked:
            asked.add(of_one)
            yield given


def _told(key: str, operation: Operation, given: dict[str, Any]) -> tuple[int, bool]:
    reply = Api(key).perform(operation, given)
    return reply.status, reply.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("name", STREAMS)
def test_who_may_have_it_streamed(world, nobody_at_all, strangers, our_own, name):
    path, needed = STREAMS[name]

    def status(key: str) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return Client().get(f"/api/v1/{path.format(**world)}", headers=headers).status_code

    assert needed == READ
    assert {who: status(key) for who, key in nobody_at_all.items()} == dict.fromkeys(nobody_at_all, 401)
    assert {scope: status(key) for scope, key in strangers.items()} == dict.fromkeys(LADDER, 404)
    assert {scope: status(key) for scope, key in our_own.items()} == dict.fromkeys(LADDER, 200)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["", "v1/nothing/", "v2/"])
def test_of_a_path_that_there_is_not_anybody_is_told_so(path):
    assert Client().get(f"/api/{path}").status_code == 404
