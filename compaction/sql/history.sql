-- name: request_history_job
-- The queued job of a conversation or a project; it is inserted unless one is queued. A person's reason is kept.
INSERT INTO history_jobs (workspace_id, conversation_id, project_id, reason, state, fence, attempts, last_error)
VALUES (%(workspace_id)s, %(conversation_id)s, %(project_id)s, %(reason)s, 'queued', 0, 0, '')
ON CONFLICT DO NOTHING
RETURNING job_id

-- name: withheld_items
-- The quarantined messages and summaries of a conversation; a message is withheld with any of its parts.
SELECT coalesce('msg_' || p.message_id, q.target)
FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
WHERE q.conversation_id = %s AND q.released_at IS NULL

-- name: current_members
-- The current summaries of the members of an arc or an epoch, in order.
WITH RECURSIVE line(ordinal, summary_id) AS (
    SELECT ordinal, child_id FROM session_summary_children WHERE parent_id = %s
    UNION ALL
    SELECT line.ordinal, s.summary_id FROM line JOIN session_summaries s ON s.supersedes_id = line.summary_id
)
SELECT summary_id FROM line
WHERE NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = line.summary_id)
ORDER BY ordinal

-- name: stale_of_project
-- Current arcs or epochs of a project with a member that was renewed, or that are erased and have something left.
SELECT s.summary_id FROM session_summaries s
WHERE s.project_id = %(project_id)s AND s.depth = %(depth)s
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND EXISTS (
      SELECT FROM session_summary_children l
      LEFT JOIN session_summaries newer ON newer.supersedes_id = l.child_id
      JOIN session_summaries child ON child.summary_id = l.child_id
      WHERE l.parent_id = s.summary_id
        AND (newer.summary_id IS NOT NULL OR s.erased_by_id IS NOT NULL AND child.erased_by_id IS NULL)
  )
ORDER BY s.earliest_at, s.summary_id

-- name: waiting_of_project
-- Current arcs or epochs of a project that wait for a model.
SELECT s.summary_id FROM session_summaries s
WHERE s.project_id = %(project_id)s AND s.depth = %(depth)s AND s.is_degraded AND s.quality @> '{"waits": true}'
  AND s.erased_by_id IS NULL
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
ORDER BY s.earliest_at, s.summary_id

-- name: members_to_be
-- Current sessions or arcs of a project that are in no current arc or epoch, oldest first.
WITH RECURSIVE members(summary_id) AS (
    SELECT l.child_id FROM session_summaries parent JOIN session_summary_children l ON l.parent_id = parent.summary_id
    WHERE parent.project_id = %(project_id)s AND parent.depth = %(depth)s + 1
      AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = parent.summary_id)
    UNION
    SELECT s.summary_id FROM members JOIN session_summaries s ON s.supersedes_id = members.summary_id
)
SELECT s.summary_id FROM session_summaries s LEFT JOIN conversations c USING (conversation_id)
WHERE s.project_id = %(project_id)s AND s.depth = %(depth)s AND s.erased_by_id IS NULL
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND NOT EXISTS (SELECT FROM members WHERE members.summary_id = s.summary_id)
ORDER BY coalesce(c.created_at, s.earliest_at), s.conversation_id, s.summary_id
LIMIT %(limit)s

-- name: quiet_conversations
-- Conversations without a new message for a while that have something which their session summary does not cover.
SELECT c.conversation_id, c.workspace_id
FROM conversations c
LEFT JOIN session_summaries s ON s.conversation_id = c.conversation_id
    AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
WHERE c.updated_at <= now() - make_interval(mins => %(minutes)s) AND c.next_seq > 1
  AND (s.summary_id IS NULL OR s.last_seq <> lcm_head_seq(c.next_seq, c.inactive) OR s.project_id IS DISTINCT FROM c.project_id)
  AND EXISTS (SELECT FROM messages m WHERE m.conversation_id = c.conversation_id AND m.erased_by_id IS NULL)
  AND NOT EXISTS (
      SELECT FROM history_jobs j WHERE j.conversation_id = c.conversation_id
        -- A job that came to nothing would come to nothing again, until there is something new.
        AND (j.state IN ('queued', 'leased') OR j.reason = 'quiet' AND j.finished_at > c.updated_at)
  )
