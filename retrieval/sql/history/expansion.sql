-- The sources of session, arc and epoch summaries. Their rows are immutable, so what lies below one never changes.

-- name: root
-- A session, arc or epoch summary, with its project and the summary that supersedes it.
SELECT s.depth, s.workspace_id, p.name,
       (SELECT n.summary_id FROM session_summaries n WHERE n.supersedes_id = s.summary_id)
FROM session_summaries s LEFT JOIN conversations c ON c.conversation_id = s.conversation_id
LEFT JOIN projects p ON p.project_id = coalesce(c.project_id, s.project_id)
WHERE s.summary_id = %(summary_id)s AND {owned}

-- name: below
-- The root and the arcs and sessions below it, oldest first, each before its sources.
WITH RECURSIVE below(summary_id, level, path, of) AS (
    SELECT %(summary_id)s::text, 0, ARRAY[]::integer[], NULL::text
    UNION ALL
    SELECT k.child_id, below.level + 1, below.path || k.ordinal, below.summary_id
    FROM below JOIN session_summary_children k ON k.parent_id = below.summary_id
    WHERE below.level < %(depth)s
)
SELECT s.summary_id, below.level, below.of, s.depth, s.token_count, s.conversation_id,
       coalesce(s.first_seq, 0), coalesce(s.last_seq, 0)
FROM below JOIN session_summaries s ON s.summary_id = below.summary_id
ORDER BY below.path

-- name: summaries
-- The session, arc and epoch summaries of a page.
SELECT summary_id, depth, content, created_at, conversation_id, erased_by_id IS NOT NULL, earliest_at, latest_at
FROM session_summaries WHERE summary_id = ANY((SELECT %s)::text[])

-- name: roots_of_session
-- The roots of `below` in `expand.sql`: the summaries that were in the context of a session's conversation when its
-- summary was made.
SELECT s.summary_id, 1
FROM session_summary_memories k, LATERAL (SELECT * FROM summaries WHERE summary_id = k.memory_summary_id OFFSET 0) s
WHERE k.summary_id = %(of)s AND k.memory_summary_id IS NOT NULL
  AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s

-- name: messages_of_session
-- Its `own_links`: the messages that were in that context.
UNION ALL
SELECT %(of)s::text, 0, ARRAY(
    SELECT k.message_id FROM session_summary_memories k
    WHERE k.summary_id = %(of)s AND k.message_id >= (SELECT message_id FROM edge)
    ORDER BY k.message_id LIMIT %(most)s
)
