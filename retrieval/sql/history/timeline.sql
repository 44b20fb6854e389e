-- The history of projects. A session is a conversation. The sessions of a project are in the order in which they were
-- opened. Only current summaries are read: those that no other supersedes.

-- name: projects
-- Projects by name, each with its numbers of conversations, sessions, arcs and epochs.
SELECT p.project_id, p.name, p.created_at,
       (SELECT count(*) FROM conversations c WHERE c.project_id = p.project_id),
       (SELECT count(*) FROM conversations c
        WHERE c.project_id = p.project_id
          AND EXISTS (SELECT FROM session_summaries s WHERE s.conversation_id = c.conversation_id)),
       (SELECT count(*) FROM session_summaries s
        WHERE s.project_id = p.project_id AND s.depth = 1
          AND NOT EXISTS (SELECT FROM session_summaries n WHERE n.supersedes_id = s.summary_id)),
       (SELECT count(*) FROM session_summaries s
        WHERE s.project_id = p.project_id AND s.depth = 2
          AND NOT EXISTS (SELECT FROM session_summaries n WHERE n.supersedes_id = s.summary_id)),
       (SELECT max(c.updated_at) FROM conversations c WHERE c.project_id = p.project_id)
FROM projects p
WHERE {owned} AND (%(after_name)s::text IS NULL OR p.name > %(after_name)s)
ORDER BY p.name LIMIT %(limit)s

-- name: entries
-- The entries of a timeline, of one project or of all: current summaries, and conversations that have none.
-- The project of a session is that of its conversation, because the summary may be older than the assignment. Texts are
-- read only for the page.
WITH sessions AS (
    SELECT c.project_id, c.conversation_id, c.session_id, c.title, c.parent_id, c.parent_link, c.next_seq - 1 AS message_count,
           s.summary_id, s.token_count, s.last_seq, s.level, s.confidence, s.is_degraded, s.erased_by_id,
           coalesce(s.earliest_at, first.created_at, c.created_at) AS earliest_at,
           coalesce(s.latest_at, last.created_at, c.created_at) AS latest_at
    FROM conversations c
    LEFT JOIN session_summaries s ON s.conversation_id = c.conversation_id
        AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
    LEFT JOIN messages first ON s.summary_id IS NULL AND first.conversation_id = c.conversation_id AND first.seq = 1
    LEFT JOIN messages last
        ON s.summary_id IS NULL AND last.conversation_id = c.conversation_id AND last.seq = c.next_seq - 1
    WHERE {of_conversations}
), page AS MATERIALIZED (
    SELECT * FROM (
        SELECT summary_id AS id, 0 AS depth, project_id, earliest_at, latest_at, token_count, conversation_id, session_id,
               title, parent_id, parent_link, message_count,
               CASE WHEN summary_id IS NULL THEN 0 ELSE greatest(0, message_count - last_seq) END AS behind,
               level, confidence, coalesce(is_degraded, false) AS is_degraded, erased_by_id IS NOT NULL AS erased
        FROM sessions
        UNION ALL
        SELECT s.summary_id, s.depth, s.project_id, s.earliest_at, s.latest_at, s.token_count, NULL, NULL,
               NULL, NULL, NULL, NULL, 0, s.level, s.confidence, s.is_degraded, s.erased_by_id IS NOT NULL
        FROM session_summaries s
        WHERE s.depth > 0 AND {of_summaries}
          AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
    ) AS entries
    WHERE {behind}
    ORDER BY latest_at DESC, depth DESC, coalesce(id, 'conv_' || conversation_id) COLLATE "C" DESC
    LIMIT %(limit)s
)
SELECT id, depth, (SELECT p.name FROM projects p WHERE p.project_id = page.project_id), earliest_at, latest_at, token_count,
       (SELECT s.content FROM session_summaries s WHERE s.summary_id = page.id), (
           SELECT k.parent_id FROM session_summary_children k JOIN session_summaries s ON s.summary_id = k.parent_id
           WHERE k.child_id = id AND {of_parents}
             AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
           LIMIT 1
       ),
       conversation_id, session_id, title, parent_id, parent_link, message_count, behind, (
           SELECT count(*) FROM session_summary_children k WHERE k.parent_id = id AND depth > 0
       ), (
           WITH RECURSIVE below AS (
               SELECT k.child_id FROM session_summary_children k WHERE k.parent_id = id AND depth > 0
               UNION ALL
               SELECT k.child_id FROM below JOIN session_summary_children k ON k.parent_id = below.child_id
           )
           SELECT count(*) FROM below JOIN session_summaries s ON s.summary_id = below.child_id WHERE s.depth = 0
       ), level, confidence, is_degraded, erased
FROM page
ORDER BY latest_at DESC, depth DESC, coalesce(id, 'conv_' || conversation_id) COLLATE "C" DESC

-- name: behind
-- A condition: the entry comes after a given position in the timeline.
(latest_at, depth, coalesce(id, 'conv_' || conversation_id) COLLATE "C")
    < (%(latest_at)s::timestamptz, %(depth)s::integer, %(key)s::text)

-- name: session_ago
-- The conversation before another one in its project; `back` is how many sessions between them are skipped. Subagents
-- and empty sessions do not count.
SELECT c.conversation_id
FROM conversations here JOIN conversations c ON c.project_id = here.project_id
WHERE here.conversation_id = %(conversation_id)s
  AND (c.created_at, c.conversation_id) < (here.created_at, here.conversation_id)
  AND c.next_seq > 1 AND c.parent_link IS DISTINCT FROM 'subagent'
ORDER BY c.created_at DESC, c.conversation_id DESC
OFFSET %(back)s LIMIT 1
