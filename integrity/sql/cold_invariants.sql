-- name: cold_messages_point_at_their_block
-- Cold messages outside their block's range, and blocks whose number of messages is wrong.
SELECT m.conversation_id, 'msg_' || m.message_id,
       format('is outside the range of cold block %%s', m.cold_block_id)
FROM messages m LEFT JOIN cold_blocks b USING (cold_block_id)
WHERE m.conversation_id = ANY(%(ids)s) AND m.cold_block_id IS NOT NULL
  AND (b.conversation_id = m.conversation_id AND m.seq BETWEEN b.first_seq AND b.last_seq) IS NOT TRUE
UNION ALL
SELECT b.conversation_id, 'cold_' || b.cold_block_id,
       format('is named by %%s messages but holds %%s', count(m.message_id), b.message_count)
FROM cold_blocks b LEFT JOIN messages m USING (cold_block_id)
WHERE b.conversation_id = ANY(%(ids)s)
GROUP BY b.cold_block_id HAVING count(m.message_id) NOT BETWEEN 1 AND b.message_count

-- name: texts_leave_by_recorded_acts
-- Erased and archived rows without an audit entry of their erasure or archiving.
WITH erased AS (
    SELECT conversation_id, 'msg_' || message_id AS id, erased_by_id
    FROM messages WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
    UNION ALL
    SELECT conversation_id, summary_id, erased_by_id
    FROM summaries WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
    UNION ALL
    SELECT conversation_id, file_id, erased_by_id
    FROM large_files WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
    UNION ALL
    SELECT conversation_id, 'entry_' || journal_entry_id, erased_by_id
    FROM journal_entries WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NOT NULL
)
SELECT e.conversation_id, e.id, format('names act %%s as its erasure, which erased nothing here', e.erased_by_id)
FROM erased e LEFT JOIN audit_log a ON a.audit_id = e.erased_by_id
-- An imported ledger may contain erased messages.
WHERE coalesce(a.act, '') NOT IN ('erase', 'import_ledger')
   OR a.conversation_id IS DISTINCT FROM e.conversation_id
UNION ALL
SELECT m.conversation_id, 'msg_' || m.message_id,
       format('is not among the messages that act %%s erased', m.erased_by_id)
FROM messages m
JOIN audit_log a ON a.audit_id = m.erased_by_id AND a.act = 'erase'
LEFT JOIN (
    SELECT e.act_id, unnest(e.message_ids) AS message_id FROM erasures e WHERE e.conversation_id = ANY(%(ids)s)
) named ON named.act_id = a.audit_id AND named.message_id = m.message_id
WHERE m.conversation_id = ANY(%(ids)s) AND named.message_id IS NULL
UNION ALL
SELECT b.conversation_id, 'cold_' || b.cold_block_id, 'has no archive act in the audit log'
FROM cold_blocks b
WHERE b.conversation_id = ANY(%(ids)s) AND NOT EXISTS (
    SELECT FROM audit_log a WHERE a.conversation_id = b.conversation_id AND a.act = 'archive')

-- name: quarantines_hold_what_there_is
-- Open quarantines of rows that do not exist in their conversation.
SELECT q.conversation_id, q.target,
       format('is quarantined in conversation %%s but does not exist there', q.conversation_id)
FROM quarantines q
WHERE q.conversation_id = ANY(%(ids)s) AND q.released_at IS NULL
  AND CASE split_part(q.target, '_', 1)
      WHEN 'msg' THEN NOT EXISTS (
          SELECT FROM messages m
          WHERE m.conversation_id = q.conversation_id AND 'msg_' || m.message_id = q.target)
      WHEN 'sum' THEN NOT EXISTS (
          SELECT FROM summaries s
          WHERE s.conversation_id = q.conversation_id AND s.summary_id = q.target)
      WHEN 'part' THEN NOT EXISTS (
          SELECT FROM message_parts p JOIN messages m USING (message_id)
          WHERE m.conversation_id = q.conversation_id AND p.part_id = q.target)
      WHEN 'file' THEN NOT EXISTS (
          SELECT FROM large_files f
          WHERE f.conversation_id = q.conversation_id AND f.file_id = q.target)
      ELSE false END

