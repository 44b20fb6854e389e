-- name: cut
-- Leaf summaries for the newest summarized messages; for all older ones, the summaries of the active context.
-- A condensed summary that also covers messages directly is not replaced by its sources: these do not contain the
-- messages.
WITH RECURSIVE active AS (
    SELECT s.summary_id, s.depth, s.first_seq, s.last_seq, s.token_count
    FROM context_items c JOIN summaries s ON s.summary_id = c.summary_id
    WHERE c.conversation_id = %(id)s
), fresh AS (
    SELECT max(last_seq) - %(fresh)s + 1 AS first_seq FROM active
), cut AS (
    SELECT * FROM active
    UNION ALL
    SELECT s.summary_id, s.depth, s.first_seq, s.last_seq, s.token_count
    FROM cut
    JOIN fresh ON cut.last_seq >= fresh.first_seq
    JOIN summary_parents p ON p.summary_id = cut.summary_id
    JOIN summaries s ON s.summary_id = p.parent_summary_id
    WHERE cut.depth > 0 AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.summary_id = cut.summary_id)
)
SELECT summary_id, first_seq, last_seq, token_count
FROM cut
WHERE NOT EXISTS (SELECT FROM summary_parents p JOIN cut below ON below.summary_id = p.parent_summary_id
                  WHERE p.summary_id = cut.summary_id)
ORDER BY first_seq

-- name: raw_span
-- The first and the last message that a host has cut from its context and that no summary covers yet.
SELECT min(c.ordinal), max(c.ordinal)
FROM context_items c JOIN messages m ON m.message_id = c.message_id
WHERE c.conversation_id = %(id)s AND m.role <> 'system'
  AND c.ordinal > (
      SELECT coalesce(max(s.last_seq), 0) FROM context_items c JOIN summaries s ON s.summary_id = c.summary_id
      WHERE c.conversation_id = %(id)s
  )
  AND c.ordinal <= (SELECT max(b.last_seq) FROM compaction_boundaries b WHERE b.conversation_id = %(id)s)
