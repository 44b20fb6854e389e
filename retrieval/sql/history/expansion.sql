-- The sources of session, arc and epoch summaries. Their rows are immutable, so what lies below one never changes.

-- name: root
-- A session, arc or epoch summary, with its project and the summary that supersedes it.
SELECT s.summary_id, s.depth, s.workspace_id, p.name,
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

-- name: below_session
-- The items below a session summary that begin in a window of seqs: its sources, which are the summaries and messages
-- that were in the context of its conversation when it was made, and what is below these summaries. `below_summary` in
-- `expand.sql` has the same structure, and explains it.
WITH RECURSIVE reach(summary_id, level) AS (
    SELECT s.summary_id, 1
    FROM session_summary_memories k, LATERAL (SELECT * FROM summaries WHERE summary_id = k.memory_summary_id OFFSET 0) s
    WHERE k.summary_id = %(session)s AND k.memory_summary_id IS NOT NULL
      AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
    UNION
    SELECT s.summary_id, reach.level + 1
    FROM reach, LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = reach.summary_id OFFSET 0) p
    CROSS JOIN LATERAL (SELECT * FROM summaries WHERE summary_id = p.parent_summary_id OFFSET 0) s
    WHERE reach.level < %(depth)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
), nodes AS (
    SELECT summary_id, min(level) AS level FROM reach GROUP BY summary_id
), edge AS (
    SELECT (SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s AND seq >= %(from)s
            ORDER BY seq LIMIT 1) AS message_id
), links AS MATERIALIZED (
    SELECT summary_id, level, ARRAY(
        SELECT l.message_id FROM summary_messages l
        WHERE (SELECT %(include_messages)s::boolean) AND l.summary_id = nodes.summary_id
          AND l.message_id >= (SELECT message_id FROM edge)
        ORDER BY l.message_id LIMIT %(most)s
    ) AS message_ids
    FROM nodes WHERE level < %(depth)s
    UNION ALL
    SELECT %(session)s, 0, ARRAY(
        SELECT k.message_id FROM session_summary_memories k
        WHERE k.summary_id = %(session)s AND k.message_id >= (SELECT message_id FROM edge)
        ORDER BY k.message_id LIMIT %(most)s
    )
), linked AS (
    SELECT DISTINCT ON (m.seq) m.message_id, m.seq, m.token_count, links.level + 1 AS level, links.summary_id AS of
    FROM links, LATERAL (SELECT * FROM messages WHERE message_id = ANY(links.message_ids) OFFSET 0) m
    WHERE m.conversation_id = %(conversation_id)s AND m.seq BETWEEN %(from)s AND %(upto)s
    ORDER BY m.seq, links.level
    LIMIT %(most)s
)
SELECT s.first_seq, -s.depth, s.summary_id, NULL::bigint, s.token_count, nodes.level,
       coalesce((SELECT p.summary_id FROM summary_parents p JOIN nodes n ON n.summary_id = p.summary_id
                 WHERE p.parent_summary_id = s.summary_id AND n.level = nodes.level - 1
                 ORDER BY p.summary_id LIMIT 1), %(session)s)
FROM nodes, LATERAL (SELECT * FROM summaries WHERE summary_id = nodes.summary_id OFFSET 0) s
WHERE s.first_seq BETWEEN %(from)s AND %(upto)s
UNION ALL
SELECT seq, 1, '', message_id, token_count, level, of FROM linked