-- name: emptied_rows_hold_no_text
-- Rows that are cold or erased and still hold text.
-- The columns are those of `cold_texts.PART_TEXTS`, and those that `erase_parts` empties.
SELECT m.conversation_id, 'msg_' || m.message_id, 'is cold or erased, but its row holds text'
FROM messages m
WHERE m.conversation_id = ANY(%(ids)s) AND (m.cold_block_id IS NOT NULL OR m.erased_by_id IS NOT NULL)
  AND (m.content <> '' OR m.metadata <> '{}' OR m.exact IS NOT NULL
       OR m.erased_by_id IS NOT NULL AND (m.author IS NOT NULL OR m.idempotency_key !~ '^erased:[0-9a-f]{64}$'))
UNION ALL
SELECT m.conversation_id, p.part_id, 'is cold or erased, but its row holds text'
FROM messages m JOIN message_parts p USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
  -- Compared as text: `->` fails for exact values with a NUL, and the planner may evaluate it for any row.
  AND (m.cold_block_id IS NOT NULL AND starts_with(p.exact::text, '{"cold_block_id":') AND (
           num_nonnulls(p.text_content, p.tool_input, p.tool_output, p.tool_error, p.tool_title, p.patch_files,
                        p.subtask_prompt, p.subtask_desc, p.metadata) > 0
           OR length(p.file_url) > %(longest_url)s)
       OR m.erased_by_id IS NOT NULL AND num_nonnulls(
           p.text_content, p.tool_input, p.tool_output, p.tool_error, p.tool_title, p.patch_files, p.file_url,
           p.subtask_prompt, p.subtask_desc, p.metadata, p.exact, p.patch_hash, p.file_mime, p.file_name,
           p.subtask_agent, p.step_reason, p.snapshot_hash) > 0
       -- An erasure keeps the parts that compaction added: they contain no text of the caller.
       AND (p.part_type = 'compaction' AND p.is_synthetic AND p.is_ignored) IS NOT TRUE)
UNION ALL
SELECT s.conversation_id, s.summary_id, 'is erased but has text'
FROM summaries s
WHERE s.conversation_id = ANY(%(ids)s) AND s.erased_by_id IS NOT NULL AND s.content <> ''
UNION ALL
SELECT f.conversation_id, f.file_id, 'is erased but has a name or a description'
FROM large_files f
WHERE f.conversation_id = ANY(%(ids)s) AND f.erased_by_id IS NOT NULL
  AND num_nonnulls(f.file_name, f.mime_type, f.exploration_summary) > 0

-- name: vector_tables
-- The existing tables of vectors, one for each embedder.
SELECT vectors::text FROM embedders, to_regclass('embedding_vectors_' || embedder_id) AS vectors
WHERE vectors IS NOT NULL ORDER BY embedder_id

-- name: vectors_left
-- Messages that must not have vectors, and have some in `{table}`.
SELECT m.conversation_id, 'msg_' || m.message_id, 'is erased, cold or quarantined, and has vectors in {table}'
FROM messages m
WHERE m.conversation_id = ANY(%(ids)s)
  AND (m.erased_by_id IS NOT NULL OR m.cold_block_id IS NOT NULL OR EXISTS (
      SELECT FROM quarantines q
      WHERE q.conversation_id = m.conversation_id AND q.released_at IS NULL AND (
          q.target = 'msg_' || m.message_id
          OR q.target IN (SELECT part_id FROM message_parts p WHERE p.message_id = m.message_id)
      )
  ))
  AND EXISTS (SELECT FROM {table} v WHERE v.message_id = m.message_id)
