"""Projects with a past and map runs, in every state that a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from conversations.content.lossless_values import storable
from conversations.scope import Scope
from conversations.types import Level, ParentLink
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.map_operator import MapOperator
from retrieval.map.models import MapRun
from retrieval.map.types import MapKind, MapState, PauseReason
from tests.factories import a_store, a_workspace, say
from tests.maps import a_map_run
from tests.pasts import a_project, a_session, a_session_summary, a_summary_over

# A workspace with nothing in it.
BARE = "bare"
# A project of which nothing is summarized yet.
YOUNG = "a young project"


class FurnishedPast(NamedTuple):
    """What of it can be opened; a superseded session summary has a newer one."""

    epoch_id: str
    superseded_id: str


def furnish_past(scope: Scope, name: str, texts: Sequence[str]) -> FurnishedPast:
    """A project of this name: an epoch over an arc over two sessions, and a session in each other state."""
    project, (first, second, third) = a_project(name), texts
    sessions = [
        a_session_summary(a_session(project, text, title=name).conversation_id, storable(text))
        for text in (first, second)
    ]
    epoch = a_summary_over([a_summary_over(sessions, storable(third))])
    parent = a_session(project, first)
    a_session(project, second, parent_session_id=parent.session_id, parent_link=ParentLink.SUBAGENT)
    degraded = a_session(project, third).conversation_id
    a_session_summary(degraded, level=Level.DETERMINISTIC, is_degraded=True)
    continued = a_session(project, first, second).conversation_id
    superseded = a_session_summary(continued)
    _say(continued, third)
    a_session_summary(continued, supersedes=superseded)
    _say(continued, first)
    withheld, erased = (a_session(project, first, second).conversation_id for _ in range(2))
    for conversation_id in (withheld, erased):
        a_session_summary(conversation_id)
    message = a_store().list_messages(conversation_id=withheld, limit=1)[0]
    Quarantines.from_settings(scope).quarantine(id=message.id, reason=name)
    preview = Erasures.from_settings(scope).preview_erasure(conversation_id=erased, from_seq=1, to_seq=1)
    Erasures.from_settings(scope).erase(erasure_id=preview.erasure_id, confirmation=preview.confirmation)
    a_session(a_project(YOUNG), first)
    a_project("a project without conversations")
    a_workspace(BARE)
    return FurnishedPast(epoch.summary_id, superseded.summary_id)


def furnish_map_runs(scope: Scope, conversation_id: int, text: str, items: Sequence[str]) -> tuple[str, str, str]:
    """An agentic run at work, one that completed and one that is paused, and runs in every other state."""
    operator, claims = MapOperator.from_settings(scope), AgenticClaims.from_settings(scope)

    def offered() -> str:
        return operator.submit(
            kind=MapKind.AGENTIC, prompt=f"{text} {{{{item}}}}", output_schema={}, items=items,
            conversation_id=conversation_id, retain=text, delegated_scope=text, kept_work=text, max_attempts=1,
        ).run_id  # fmt: skip

    at_work, completed, failed, cancelled = (offered() for _ in range(4))
    for run_id, outputs, count in ((at_work, 0, 2), (completed, 1, len(items)), (failed, 0, len(items))):
        claimed = claims.claim(run_id=run_id, worker=text, count=count).items
        answered = claimed[:1] if run_id == at_work else claimed
        for place, item in enumerate(answered):
            answer = {"output": text} if place < outputs else {"error": text}
            claims.complete(item_id=item.item_id, fence=item.fence, **answer)
    operator.cancel(run_id=cancelled)
    model = {"conversation_id": conversation_id, "model": text, "prompt": f"{text} {{{{item}}}}"}
    a_map_run(**model, budget_tokens=100)
    paused = [a_map_run(**model) for why in PauseReason if why]
    for run, why in zip(paused, filter(None, PauseReason), strict=True):
        MapRun.objects.filter(pk=run.pk).update(state=MapState.PAUSED, pause_reason=why)
    return at_work, completed, paused[-1].pk


def _say(conversation_id: int, text: str) -> None:
    say(conversation_id, text)
