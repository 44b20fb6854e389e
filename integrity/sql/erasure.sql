-- name: messages_to_erase
-- Those of the given messages that are not erased yet.
SELECT m.message_id, m.seq, m.token_count, encode(m.chain_hash, 'hex'), m.cold_block_id,
       (SELECT count(*) FROM message_parts p WHERE p.message_id = m.message_id)
FROM messages m
WHERE m.conversation_id = %s AND m.message_id = ANY(%s) AND m.erased_by_id IS NULL ORDER BY m.seq

-- name: summaries_to_erase
-- Every summary made from these messages, directly or through others, superseded ones included.
WITH RECURSIVE above AS (
    SELECT summary_id FROM summary_messages WHERE message_id = ANY(%s)
    UNION
    SELECT p.summary_id FROM above JOIN summary_parents p ON p.parent_summary_id = above.summary_id
)
SELECT s.summary_id, s.depth, s.first_seq, s.last_seq, s.token_count, c.summary_id IS NOT NULL
FROM above JOIN summaries s USING (summary_id)
LEFT JOIN context_items c ON c.summary_id = s.summary_id
WHERE s.erased_by_id IS NULL
ORDER BY s.first_seq, s.depth DESC, s.summary_id

-- name: files_to_erase
-- The given files and those that these messages need; whether other messages need each, and other files have its bytes.
SELECT f.file_id, f.byte_size,
       EXISTS (
           SELECT FROM file_references other JOIN messages m USING (message_id)
           WHERE other.file_id = f.file_id AND m.message_id <> ALL(%(messages)s) AND m.erased_by_id IS NULL
       ),
       EXISTS (
           SELECT FROM large_files same
           WHERE same.storage_uri = f.storage_uri AND same.erased_by_id IS NULL
             AND same.file_id <> f.file_id AND same.file_id <> ALL(%(files)s)
       )
FROM large_files f
WHERE f.conversation_id = %(id)s AND f.erased_by_id IS NULL
  AND (f.file_id = ANY(%(files)s)
       OR EXISTS (SELECT FROM file_references r WHERE r.file_id = f.file_id AND r.message_id = ANY(%(messages)s)))
ORDER BY f.file_id

-- name: outputs_of_map_runs
-- The files that map runs wrote from these files or from each other; whether each belongs to this conversation. A run
-- whose failed items were retried has written its files several times; its events name all of them.
WITH RECURSIVE made(file_id) AS (
    SELECT unnest(%(files)s::text[])
    UNION
    SELECT written.file_id FROM made JOIN map_runs r ON r.input_file_id = made.file_id
    JOIN map_events e ON e.run_id = r.run_id AND e.event = 'finished',
    LATERAL (VALUES (e.details ->> 'output_file_id'), (e.details ->> 'failures_file_id')) AS written(file_id)
    WHERE written.file_id IS NOT NULL
)
SELECT f.file_id, f.conversation_id = %(id)s FROM made JOIN large_files f USING (file_id)
WHERE f.erased_by_id IS NULL AND f.file_id <> ALL(%(files)s) ORDER BY f.file_id

-- name: erase_messages
-- Remove the texts of messages; rows, positions (`seq`) and hashes stay. A hash replaces the idempotency key. A fork's copy
-- of an erased message has the hash already. If another message has it, that one is found by the key.
UPDATE messages m SET content = '', exact = NULL, metadata = '{}', author = NULL, cold_block_id = NULL,
                      erased_by_id = %s,
                      idempotency_key = CASE
                        WHEN idempotency_key ~ '^erased:[0-9a-f]{64}$' THEN idempotency_key
                        WHEN NOT EXISTS (
                          SELECT FROM messages other WHERE other.conversation_id = m.conversation_id
                             AND other.idempotency_key = lcm_erased_key(m.idempotency_key)
                        ) THEN lcm_erased_key(idempotency_key)
                      END
WHERE message_id = ANY(%s)

-- name: erase_parts
-- Remove the texts of parts, except parts that compaction added: those hold only two ids.
UPDATE message_parts
SET text_content = NULL, tool_input = NULL, tool_output = NULL, tool_error = NULL, tool_title = NULL,
    patch_files = NULL, file_url = NULL, subtask_prompt = NULL, subtask_desc = NULL, metadata = NULL, exact = NULL,
    patch_hash = NULL, file_mime = NULL, file_name = NULL, subtask_agent = NULL, step_reason = NULL,
    snapshot_hash = NULL
WHERE message_id = ANY(%s) AND (part_type = 'compaction' AND is_synthetic AND is_ignored) IS NOT TRUE

-- name: erase_files
-- Remove names and descriptions of files; the bytes are removed after the commit.
UPDATE large_files SET file_name = NULL, mime_type = NULL, exploration_summary = NULL, erased_by_id = %s
WHERE file_id = ANY(%s)

