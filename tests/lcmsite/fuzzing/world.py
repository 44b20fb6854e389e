"""What schemathesis finds on the site: a workspace with everything in it that can be asked about, and a neighbour's."""

from __future__ import annotations

from compaction.hosts.host_service import HostCompaction
from compaction.plans.plan_store import CompactionPlans
from conversations.models import Workspace
from conversations.scope import Scope
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from tests.factories import a_conversation, a_store, a_workspace
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.harbour import a_harbour


def two_workspaces() -> tuple[str, str]:
    """The keys of two workspaces, each with a conversation of every sort of thing."""
    ours, theirs = a_workspace(), a_workspace("theirs")
    for workspace in (ours, theirs):
        _fill(workspace)
    return an_api_key(ours, "admin"), an_api_key(theirs, "admin")


def _fill(workspace: Workspace) -> None:
    scope = Scope(workspace.pk)
    # No lone surrogate among the texts: schemathesis keeps what answers say, and cannot keep one.
    harbour = a_harbour(workspace, result="seven boats \x00")
    conversation_id = harbour["conversation_id"]
    HostCompaction.from_settings(scope).record_boundary(conversation_id=conversation_id, host_reference="one")
    for budget in (1000, 2000):
        ContextAssembler.from_settings(scope).assemble(
            conversation_id=conversation_id, budget=budget, keep_receipt=True
        )
    Delegation.from_settings(scope).expand_query(question="Boats?", ids=[harbour["summary_id"]])
    # Enough that is not summarized for a plan, for which much has to be found, too.
    a_store(workspace).open_conversation(session_id="empty")
    ports = a_conversation(
        *(f"We set port {5000 + number} for service-{number}. " * 90 for number in range(40)),
        session_id="ports",
        workspace=workspace,
    ).conversation_id
    CompactionPlans.from_settings(scope).plan(conversation_id=ports)