ORDER BY c.updated_at LIMIT %(limit)s

-- name: erased_sessions
-- Conversations whose current session summary is erased while some of their messages are not.
SELECT s.conversation_id, s.workspace_id FROM session_summaries s
WHERE s.depth = 0 AND s.erased_by_id IS NOT NULL
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND EXISTS (SELECT FROM messages m WHERE m.conversation_id = s.conversation_id AND m.erased_by_id IS NULL)
  AND NOT EXISTS (
      SELECT FROM history_jobs j WHERE j.conversation_id = s.conversation_id
        AND (j.state IN ('queued', 'leased') OR j.reason = 'changed' AND j.finished_at > now() - interval '1 hour')
  )
  -- The summaries of the conversation are made again first.
  AND NOT EXISTS (
      SELECT FROM compaction_jobs j WHERE j.conversation_id = s.conversation_id AND j.state IN ('queued', 'leased')
  )
ORDER BY s.conversation_id LIMIT %(limit)s

-- name: projects_with_work
-- Projects with a member that was renewed, or with enough sessions or arcs for another summary.
WITH RECURSIVE present AS (
    SELECT s.summary_id, s.project_id, s.depth, s.erased_by_id FROM session_summaries s
    WHERE s.project_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
), members(summary_id) AS (
    SELECT l.child_id FROM present JOIN session_summary_children l ON l.parent_id = present.summary_id
    UNION
    SELECT s.summary_id FROM members JOIN session_summaries s ON s.supersedes_id = members.summary_id
), wanted AS (
    SELECT project_id FROM present
    WHERE depth < 2 AND erased_by_id IS NULL AND summary_id NOT IN (SELECT summary_id FROM members)
    GROUP BY project_id, depth
    HAVING count(*) >= CASE depth WHEN 0 THEN %(sessions_per_arc)s ELSE %(arcs_per_epoch)s END
    UNION
    SELECT present.project_id FROM present
    JOIN session_summary_children l ON l.parent_id = present.summary_id
    JOIN session_summaries child ON child.summary_id = l.child_id
    LEFT JOIN session_summaries newer ON newer.supersedes_id = l.child_id
    WHERE newer.summary_id IS NOT NULL OR present.erased_by_id IS NOT NULL AND child.erased_by_id IS NULL
)
SELECT project_id, workspace_id FROM wanted JOIN projects USING (project_id)
WHERE NOT EXISTS (
    SELECT FROM history_jobs j WHERE j.project_id = projects.project_id AND j.state IN ('queued', 'leased')
)
ORDER BY project_id LIMIT %(limit)s

-- name: history_waiting_for_a_model
-- Conversations and projects with a current summary that waits for a model: with the time of that summary, and how often
-- and when last making it again was tried since.
SELECT s.workspace_id, s.conversation_id, CASE WHEN s.depth > 0 THEN s.project_id END AS project_id,
       tried.count, tried.last_at
FROM session_summaries s
CROSS JOIN LATERAL (
    SELECT count(*) AS count, max(j.finished_at) AS last_at FROM history_jobs j
    WHERE j.reason = 'redo' AND j.finished_at > s.created_at
      AND (j.conversation_id = s.conversation_id OR s.depth > 0 AND j.project_id = s.project_id)
) AS tried
WHERE s.is_degraded AND s.quality @> '{"waits": true}' AND s.erased_by_id IS NULL
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND NOT EXISTS (
      SELECT FROM history_jobs j WHERE j.state IN ('queued', 'leased')
        AND (j.conversation_id = s.conversation_id OR s.depth > 0 AND j.project_id = s.project_id)
  )
ORDER BY s.created_at, s.summary_id
