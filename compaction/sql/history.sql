-- name: request_history_job
-- Insert a job for a conversation or a project. Returns no row if such a job is already queued.
INSERT INTO history_jobs (workspace_id, conversation_id, project_id, reason, state, fence, attempts, last_error)
VALUES (%(workspace_id)s, %(conversation_id)s, %(project_id)s, %(reason)s, 'queued', 0, 0, '')
ON CONFLICT DO NOTHING
RETURNING job_id

-- name: session_summaries_in_order
-- The session summaries of a conversation with their sources (seqs of messages, ids of summaries). Each summary follows
-- the one that it supersedes.
WITH RECURSIVE line(place, summary_id) AS (
    SELECT 0, summary_id FROM session_summaries WHERE conversation_id = %s AND supersedes_id IS NULL
    UNION ALL
    SELECT place + 1, s.summary_id FROM line JOIN session_summaries s ON s.supersedes_id = line.summary_id
)
SELECT line.summary_id, (
    SELECT jsonb_agg(coalesce(to_jsonb(l.memory_summary_id), to_jsonb(m.seq)) ORDER BY l.ordinal)
    FROM session_summary_memories l LEFT JOIN messages m USING (message_id) WHERE l.summary_id = line.summary_id
) FROM line ORDER BY place

-- name: damaged_history
-- The damaged ones of the given summaries: the hash does not match the text and the sources, the sources are not
-- numbered from 0 without gaps, or the range or times differ from those of the sources.
WITH sources AS (
    SELECT l.summary_id, l.ordinal, encode(coalesce(m.content_hash, s.summary_hash), 'hex') AS hash,
           coalesce(m.seq, s.first_seq) AS first_seq, coalesce(m.seq, s.last_seq) AS last_seq,
           coalesce(m.created_at, s.earliest_at) AS earliest_at, coalesce(m.created_at, s.latest_at) AS latest_at
    FROM session_summary_memories l
    LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s ON s.summary_id = l.memory_summary_id
    WHERE l.summary_id = ANY(%(ids)s)
    UNION ALL
    SELECT l.parent_id, l.ordinal, encode(child.summary_hash, 'hex'), NULL, NULL, child.earliest_at, child.latest_at
    FROM session_summary_children l JOIN session_summaries child ON child.summary_id = l.child_id
    WHERE l.parent_id = ANY(%(ids)s)
), expected AS (
    SELECT summary_id, string_agg(hash, ',' ORDER BY ordinal, hash) AS hashes,
           min(ordinal) = 0 AND max(ordinal) = count(*) - 1 AS is_dense,
           min(first_seq) AS first_seq, max(last_seq) AS last_seq,
           min(earliest_at) AS earliest_at, max(latest_at) AS latest_at
    FROM sources GROUP BY summary_id
)
SELECT s.summary_id FROM session_summaries s LEFT JOIN expected USING (summary_id)
WHERE s.summary_id = ANY(%(ids)s) AND s.erased_by_id IS NULL
  AND (expected.is_dense IS NOT TRUE
       OR (s.first_seq, s.last_seq, s.earliest_at, s.latest_at)
          IS DISTINCT FROM (expected.first_seq, expected.last_seq, expected.earliest_at, expected.latest_at)
       OR s.summary_hash <> sha256(convert_to(coalesce(expected.hashes, '') || '|' || s.content, 'UTF8')))

-- name: current_in_line
-- The current version of a summary: the last one in the chain of summaries that supersede it, or the summary itself.
WITH RECURSIVE line(summary_id) AS (
    SELECT %s::text
    UNION
    SELECT s.summary_id FROM line JOIN session_summaries s ON s.supersedes_id = line.summary_id
)
SELECT summary_id FROM line
WHERE NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = line.summary_id)

