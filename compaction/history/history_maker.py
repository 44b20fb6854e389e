"""Make one session, arc or epoch summary, and write its row and lineage.

No transaction is open while a summarizer works.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from compaction.history.models import SessionSummary, SessionSummaryChild, SessionSummaryMemory
from compaction.history.types import HistoryKind
from compaction.policy import CompactionPolicy
from compaction.rendering import WITHHELD
from compaction.sources import SourceRecord
from compaction.summarizing.escalation import Accepted, Escalation
from compaction.summarizing.summarizer import SourceMessage, SummaryDraft, SummaryRequest
from conversations.content import hashing
from conversations.content.lossless_values import storable
from conversations.content.tokens import TokenEstimator
from conversations.types import ContextItemType, Level

logger = structlog.get_logger(__name__)

# The model name of a summary that is a copy of its sources, because no summary would be shorter.
VERBATIM = "verbatim"
# A session of at most this many tokens is copied.
VERBATIM_TOKENS = 100


@dataclass(frozen=True)
class HistoryMaker:
    """Makes a summary row from sources; the caller holds the lock."""

    policy: CompactionPolicy
    escalation: Escalation
    tokens: TokenEstimator

    def make(
        self,
        kind: HistoryKind,
        sources: Sequence[SourceRecord],
        *,
        workspace_id: int,
        project_id: int | None,
        conversation_id: int | None = None,
        supersedes: SessionSummary | None = None,
    ) -> SessionSummary:
        """Summarize the sources; return the row, not saved yet."""
        accepted = self._summarize(kind, sources)
        draft = accepted.draft
        is_session = kind is HistoryKind.SESSION
        return SessionSummary(
            summary_id=f"ses_{secrets.token_hex(8)}",
            workspace_id=workspace_id,
            project_id=project_id,
            conversation_id=conversation_id,
            depth=kind.depth,
            kind=kind,
            content=draft.text,
            token_count=accepted.tokens,
            token_counter=self.tokens.name,
            first_seq=min(each.first_seq for each in sources) if is_session else None,
            last_seq=max(each.last_seq for each in sources) if is_session else None,
            earliest_at=min(each.earliest_at for each in sources),
            latest_at=max(each.latest_at for each in sources),
            level=accepted.level,
            confidence=accepted.level.confidence,
            model=draft.model,
            prompt_version=draft.prompt_hash,
            retention=accepted.retention,
            quality=accepted.quality(
                degraded_sources=[each.id for each in sources if each.is_degraded],
                # Only a session waits for its sources: an arc is renewed with its sessions anyway.
                sources_wait=is_session and any(each.is_waiting for each in sources),
            ),
            is_degraded=accepted.lack is not None or any(each.is_degraded for each in sources),
            summary_hash=hashing.summary_hash((each.hash for each in sources), draft.text),
            supersedes=supersedes,
        )

    def _summarize(self, kind: HistoryKind, sources: Sequence[SourceRecord]) -> Accepted:
        texts = tuple(each.source for each in sources if each.is_readable)
        source_tokens = sum(self.tokens.count(text.text) for text in texts)
        request = SummaryRequest(
            sources=texts,
            target_tokens=self.policy.target_of(source_tokens, depth=1 + kind.depth),
            count_tokens=self.tokens.count,
            depth=1 + kind.depth,
            task=kind.value,
            instructions=self.policy.summary_instructions,
            target_factor=self.policy.target_factor,
            deadline=time.monotonic() + self.policy.run_deadline_seconds,
        )
        if not texts or (kind is HistoryKind.SESSION and source_tokens <= VERBATIM_TOKENS):
            return self._copy_verbatim(request)
        return self.escalation.summarize(request) or self._copy_verbatim(request)

    def _copy_verbatim(self, request: SummaryRequest) -> Accepted:
        """Return the texts of the sources unchanged: no summary would be shorter.

        If no source is readable, the text is `WITHHELD`.
        """
        lines = (
            f"{each.role}: {each.text}" if isinstance(each, SourceMessage) else each.text for each in request.sources
        )
        text = storable("\n".join(lines)) or WITHHELD
        draft = SummaryDraft(text=text, model=VERBATIM, quality=1.0)
        return Accepted(draft, Level.DETERMINISTIC, self.tokens.count(text), retention=1.0, duration_ms=0)


def write(row: SessionSummary, sources: Sequence[SourceRecord]) -> None:
    """Insert a summary and the links to its sources, in the caller's transaction."""
    row.save(force_insert=True)
    if row.kind == HistoryKind.SESSION:
        SessionSummaryMemory.objects.bulk_create(
            [
                SessionSummaryMemory(
                    summary=row,
                    ordinal=ordinal,
                    item_type=ContextItemType.SUMMARY if each.message_id is None else ContextItemType.MESSAGE,
                    message_id=each.message_id,
                    memory_summary_id=each.id if each.message_id is None else None,
                )
                for ordinal, each in enumerate(sources)
            ],
            batch_size=1_000,
        )
    else:
        SessionSummaryChild.objects.bulk_create(
            [SessionSummaryChild(parent=row, child_id=each.id, ordinal=at) for at, each in enumerate(sources)]
        )
    logger.info(
        "session_summary_created",
        summary_id=row.summary_id,
        kind=str(row.kind),
        project_id=row.project_id,
        conversation_id=row.conversation_id,
        summary_level=str(row.level),
        supersedes=row.supersedes_id,
    )
