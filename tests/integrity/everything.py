"""A small site with a row in every table that records something, all of it made by the real services."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection
from django.test import override_settings
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.hosts.host_service import HostCompaction
from compaction.models import ModelEndpoint
from compaction.plans.plan_store import CompactionPlans
from conversations.files.large_files import LargeFileService
from conversations.files.uploads import UploadService
from conversations.scope import Scope
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from lcmsite.access import keys, users
from lcmsite.types import KeyScope
from lcmsite.types import Role as MemberRole
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from retrieval.delegation.grants import Grants
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.map_operator import MapOperator
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
from tests.histories import SIZES, arcs_and_an_epoch
from tests.integrity.breaking import a_compacted_conversation, breaking
from tests.integrity.erasing import a_secret_conversation, erased
from tests.integrity.repairing import ADMIN, a_plan, applied
from tests.maps import a_map_run, completed

LOG = "".join(f"2026-01-01T00:00:{n % 60:02d}Z INFO line {n} of the log\n" for n in range(3000))
WORDS = "There was some talk about the harbour and its boats. " * 12


def make_everything() -> None:
    """Fill the database; a check finds nothing in it."""
    workspace = a_workspace()
    scope = Scope(workspace.pk, actor="key 7")
    a_workspace("another")
    _people_and_keys(workspace.pk, scope)
    compacted = a_compacted_conversation().id
    said = _a_conversation_with_everything_said()
    _use(said, scope)
    _map(said, scope)
    _history()
    for secret, first, last in ((a_secret_conversation(), 20, 22), (a_secret_conversation(compacted=False), 5, 21)):
        erased(Erasures.from_settings(scope), secret, from_seq=first, to_seq=last)
        CompactionEngine.from_settings().compact(conversation_id=secret)
    cold = a_conversation(*(f"{WORDS} {n}" for n in range(6)), metadata={"cold": True}).conversation_id
    say(cold, a_tool_call("c1", path="a.py"), NewMessage(Role.USER, "NUL \x00", metadata={"b": 1, "a": 2.50}))
    Retention.from_settings(scope).archive(conversation_id=cold)
    _repair(compacted, said)
    ModelEndpoint.objects.create(name="chat", calls=3, tokens_in=100)
    IntegrityChecker.from_settings(scope).request(conversation_id=said)
    connection.check_constraints()


def _people_and_keys(workspace_id: int, scope: Scope) -> None:
    for name, role in (("ada", MemberRole.ADMIN), ("ben", MemberRole.READER)):
        User.objects.create(username=name)
        users.set_role(scope, username=name, role=role)
    for name in ("agent", "reader"):
        keys.issue(
            workspace_id=workspace_id,
            name=name,
            scopes=[KeyScope.READ],
            expires_at=timezone.now() + timedelta(days=3),
            by=scope,
        )


def _a_conversation_with_everything_said() -> int:
    """Long enough to be compacted, with every kind of part and value."""
    conversation_id = a_conversation(
        *(f"{WORDS} {n}" for n in range(24)),
        title="Harbour",
        metadata={"project": "boats"},
        overrides={"fresh_tail_count": 4},
    ).conversation_id
    part = NewPart(
        PartType.TOOL, tool_call_id="c9", tool_name="look_up", tool_input={"b": [1, 2.50], "a": "é"},
        tool_output="found \x00", tool_title="Look up", metadata={"z": 1, "a": 2}, step_reason="end",
        patch_files=("a.py", "b.py"), is_ignored=False,
    )  # fmt: skip
    say(
        conversation_id,
        NewMessage(Role.USER, "NUL \x00 and a lone \ud800", author="ada", idempotency_key="k1"),
        NewMessage(Role.ASSISTANT, parts=(part,), metadata={"b": 1, "a": {"y": 1, "x": 2.50}}),
        a_tool_result("c9", LOG),
        NewMessage(Role.USER, f"Look: <file name='b.log'>{LOG}</file> Well?", idempotency_key="k2"),
        *(NewMessage(Role.USER, f"{WORDS} {n}", metadata={"n": n}) for n in range(24, 50)),
    )
    files = LargeFileService.from_settings()
    for n in range(2):
        files.store(conversation_id=conversation_id, content=b"a,b\n1,2\n" * (50 + n), file_name=f"table{n}.csv")
    return conversation_id


def _use(conversation_id: int, scope: Scope) -> None:
    """Compact it, plan, cut, assemble, ask and upload, so that every service leaves its rows."""
    CompactionPlans.from_settings().plan(conversation_id=conversation_id)
    host = HostCompaction.from_settings()
    host.record_boundary(conversation_id=conversation_id, host_reference="first", last_seq=3, metadata={"by": "host"})
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    host.flush_in_background(conversation_id=conversation_id, host_reference="second")
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    for query in ("Where are the boats?", "Who is ada?"):
        ContextAssembler.from_settings().assemble(conversation_id=conversation_id, query=query, keep_receipt=True)
        Delegation.from_settings(scope).expand_query(
            question=query, query="harbour boats", conversation_id=conversation_id
        )
    uploads = UploadService.from_settings()
    upload = uploads.begin(conversation_id=conversation_id, byte_size=8, file_name="new.csv")
    uploads.put_chunk(upload_id=upload.upload_id, offset=0, content=b"a,b\n1,2\n")


def _map(conversation_id: int, scope: Scope) -> None:
    """A run that is completed, one that an erasure has cancelled, and one of agents with an item in every state."""
    completed(a_map_run(conversation_id=conversation_id))
    gone = a_map_run(prompt="Label the herring of {{item}}.")
    erased(Erasures.from_settings(scope), gone.conversation_id, file_ids=[gone.input_file_id])
    grant = Grants.from_settings(scope).issue(
        workspace_id=scope.workspace_id, question="Which?", item_ids=[], depth=1, token_cap=1000, seconds=60
    )
    run = a_map_run(
        conversation_id=conversation_id, kind="agentic", prompt="Read {{item}}.", items=4, grant_id=grant.grant_id,
        delegated_scope="reading", kept_work="writing", max_attempts=1, budget_tokens=1000, idempotency_key="today",
    )  # fmt: skip
    claims = AgenticClaims(scope)
    first, second, _ = claims.claim(run_id=run.pk, worker="ada", count=3).items
    claims.complete(item_id=first.item_id, fence=first.fence, output={"label": "a boat"})
    claims.complete(item_id=second.item_id, fence=second.fence, error="It is too dark.")
    MapOperator(scope).pause(run_id=run.pk)


def _history() -> None:
    """An epoch of two arcs, one of them renewed as a session went on, and a session that is in no arc."""
    with override_settings(LCM={**settings.LCM, **SIZES}):
        arcs_and_an_epoch()


def _repair(*conversation_ids: int) -> None:
    """Findings, plans with steps that were applied, and quarantines, one of them released."""
    for conversation_id in conversation_ids:
        breaking("UPDATE conversations SET total_tokens = total_tokens + 1 WHERE conversation_id = %s", conversation_id)
        assert applied(a_plan()).outcome["after"] == {}
        *_, first, last = a_store().list_messages(conversation_id=conversation_id)
        quarantines = Quarantines(ADMIN)
        quarantines.quarantine(id=last.id, reason="It may be damaged.")
        held = quarantines.quarantine(id=first.id, reason="It was damaged.")
        quarantines.release(quarantine_id=held.quarantine_id)