-- name: quarantines_changed
-- The conversations (or only the given one) whose current session summary no longer fits the quarantines: a direct or
-- indirect source was quarantined after the summary was made, or was quarantined at that time and has been released
-- since.
WITH RECURSIVE changed AS MATERIALIZED (
    SELECT coalesce(p.message_id, r.message_id, substring(q.target FROM '^msg_([0-9]{1,18})$')::bigint) AS message_id,
           substring(q.target FROM '^sum_.*$') AS summary_id, q.created_at, q.released_at
    FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
    LEFT JOIN file_references r ON r.file_id = q.target AND r.start_at IS NOT NULL
    WHERE %(conversation_id)s::bigint IS NULL OR q.conversation_id = %(conversation_id)s
), holding AS (
    SELECT summary_id, created_at, released_at FROM changed WHERE summary_id IS NOT NULL
    UNION
    SELECT l.summary_id, changed.created_at, changed.released_at
    FROM changed JOIN summary_messages l ON l.message_id = changed.message_id
    UNION
    SELECT p.summary_id, holding.created_at, holding.released_at
    FROM holding JOIN summary_parents p ON p.parent_summary_id = holding.summary_id
), resting AS (
    SELECT k.summary_id, holding.created_at, holding.released_at
    FROM holding JOIN session_summary_memories k ON k.memory_summary_id = holding.summary_id
    UNION
    SELECT k.summary_id, changed.created_at, changed.released_at
    FROM changed JOIN session_summary_memories k ON k.message_id = changed.message_id
)
SELECT DISTINCT s.conversation_id, s.workspace_id
FROM resting JOIN session_summaries s USING (summary_id)
WHERE s.erased_by_id IS NULL
  AND CASE WHEN resting.released_at IS NULL THEN s.created_at < resting.created_at
           ELSE s.created_at BETWEEN resting.created_at AND resting.released_at END
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND (%(conversation_id)s::bigint IS NOT NULL OR NOT EXISTS (
      SELECT FROM history_jobs j WHERE j.conversation_id = s.conversation_id
        AND (j.state IN ('queued', 'leased') OR j.reason = 'changed' AND j.finished_at
             > greatest(now() - interval '1 hour', coalesce(resting.released_at, resting.created_at)))
  ))
ORDER BY s.conversation_id LIMIT %(limit)s

-- name: current_members
-- For each member of an arc or an epoch, the current version of its summary, in the order of the members.
WITH RECURSIVE line(ordinal, summary_id) AS (
    SELECT ordinal, child_id FROM session_summary_children WHERE parent_id = %s
    UNION ALL
    SELECT line.ordinal, s.summary_id FROM line JOIN session_summaries s ON s.supersedes_id = line.summary_id
)
SELECT summary_id FROM line
WHERE NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = line.summary_id)
ORDER BY ordinal

-- name: stale_of_project
-- The current arcs or epochs of a project that must be regenerated: those with a superseded member, and erased ones
-- with a member that is not erased. A redo adds those made without a model or, with `only_waiting`, those that wait for
-- one.
SELECT s.summary_id FROM session_summaries s
WHERE s.project_id = %(project_id)s AND s.depth = %(depth)s
  AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
  AND EXISTS (
      SELECT FROM session_summary_children l
      LEFT JOIN session_summaries newer ON newer.supersedes_id = l.child_id
      JOIN session_summaries child ON child.summary_id = l.child_id
      WHERE l.parent_id = s.summary_id
        AND (newer.summary_id IS NOT NULL OR s.erased_by_id IS NOT NULL AND child.erased_by_id IS NULL)
      UNION ALL
      SELECT WHERE %(is_redo)s AND s.is_degraded AND s.erased_by_id IS NULL
        AND CASE WHEN %(only_waiting)s THEN s.quality @> '{"waits": true}' ELSE s.quality->'lack' IS NOT NULL END
  )
ORDER BY s.earliest_at, s.summary_id