-- name: texts_elsewhere
-- How many texts outside of messages, summaries and files may quote the erased texts: one column for each kind.
WITH RECURSIVE touched AS (
    SELECT l.summary_id FROM session_summaries s JOIN session_summary_memories l USING (summary_id)
    WHERE s.conversation_id = %(conversation)s AND s.erased_by_id IS NULL
      AND coalesce(l.memory_summary_id, 'msg_' || l.message_id) = ANY(%(ids)s)
    UNION
    SELECT l.parent_id FROM touched JOIN session_summary_children l ON l.child_id = touched.summary_id
), history AS (
    SELECT FROM touched JOIN session_summaries USING (summary_id) WHERE erased_by_id IS NULL
), reasons AS (
    SELECT %(whole)s OR q.target = ANY(%(ids)s) OR EXISTS (
               SELECT FROM message_parts p JOIN messages m USING (message_id)
               WHERE p.part_id = q.target AND 'msg_' || m.message_id = ANY(%(ids)s)
           ) AS is_about_it
    FROM quarantines q WHERE q.conversation_id = %(conversation)s AND q.reason <> ''
)
SELECT (c.title IS NOT NULL)::int AS "title of the conversation",
       (c.metadata <> '{}')::int AS "metadata of the conversation",
       (coalesce(c.overrides ->> 'summary_instructions', '') <> '')::int AS "summary_instructions of the conversation",
       (SELECT count(*) FROM compaction_plans p
        WHERE p.conversation_id = c.conversation_id AND coalesce(p.policy ->> 'summary_instructions', '') <> ''
       ) AS "summary_instructions kept with a plan",
       (SELECT count(*) FROM compaction_boundaries b
        WHERE b.conversation_id = c.conversation_id AND b.metadata <> '{}') AS "metadata of a boundary",
       (SELECT count(*) FROM reasons WHERE is_about_it) AS "reason of a quarantine",
       (SELECT count(*) FROM reasons WHERE NOT is_about_it) AS "reason of a quarantine of something else",
       (SELECT count(*) FROM history) AS "session, arc or epoch summary",
       (SELECT count(*) FROM grants g
        WHERE g.workspace_id = c.workspace_id AND g.question <> '' AND EXISTS (
            SELECT FROM unnest(g.item_ids) AS item(id) JOIN unnest(%(ids)s::text[]) AS erased(id) USING (id)
        )) AS "question of a grant",
       (SELECT count(*) FROM map_runs r WHERE r.prompt <> '{{item}}'
          AND (r.input_file_id = ANY(%(ids)s) OR r.output_file_id = ANY(%(ids)s) OR r.failures_file_id = ANY(%(ids)s))
       ) AS "map run over a file",
       (SELECT count(*) FROM map_runs r
        WHERE r.input_file_id = ANY(%(ids)s) OR r.output_file_id = ANY(%(ids)s) OR r.failures_file_id = ANY(%(ids)s)
       ) AS "output_schema and delegation of a map run",
       %(written_elsewhere)s::bigint AS "output of a map run in another conversation",
       (SELECT count(*) FROM uploads u
        WHERE u.conversation_id = %(conversation)s AND (u.file_name IS NOT NULL OR u.mime_type IS NOT NULL)
          AND (%(whole)s OR u.file_id = ANY(%(ids)s))) AS "file name of an upload",
       (SELECT count(*) FROM journal_entries j WHERE j.conversation_id = c.conversation_id AND j.entry IS NOT NULL
       ) AS "entry of the host's journal",
       (SELECT count(*) FROM head_moves h WHERE h.conversation_id = c.conversation_id AND h.reason <> ''
       ) AS "reason of a move of the head",
       (SELECT count(*) FROM uploads u WHERE u.conversation_id = c.conversation_id AND u.file_id IS NULL
       ) AS "unfinished upload",
       (SELECT count(*) FROM compaction_boundaries b WHERE b.conversation_id = c.conversation_id
       ) AS "host_reference of a boundary",
       1 AS "session_id of the conversation"
FROM conversations c WHERE c.conversation_id = %(conversation)s

-- name: copies_elsewhere
-- The other conversations of the workspace with messages that have the text of an erased one, found by hash. Messages
-- without text, such as calls of tools, are not compared.
SELECT c.conversation_id, c.session_id, count(*)
FROM (
    SELECT DISTINCT content_hash FROM messages
    WHERE 'msg_' || message_id = ANY(%(ids)s) AND conversation_id = %(conversation)s AND content_hash <> sha256('')
) AS erased
JOIN messages copy USING (content_hash)
JOIN conversations c ON c.conversation_id = copy.conversation_id
WHERE copy.conversation_id <> %(conversation)s AND copy.erased_by_id IS NULL
  AND c.workspace_id = (SELECT workspace_id FROM conversations WHERE conversation_id = %(conversation)s)
