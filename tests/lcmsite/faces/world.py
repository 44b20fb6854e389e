"""What there is to ask about through every face: one conversation with something of everything in it."""

from __future__ import annotations

from typing import Any

from django.db.models import F

from compaction.engine import CompactionEngine
from compaction.history.session_history import SessionHistory
from compaction.hosts.host_service import HostCompaction
from compaction.plans.plan_store import CompactionPlans
from conversations.files.uploads import UploadService
from conversations.models import Conversation, Message
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.map_operator import MapOperator
from retrieval.map.types import MapKind
from tests.factories import a_workspace
from tests.lcmsite.harbour import a_harbour
from tests.pasts import a_project, a_session, a_session_summary

World = dict[str, Any]


def a_world() -> World:
    """Made by the real services; by the names of params."""
    scope = Scope(a_workspace().pk)
    project = a_project()
    before = a_session(project, "Which boats are there?", "Nine ferries.", session_id="the day before")
    harbour = a_harbour()
    Conversation.objects.filter(pk=harbour["conversation_id"]).update(project=project)
    conversation_id, summary_id = harbour["conversation_id"], harbour["summary_id"]
    preview = Erasures.from_settings(scope).preview_erasure(conversation_id=conversation_id, from_seq=3, to_seq=5)
    return {
        **harbour,
        "message_id": Message.objects.order_by("seq").last().pk,
        "run_id": CompactionEngine.from_settings(scope).list_runs(conversation_id=conversation_id)[0].run_id,
        "job_id": CompactionEngine.from_settings(scope).request(conversation_id=conversation_id).job_id,
        "plan_id": CompactionPlans.from_settings(scope).plan(conversation_id=conversation_id).plan_id,
        "receipt_id": _receipt(scope, conversation_id, 2000),
        "other": _receipt(scope, conversation_id, 1000),
        "host_reference": HostCompaction.from_settings(scope)
        .record_boundary(conversation_id=conversation_id, host_reference="compaction 1 · é")
        .host_reference,
        "grant_id": Delegation.from_settings(scope).expand_query(question="Boats?", ids=[summary_id]).grant.grant_id,
        "name": "chat",
        # Where the head is already, and what a fork may share: the message behind it is withheld.
        "head_seq": Conversation.objects.get(pk=conversation_id).head_seq,
        "at_seq": 1,
        "entries": [{"type": "user", "uuid": "a1", "text": "boats"}],
        "fork_session_id": "another way",
        "erasure_id": preview.erasure_id,
        "confirmation": preview.confirmation,
        # Of writes: such as change nothing, so that each face finds what the last one left.
        "overrides": {"fresh_tail_count": 5},
        "content": "YSxiCg==",
        **_trust(scope, conversation_id),
        "history_job_id": SessionHistory.from_settings(scope).request_session(conversation_id=conversation_id).job_id,
        "session_summary_id": a_session_summary(before.conversation_id, "Harbour boats: nine ferries.").pk,
        **_a_map(scope, conversation_id),
        "upload_id": _upload(scope, conversation_id),
        "byte_size": 4,
        "offset": 0,
    }


def _trust(scope: Scope, conversation_id: int) -> World:
    """A plan that was applied, one that is approved, a scan that waits, and a message that is withheld."""
    message_id = Message.objects.get(conversation_id=conversation_id, seq=2).pk
    held = Quarantines.from_settings(scope).quarantine(id=f"msg_{message_id}", reason="a test")
    checker, repairs = IntegrityChecker.from_settings(scope), Repairs.from_settings(scope)
    conversation = Conversation.objects.filter(pk=conversation_id)
    plans = []
    for _ in range(2):
        conversation.update(total_tokens=F("total_tokens") + 1)
        report_id = checker.run(conversation_id=conversation_id).report_id
        plans.append(checker.plan_repairs(report_id=report_id).repair_id)
        repairs.approve_steps(repair_id=plans[-1], ordinals=[1])
        if len(plans) == 1:
            repairs.apply_plan(repair_id=plans[0])
    conversation.update(total_tokens=F("total_tokens") - 1)
    return {
        "scan_id": checker.request(conversation_id=conversation_id).scan_id,
        "report_id": report_id,
        "applied": plans[0],
        "repair_id": plans[1],
        "ordinals": [1],
        "quarantine_id": held.quarantine_id,
        "quarantined_id": held.target,
        "reason": "a test",
    }


def _a_map(scope: Scope, conversation_id: int) -> World:
    """An agentic run of three items: one has failed, one is claimed, one waits."""
    run = MapOperator.from_settings(scope).submit(
        kind=MapKind.AGENTIC,
        prompt="Label {{item}}.",
        output_schema={},
        items=[1, 2, 3],
        conversation_id=conversation_id,
        retain="the final word",
        max_attempts=1,
    )
    claims = AgenticClaims.from_settings(scope)
    first, second = claims.claim(run_id=run.run_id, worker="a test", count=2, lease_s=86_400).items
    claims.complete(item_id=first.item_id, fence=first.fence, error="I cannot.")
    return {
        "map_run_id": run.run_id,
        "item_id": second.item_id,
        "fence": second.fence,
        "worker": "a test",
        "kind": "agentic",
        "retain": "the final word",
        "prompt": "Label {{item}}.",
        "output_schema": {},
        "input_file_id": run.input_file_id,
        "output": {"label": "a boat"},
    }


def _upload(scope: Scope, conversation_id: int) -> str:
    uploads = UploadService.from_settings(scope)
    begun = uploads.begin(conversation_id=conversation_id, byte_size=4, file_name="a.csv")
    uploads.put_chunk(upload_id=begun.upload_id, offset=0, content=b"a,b\n")
    return begun.upload_id


def _receipt(scope: Scope, conversation_id: int, budget: int) -> str:
    assembler = ContextAssembler.from_settings(scope)
    return assembler.assemble(conversation_id=conversation_id, budget=budget, keep_receipt=True).receipt_id
