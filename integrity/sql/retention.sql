-- name: due_conversations
-- The conversations that are due for the cold tier, longest unused first.
-- `cold_progress` records up to which seq a conversation is cold, so the messages themselves need not be read.
SELECT c.conversation_id
FROM conversations c JOIN workspaces w USING (workspace_id) LEFT JOIN cold_progress p USING (conversation_id)
WHERE (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
  AND coalesce(w.cold_after_days, %(default)s) > 0
  AND c.last_used_on <= (now() AT TIME ZONE 'UTC')::date - coalesce(w.cold_after_days, %(default)s)
  AND coalesce(p.through_seq, 0) < c.next_seq - 1
ORDER BY c.last_used_on, c.conversation_id LIMIT %(limit)s

-- name: space_used
-- Counts and bytes of a workspace, without the bytes of its hot texts.
WITH owned AS (
    SELECT conversation_id, next_seq - 1 AS messages, cold_messages FROM conversations
    WHERE %(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s
)
SELECT conversations, messages, messages - cold_messages - erased_messages AS hot_messages, cold_messages, cold_blocks,
       cold_bytes, cold_bytes_before, cold_bytes_before - cold_bytes AS bytes_saved, erased_messages, summaries,
       summary_bytes, files, file_bytes
FROM (SELECT count(*) AS conversations, coalesce(sum(messages), 0)::bigint AS messages,
             coalesce(sum(cold_messages), 0)::bigint AS cold_messages
      FROM owned) c,
     (SELECT count(*) AS cold_blocks, coalesce(sum(octet_length(packed)), 0)::bigint AS cold_bytes,
             coalesce(sum(bytes_before), 0)::bigint AS cold_bytes_before
      FROM cold_blocks JOIN owned USING (conversation_id)) b,
     (SELECT count(*) AS summaries,
             coalesce(sum(pg_column_size(content) + coalesce(pg_column_size(content_tsv), 0)), 0)::bigint
                 AS summary_bytes
      FROM summaries JOIN owned USING (conversation_id)) s,
     (SELECT count(*) AS files, coalesce(sum(byte_size), 0)::bigint AS file_bytes
      FROM large_files JOIN owned USING (conversation_id) WHERE erased_by_id IS NULL) f,
     (SELECT count(*) AS erased_messages
      FROM messages JOIN owned USING (conversation_id) WHERE erased_by_id IS NOT NULL) e

-- name: hot_bytes
-- The bytes of texts, parts and search terms in rows, as they are stored (possibly compressed).
WITH owned AS (
    SELECT conversation_id FROM conversations
    WHERE %(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s
)
SELECT coalesce(sum(
           pg_column_size(m.content) + coalesce(pg_column_size(m.content_tsv), 0) + pg_column_size(m.metadata)
           + coalesce(pg_column_size(m.exact), 0)
       ), 0)::bigint + (
           SELECT coalesce(sum(
                      coalesce(pg_column_size(p.text_content), 0) + coalesce(pg_column_size(p.tool_input), 0)
                      + coalesce(pg_column_size(p.tool_output), 0) + coalesce(pg_column_size(p.tool_error), 0)
                      + coalesce(pg_column_size(p.tool_title), 0) + coalesce(pg_column_size(p.patch_files), 0)
                      + coalesce(pg_column_size(p.file_url), 0) + coalesce(pg_column_size(p.subtask_prompt), 0)
                      + coalesce(pg_column_size(p.subtask_desc), 0) + coalesce(pg_column_size(p.metadata), 0)
                      + coalesce(pg_column_size(p.exact), 0)
                  ), 0)
           FROM message_parts p JOIN messages m USING (message_id) JOIN owned USING (conversation_id)
           WHERE m.cold_block_id IS NULL
       )::bigint
FROM messages m JOIN owned USING (conversation_id) WHERE m.cold_block_id IS NULL