GROUP BY c.conversation_id
ORDER BY count(*) DESC, c.conversation_id
LIMIT 100

-- name: erase_conversation_labels
-- Remove title, metadata and instructions of a conversation.
UPDATE conversations SET title = NULL, metadata = '{}', overrides = overrides - 'summary_instructions'
WHERE conversation_id = %(conversation)s

-- name: erase_boundary_metadata
-- Clear the metadata of the conversation's boundaries; the boundaries remain.
UPDATE compaction_boundaries SET metadata = '{}' WHERE conversation_id = %(conversation)s

-- name: erase_journal
-- Remove the entries of the host's journal; their positions, uuids and hashes remain.
UPDATE journal_entries SET entry = NULL, erased_by_id = %(act)s
WHERE conversation_id = %(conversation)s AND entry IS NOT NULL

-- name: erase_plan_instructions
-- Remove the instructions that are stored with compaction plans.
UPDATE compaction_plans SET policy = policy || '{"summary_instructions": ""}'
WHERE conversation_id = %(conversation)s AND coalesce(policy ->> 'summary_instructions', '') <> ''

-- name: erase_repair_steps
-- Remove the values that repair steps keep.
UPDATE repair_steps SET before = '{}', after = '{}', undo = NULL WHERE conversation_id = %(conversation)s

-- name: erase_quarantine_reasons
-- Remove the reasons of quarantines.
UPDATE quarantines q SET reason = ''
WHERE q.conversation_id = %(conversation)s AND q.reason <> '' AND (%(whole)s OR q.target = ANY(%(ids)s) OR EXISTS (
    SELECT FROM message_parts p JOIN messages m USING (message_id)
    WHERE p.part_id = q.target AND 'msg_' || m.message_id = ANY(%(ids)s)
))

-- name: erase_grant_questions
-- Remove the questions of grants.
UPDATE grants g SET question = '' FROM conversations c
WHERE c.conversation_id = %(conversation)s AND g.workspace_id = c.workspace_id AND g.question <> '' AND EXISTS (
    SELECT FROM unnest(g.item_ids) AS item(id) JOIN unnest(%(ids)s::text[]) AS erased(id) USING (id)
)

-- name: erase_upload_labels
-- Remove the labels of uploads.
UPDATE uploads u SET file_name = NULL, mime_type = NULL
WHERE u.conversation_id = %(conversation)s AND (u.file_name IS NOT NULL OR u.mime_type IS NOT NULL)
  AND (%(whole)s OR u.file_id = ANY(%(ids)s))

-- name: erase_map_runs
-- Remove prompts, inputs and outputs of the map runs whose files are erased, and cancel these runs.
WITH touched AS (
    UPDATE map_runs r SET prompt = '{{item}}', state = 'cancelled', pause_reason = '',
                          finished_at = coalesce(finished_at, statement_timestamp())
    WHERE r.input_file_id = ANY(%(ids)s) OR r.output_file_id = ANY(%(ids)s) OR r.failures_file_id = ANY(%(ids)s)
    RETURNING r.run_id, r.workspace_id
), items AS (
    UPDATE map_items i SET input = '', validation_errors = '', last_error = '', leased_until = NULL, fence = fence + 1,
                           output = CASE WHEN i.output IS NOT NULL THEN '' END,
                           state = CASE WHEN i.state = 'leased' THEN 'queued' ELSE i.state END
    FROM touched WHERE i.run_id = touched.run_id
)
INSERT INTO map_events (run_id, workspace_id, actor, event, details)
SELECT run_id, workspace_id, 'erasure', 'cancelled', '{"erased": true}' FROM touched

-- name: hold_project
-- Lock the conversation's project, so that no arc or epoch is written from the erased texts at the same time.
SELECT p.project_id FROM projects p JOIN conversations c USING (project_id)
WHERE c.conversation_id = %(conversation)s FOR NO KEY UPDATE OF p

-- name: erase_history
-- Remove the texts of session, arc and epoch summaries made from what is erased, superseded ones included.
WITH RECURSIVE touched AS (
    SELECT l.summary_id FROM session_summaries s JOIN session_summary_memories l USING (summary_id)
    WHERE s.conversation_id = %(conversation)s
      AND coalesce(l.memory_summary_id, 'msg_' || l.message_id) = ANY(%(ids)s)
    UNION
    SELECT l.parent_id FROM touched JOIN session_summary_children l ON l.child_id = touched.summary_id
)
UPDATE session_summaries s SET content = '', erased_by_id = %(act)s
FROM touched WHERE s.summary_id = touched.summary_id AND s.erased_by_id IS NULL
