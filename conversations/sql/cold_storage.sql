-- name: next_stretch
-- The hot messages after a seq that fit into one block, with the bytes of their texts and search terms.
-- The last message may exceed the limit, so that at least one is returned. Sizes are as stored, possibly compressed: no
-- value is decompressed just to measure it.
WITH next AS MATERIALIZED (
    SELECT message_id, seq,
           pg_column_size(content) + pg_column_size(metadata) + coalesce(pg_column_size(exact), 0) AS texts,
           coalesce(pg_column_size(content_tsv), 0) AS terms
    FROM messages
    WHERE conversation_id = %(conversation_id)s AND seq > %(after_seq)s
      AND cold_block_id IS NULL AND erased_by_id IS NULL
    ORDER BY seq LIMIT %(most_messages)s
), sized AS (
    SELECT next.message_id, next.seq, next.terms, next.texts + coalesce(sum(
               coalesce(pg_column_size(text_content), 0) + coalesce(pg_column_size(tool_input), 0)
               + coalesce(pg_column_size(tool_output), 0) + coalesce(pg_column_size(tool_error), 0)
               + coalesce(pg_column_size(tool_title), 0) + coalesce(pg_column_size(patch_files), 0)
               + coalesce(pg_column_size(file_url), 0) + coalesce(pg_column_size(subtask_prompt), 0)
               + coalesce(pg_column_size(subtask_desc), 0) + coalesce(pg_column_size(metadata), 0)
               + coalesce(pg_column_size(exact), 0)
           ) FILTER (WHERE (part_type = 'compaction' AND is_synthetic AND is_ignored) IS NOT TRUE), 0) AS texts
    FROM next LEFT JOIN message_parts part ON part.message_id = next.message_id
    GROUP BY next.message_id, next.seq, next.terms, next.texts
)
SELECT message_id, seq, (texts + terms)::bigint
FROM (SELECT *, sum(texts) OVER (ORDER BY seq) - texts AS before FROM sized) AS stretch
WHERE before < %(most_bytes)s ORDER BY seq

-- name: texts_of_messages
-- The texts of messages as their columns hold them.
SELECT message_id, content, metadata::text, exact::text, metadata_hash
FROM messages WHERE message_id = ANY(%s) ORDER BY seq

-- name: texts_of_parts
-- The texts of parts as their columns hold them, in the order of `PART_TEXTS`, and whether the caller appended the
-- part: compaction adds parts, too. A short URL is not returned, because it stays in its row, so that searches find it.
SELECT message_id, part_id, part_hash, (part_type = 'compaction' AND is_synthetic AND is_ignored) IS NOT TRUE,
       text_content, tool_input::text, tool_output, tool_error, tool_title, patch_files,
       CASE WHEN length(file_url) > %(longest_url)s THEN file_url END,
       subtask_prompt, subtask_desc, metadata::text, exact::text
FROM message_parts WHERE message_id = ANY(%(message_ids)s) ORDER BY message_id, ordinal

-- name: empty_messages
-- Remove the texts of hot messages from their rows, and set the id of the cold block that contains them.
UPDATE messages SET content = '', metadata = '{}', exact = NULL, cold_block_id = %s
WHERE message_id = ANY(%s) AND cold_block_id IS NULL AND erased_by_id IS NULL

-- name: empty_parts
-- Remove the texts of parts from their rows. The mark in `exact` names the cold block that contains them.
UPDATE message_parts
SET text_content = NULL, tool_input = NULL, tool_output = NULL, tool_error = NULL, tool_title = NULL,
    patch_files = NULL, subtask_prompt = NULL, subtask_desc = NULL, metadata = NULL,
    file_url = CASE WHEN length(file_url) > %(longest_url)s THEN NULL ELSE file_url END,
    exact = %(mark)s::json
WHERE part_id = ANY(%(part_ids)s)

-- name: fill_messages
-- Put the texts of messages back into the rows that name this block.
UPDATE messages SET content = t.content, metadata = t.metadata::jsonb, exact = t.exact::json, cold_block_id = NULL
FROM json_to_recordset(%s) AS t(message_id bigint, content text, metadata text, exact text)
WHERE messages.message_id = t.message_id AND messages.cold_block_id = %s

-- name: fill_parts
-- Put the texts of parts back into their rows.
UPDATE message_parts part
SET text_content = t.text_content, tool_input = t.tool_input::jsonb, tool_output = t.tool_output,
    tool_error = t.tool_error, tool_title = t.tool_title, patch_files = t.patch_files,
    file_url = coalesce(t.file_url, part.file_url), subtask_prompt = t.subtask_prompt,
    subtask_desc = t.subtask_desc, metadata = t.metadata::jsonb, exact = t.exact::json
FROM json_to_recordset(%s) AS t(
    part_id text, text_content text, tool_input text, tool_output text, tool_error text, tool_title text,
    patch_files text[], file_url text, subtask_prompt text, subtask_desc text, metadata text, exact text
)
WHERE part.part_id = t.part_id