-- name: members_to_be
-- The current session or arc summaries of a project that are in no current arc or epoch, oldest first.
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
-- Conversations without a write for some minutes whose session summary is missing, ends at another message than the
-- head, or belongs to another project. A time ahead is from before the clock was set back, and says nothing.
SELECT c.conversation_id, c.workspace_id
FROM conversations c
LEFT JOIN session_summaries s ON s.conversation_id = c.conversation_id
    AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
WHERE c.next_seq > 1
  AND c.updated_at NOT BETWEEN now() - make_interval(mins => %(minutes)s) AND now() + interval '5 minutes'
  AND (s.summary_id IS NULL OR s.last_seq <> lcm_head_seq(c.next_seq, c.inactive) OR s.project_id IS DISTINCT FROM c.project_id)
  AND EXISTS (SELECT FROM messages m WHERE m.conversation_id = c.conversation_id AND m.erased_by_id IS NULL)
  AND NOT EXISTS (
      SELECT FROM history_jobs j WHERE j.conversation_id = c.conversation_id
        -- If a job ended after the last write and made no summary, another job would make none either.
        AND (j.state IN ('queued', 'leased') OR j.reason = 'quiet'
             AND j.finished_at BETWEEN least(c.updated_at, now() - make_interval(mins => %(minutes)s)) AND statement_timestamp())
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
  -- Compaction regenerates the summaries of the conversation first.
  AND NOT EXISTS (
      SELECT FROM compaction_jobs j WHERE j.conversation_id = s.conversation_id AND j.state IN ('queued', 'leased')
  )
ORDER BY s.conversation_id LIMIT %(limit)s

-- name: projects_with_work
-- Projects with an arc or epoch to regenerate, or with enough sessions or arcs for a new summary. An arc or epoch whose
-- members are all erased is not regenerated.
WITH RECURSIVE present AS (
    SELECT s.summary_id, s.project_id, s.depth, s.erased_by_id FROM session_summaries s
    WHERE s.project_id IS NOT NULL
      AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
), members(parent_id, summary_id, is_renewed) AS (
    SELECT l.parent_id, l.child_id, false
    FROM present JOIN session_summary_children l ON l.parent_id = present.summary_id
    UNION
    SELECT members.parent_id, s.summary_id, true
    FROM members JOIN session_summaries s ON s.supersedes_id = members.summary_id
), wanted AS (
    SELECT project_id FROM present
    WHERE depth < 2 AND erased_by_id IS NULL AND summary_id NOT IN (SELECT summary_id FROM members)
    GROUP BY project_id, depth
    HAVING count(*) >= CASE depth WHEN 0 THEN %(sessions_per_arc)s ELSE %(arcs_per_epoch)s END
    UNION
    SELECT parent.project_id
    FROM present parent JOIN members ON members.parent_id = parent.summary_id
    LEFT JOIN present member ON member.summary_id = members.summary_id AND member.erased_by_id IS NULL
    GROUP BY parent.project_id, parent.summary_id, parent.erased_by_id
    HAVING count(member.summary_id) > 0 AND (bool_or(members.is_renewed) OR parent.erased_by_id IS NOT NULL)
)
SELECT project_id, workspace_id FROM wanted JOIN projects USING (project_id)
WHERE NOT EXISTS (
    SELECT FROM history_jobs j WHERE j.project_id = projects.project_id AND j.state IN ('queued', 'leased')
)
ORDER BY project_id LIMIT %(limit)s

-- name: history_waiting_for_a_model
-- The conversations and projects with a current summary that waits for a model, oldest first. Left out are those with
-- too many attempts since the summary was made, or with a last attempt that is too recent.
SELECT s.workspace_id, s.conversation_id, CASE WHEN s.depth > 0 THEN s.project_id END AS project_id
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
  AND tried.count < %(most_attempts)s
  AND (tried.last_at IS NULL
       OR tried.last_at + least(%(longest_pause)s, %(pause)s * power(2, least(tried.count, 10))) <= %(now)s)
ORDER BY s.created_at, s.summary_id LIMIT %(limit)s
