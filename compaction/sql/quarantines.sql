-- These statements find what quarantines withhold from models. A summary made before a quarantine may contain the
-- quarantined text, and is withheld, too. It counts as made when its run began, because a run reads its sources before
-- it calls a model. A message is withheld if it is quarantined, if one of its parts is, or if a file is that one of its
-- texts was moved to: the message contains the name and the description of that file.

-- name: with_quarantines
-- Those of the given conversations that have quarantined items.
SELECT conversation_id FROM conversations WHERE conversation_id = ANY(%s) AND quarantined > 0

-- name: withheld_items
-- What is withheld in a conversation: the quarantined items, the summaries made from them before the quarantine, and
-- the files that hold texts of quarantined messages.
WITH RECURSIVE hidden AS (
    SELECT q.target, q.created_at,
           coalesce(p.message_id, r.message_id, substring(q.target FROM '^msg_([0-9]{1,18})$')::bigint) AS message_id
    FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
    LEFT JOIN file_references r ON r.file_id = q.target AND r.start_at IS NOT NULL
    WHERE q.conversation_id = %(id)s AND q.released_at IS NULL
), holding AS (
    SELECT target AS summary_id, created_at FROM hidden WHERE message_id IS NULL
    UNION
    SELECT l.summary_id, hidden.created_at FROM hidden JOIN summary_messages l ON l.message_id = hidden.message_id
    UNION
    SELECT p.summary_id, holding.created_at
    FROM holding JOIN summary_parents p ON p.parent_summary_id = holding.summary_id
)
SELECT target FROM hidden
UNION
SELECT 'msg_' || message_id FROM hidden WHERE message_id IS NOT NULL
UNION
SELECT r.file_id FROM hidden JOIN file_references r USING (message_id)
WHERE r.start_at IS NOT NULL AND hidden.target NOT LIKE 'file\_%%'
UNION
SELECT s.summary_id FROM holding JOIN summaries s USING (summary_id)
LEFT JOIN compaction_runs r ON r.run_id = s.run_id
WHERE coalesce(r.started_at, s.created_at) < holding.created_at

-- name: withheld_sessions
-- The session summaries (of one workspace or of all) with a source that was quarantined after the summary was made, and
-- all arcs and epochs made from them. The search starts from the quarantined items, because they are few.
WITH RECURSIVE hidden AS MATERIALIZED (
    SELECT q.target, q.created_at,
           coalesce(p.message_id, r.message_id, substring(q.target FROM '^msg_([0-9]{1,18})$')::bigint) AS message_id
    FROM quarantines q JOIN conversations c USING (conversation_id) LEFT JOIN message_parts p ON p.part_id = q.target
    LEFT JOIN file_references r ON r.file_id = q.target AND r.start_at IS NOT NULL
    WHERE q.released_at IS NULL
      AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
), holding AS (
    SELECT target AS summary_id, created_at FROM hidden WHERE target LIKE 'sum\_%%'
    UNION
    SELECT l.summary_id, hidden.created_at FROM hidden JOIN summary_messages l ON l.message_id = hidden.message_id
    UNION
    SELECT p.summary_id, holding.created_at
    FROM holding JOIN summary_parents p ON p.parent_summary_id = holding.summary_id
), sessions AS (
    SELECT k.summary_id, holding.created_at
    FROM holding JOIN session_summary_memories k ON k.memory_summary_id = holding.summary_id
    UNION ALL
    SELECT k.summary_id, hidden.created_at
    FROM hidden JOIN session_summary_memories k ON k.message_id = hidden.message_id
), resting AS (
    SELECT s.summary_id FROM sessions JOIN session_summaries s USING (summary_id)
    WHERE s.created_at < sessions.created_at
    UNION
    SELECT k.parent_id FROM resting JOIN session_summary_children k ON k.child_id = resting.summary_id
)
SELECT summary_id FROM resting

-- name: outdated_summaries
-- The current summaries (of one conversation or of all) that no longer fit the quarantines, with the time of the
-- change: a source was quarantined after the summary was made, or was quarantined then and has been released since.
WITH RECURSIVE changed AS MATERIALIZED (
    SELECT coalesce(p.message_id, r.message_id, substring(q.target FROM '^msg_([0-9]{1,18})$')::bigint) AS message_id,
           substring(q.target FROM '^sum_.*$') AS summary_id, q.created_at, q.released_at
    FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
    LEFT JOIN file_references r ON r.file_id = q.target AND r.start_at IS NOT NULL
    WHERE %(id)s::bigint IS NULL OR q.conversation_id = %(id)s
), made_from AS (
    SELECT l.summary_id, changed.created_at, changed.released_at
    FROM changed JOIN summary_messages l ON l.message_id = changed.message_id
    UNION
    SELECT p.summary_id, changed.created_at, changed.released_at
    FROM changed JOIN summary_parents p ON p.parent_summary_id = changed.summary_id
    UNION
    SELECT p.summary_id, made_from.created_at, made_from.released_at
    FROM made_from JOIN summary_parents p ON p.parent_summary_id = made_from.summary_id
)
SELECT s.summary_id, s.conversation_id, max(coalesce(made_from.released_at, made_from.created_at)) AS since
FROM made_from JOIN summaries s USING (summary_id)
LEFT JOIN compaction_runs r ON r.run_id = s.run_id
WHERE s.erased_by_id IS NULL AND NOT EXISTS (SELECT FROM summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND CASE WHEN made_from.released_at IS NULL THEN coalesce(r.started_at, s.created_at) < made_from.created_at
           ELSE coalesce(r.started_at, s.created_at) BETWEEN made_from.created_at AND made_from.released_at END
GROUP BY s.summary_id, s.conversation_id

-- name: conversations_to_redo
-- A template: the conversations with an outdated summary in their context. Left out are those with an open job, or with
-- a redo that ended within the last hour and after the change.
SELECT DISTINCT conversation_id FROM ({outdated}) AS outdated JOIN context_items c USING (conversation_id, summary_id)
WHERE NOT EXISTS (
    SELECT FROM compaction_jobs j WHERE j.conversation_id = outdated.conversation_id
      AND (j.state IN ('queued', 'leased')
           OR j.reason = 'redo' AND j.finished_at > greatest(now() - interval '1 hour', since))
)
ORDER BY conversation_id LIMIT %(limit)s
