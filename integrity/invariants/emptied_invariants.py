"""A row whose text left it, to the cold tier or for good, holds no other text."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.cold_storage.cold_texts import LONGEST_URL, MARK, PART_TEXTS
from integrity.invariants.invariant import Found, invariant, violations
from integrity.retention.types import ERASED_PART_NAMES
from integrity.types import Severity

_COLD = " OR ".join(
    f"length(p.file_url) > {LONGEST_URL}" if name == "file_url" else f"p.{name} IS NOT NULL"
    for name in PART_TEXTS
    if name != "exact"
)
_ERASED = " OR ".join(f"p.{name} IS NOT NULL" for name in (*PART_TEXTS, *ERASED_PART_NAMES))


@invariant(Severity.CRITICAL)
def emptied_rows_hold_no_text(conversation_ids: Sequence[int]) -> Found:
    """A message, part, summary or file that is erased, and a message or part that is cold, holds no text in its row."""
    return violations(
        f"""
        SELECT m.conversation_id, 'msg_' || m.message_id, 'says that its text is not in its row, which holds some'
        FROM messages m
        WHERE m.conversation_id = ANY(%(ids)s) AND (m.cold_block_id IS NOT NULL OR m.erased_by_id IS NOT NULL)
          AND (m.content <> '' OR m.metadata <> '{{}}' OR m.exact IS NOT NULL
               OR m.erased_by_id IS NOT NULL AND (m.author IS NOT NULL OR m.idempotency_key IS NOT NULL))
        UNION ALL
        SELECT m.conversation_id, p.part_id, 'says that its text is not in its row, which holds some'
        FROM messages m JOIN message_parts p USING (message_id)
        WHERE m.conversation_id = ANY(%(ids)s)
          AND (m.cold_block_id IS NOT NULL AND p.exact -> '{MARK}' IS NOT NULL AND ({_COLD})
               OR m.erased_by_id IS NOT NULL AND ({_ERASED})
               AND (p.part_type = 'compaction' AND p.is_synthetic AND p.is_ignored) IS NOT TRUE)
        UNION ALL
        SELECT s.conversation_id, s.summary_id, 'is erased, and has a text'
        FROM summaries s
        WHERE s.conversation_id = ANY(%(ids)s) AND s.erased_by_id IS NOT NULL AND s.content <> ''
        UNION ALL
        SELECT f.conversation_id, f.file_id, 'is erased, and has a name or a description'
        FROM large_files f
        WHERE f.conversation_id = ANY(%(ids)s) AND f.erased_by_id IS NOT NULL
          AND (f.file_name IS NOT NULL OR f.mime_type IS NOT NULL OR f.exploration_summary IS NOT NULL)
        """,
        conversation_ids,
    )
