"""Summaries: links that were lost are put back where a seal proves them, and damaged ones are made again."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection

from compaction.background import jobs
from compaction.models import CompactionJob
from compaction.types import JobState, Reason
from conversations.audit import AuditLog
from conversations.content import hashing
from conversations.models import Summary
from conversations.sql import rows
from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step

# Messages that no other summary was made from, and those that this one is linked to.
_MESSAGES = """
    SELECT m.message_id, encode(m.content_hash, 'hex')
    FROM messages m
    WHERE m.conversation_id = %(conversation_id)s AND m.seq BETWEEN %(first_seq)s AND %(last_seq)s
      AND NOT EXISTS (
          SELECT FROM summary_messages l JOIN summaries s USING (summary_id)
          WHERE l.message_id = m.message_id AND s.summary_id <> %(summary_id)s
            AND s.supersedes_id IS DISTINCT FROM %(summary_id)s)
    ORDER BY m.seq
"""
_SUMMARIES = """
    SELECT s.summary_id, encode(s.summary_hash, 'hex')
    FROM summaries s
    WHERE s.conversation_id = %(conversation_id)s AND s.depth < %(depth)s
      AND s.first_seq >= %(first_seq)s AND s.last_seq <= %(last_seq)s
      AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id)
      AND NOT EXISTS (
          SELECT FROM summary_parents p WHERE p.parent_summary_id = s.summary_id AND p.summary_id <> %(summary_id)s)
    ORDER BY s.first_seq
"""
_LINKED = """
    SELECT 'msg_' || message_id FROM summary_messages WHERE summary_id = %(summary_id)s
    UNION ALL
    SELECT parent_summary_id FROM summary_parents WHERE summary_id = %(summary_id)s
    ORDER BY 1
"""
_PUT_BACK_MESSAGES = """
    INSERT INTO summary_messages (summary_id, message_id, ordinal)
    SELECT %s, message_id, place - 1 FROM unnest(%s::bigint[]) WITH ORDINALITY AS given(message_id, place)
    ON CONFLICT DO NOTHING
"""
_PUT_BACK_SUMMARIES = """
    INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
    SELECT %s, source_id, place - 1 FROM unnest(%s::text[]) WITH ORDINALITY AS given(source_id, place)
    ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Sources:
    """What a summary was made from, by its seal."""

    message_ids: tuple[int, ...]
    summary_ids: tuple[str, ...]

    @property
    def ids(self) -> list[str]:
        return sorted([*(f"msg_{each}" for each in self.message_ids), *self.summary_ids])


def sealed_sources(summary: Summary) -> Sources | None:
    """The sources that make exactly the summary's seal, if those that nothing else was made from do."""
    place = {
        "summary_id": summary.summary_id,
        "conversation_id": summary.conversation_id,
        "first_seq": summary.first_seq,
        "last_seq": summary.last_seq,
        "depth": summary.depth,
    }
    summaries = rows(_SUMMARIES, place)
    messages = rows(_MESSAGES, place)
    hashes = [hash for _, hash in (*messages, *summaries)]
    if hashing.summary_hash(hashes, summary.content) != bytes(summary.summary_hash):
        return None
    return Sources(tuple(id for id, _ in messages), tuple(id for id, _ in summaries))


def relinkable_sources(summary: Summary) -> Sources | None:
    """The sealed sources, if the summary lacks links to some of them and has none to anything else."""
    sources = sealed_sources(summary)
    linked = {id for (id,) in rows(_LINKED, {"summary_id": summary.summary_id})}
    return sources if sources is not None and linked < set(sources.ids) else None


class Relink(Operation):
    """Links a summary again to the sources that it lost, if they make exactly its seal."""

    step = Step.RELINK

    def state(self, target: Target) -> Values:
        return {"sources": [id for (id,) in rows(_LINKED, {"summary_id": target.id})]}

    def outlook(self, target: Target) -> Values:
        return {"sources": self._sources(target).ids}

    def is_reversible(self, target: Target) -> bool:
        return False

    def apply(self, target: Target, log: AuditLog) -> Values:
        sources = self._sources(target)
        with connection.cursor() as cursor:
            cursor.execute(_PUT_BACK_MESSAGES, [target.id, list(sources.message_ids)])
            cursor.execute(_PUT_BACK_SUMMARIES, [target.id, list(sources.summary_ids)])
        return {}

    def _sources(self, target: Target) -> Sources:
        sources = relinkable_sources(Summary.objects.get(pk=target.id))
        if sources is None:
            raise CannotRepair(f"No sources make the seal of {target.id}.")
        return sources


class RedoSummary(Operation):
    """Has a damaged summary made again from its sources, by the worker of compaction; the new one supersedes it."""

    step = Step.REDO_SUMMARY

    def state(self, target: Target) -> Values:
        superseded = Summary.objects.filter(supersedes_id=target.id).values_list("pk", flat=True)
        return {"superseded_by": list(superseded)}

    def outlook(self, target: Target) -> Values:
        if Summary.objects.filter(supersedes_id=target.id).exists():
            raise CannotRepair(f"{target.id} was made again already.")
        return {"job": Reason.REDO.value}

    def apply(self, target: Target, log: AuditLog) -> Values:
        return {"job_id": jobs.request(conversation_id=target.conversation, reason=Reason.REDO)}

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        """A job that nobody has begun is closed; what was made stays."""
        waiting = CompactionJob.objects.filter(pk=undo["job_id"], state=JobState.QUEUED, attempts=0)
        if not waiting.delete()[0]:
            super().undo(target, undo, log)
