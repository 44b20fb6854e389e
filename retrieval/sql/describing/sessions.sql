-- The sources of session, arc and epoch summaries, and what was made from them. All rows below a summary are immutable.

-- name: relations
-- For one summary: its project, the summary that supersedes it, its source summaries, the ranges of its direct source
-- messages, the summaries made from it, how many messages are below it, and the tokens of its sources.
WITH RECURSIVE below(summary_id) AS (
    SELECT %(summary_id)s::text
    UNION ALL
    SELECT k.child_id FROM below JOIN session_summary_children k ON k.parent_id = below.summary_id
), sources AS (
    SELECT k.ordinal, k.memory_summary_id AS id, m.seq, coalesce(m.token_count, s.token_count) AS tokens
    FROM session_summary_memories k
    LEFT JOIN messages m ON m.message_id = k.message_id
    LEFT JOIN summaries s ON s.summary_id = k.memory_summary_id
    WHERE k.summary_id = %(summary_id)s
    UNION ALL
    SELECT k.ordinal, k.child_id, NULL, child.token_count
    FROM session_summary_children k JOIN session_summaries child ON child.summary_id = k.child_id
    WHERE k.parent_id = %(summary_id)s
), islands AS (
    SELECT min(seq) AS first_seq, max(seq) AS last_seq
    FROM (SELECT seq, seq - row_number() OVER (ORDER BY seq) AS island FROM sources WHERE seq IS NOT NULL) AS direct
    GROUP BY island
)
SELECT (SELECT p.name FROM projects p WHERE p.project_id = coalesce(c.project_id, s.project_id)),
       (SELECT n.summary_id FROM session_summaries n WHERE n.supersedes_id = s.summary_id),
       ARRAY(SELECT id FROM sources WHERE id IS NOT NULL ORDER BY ordinal),
       ARRAY(SELECT ARRAY[first_seq, last_seq] FROM islands ORDER BY first_seq),
       ARRAY(SELECT k.parent_id FROM session_summary_children k JOIN session_summaries p ON p.summary_id = k.parent_id
             WHERE k.child_id = s.summary_id ORDER BY p.created_at, p.summary_id),
       (SELECT coalesce(sum(session.last_seq - session.first_seq + 1), 0)::bigint
        FROM below JOIN session_summaries session ON session.summary_id = below.summary_id WHERE session.depth = 0),
       (SELECT coalesce(sum(tokens), 0)::bigint FROM sources)
FROM session_summaries s LEFT JOIN conversations c ON c.conversation_id = s.conversation_id
WHERE s.summary_id = %(summary_id)s
