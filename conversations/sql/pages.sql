-- How many rows of a list fit into the bytes of one page.

-- name: messages_that_fit
-- For the messages after a seq: their number up to the limit, and the number of these that fit.
-- Field names, ids and hashes are estimated as 600 bytes for a message and 150 for a part, and the texts of a cold
-- message (not in its row) as four bytes for each token.
SELECT count(*), count(*) FILTER (WHERE total <= %(most_bytes)s)
FROM (
  SELECT sum(weight) OVER (ORDER BY seq) AS total
  FROM (
    SELECT m.seq,
           600 + coalesce(octet_length(m.content), 0)
           + octet_length(concat(m.metadata, m.exact))
           + CASE WHEN m.cold_block_id IS NULL THEN 0 ELSE 4 * m.token_count END
           + coalesce((
               SELECT sum(
                 150
                 + coalesce(octet_length(p.text_content), 0) + coalesce(octet_length(p.tool_output), 0) + coalesce(octet_length(p.tool_error), 0)
                 + coalesce(octet_length(p.file_url), 0) + coalesce(octet_length(p.subtask_prompt), 0) + coalesce(octet_length(p.tool_title), 0)
                 + coalesce(octet_length(p.subtask_desc), 0) + coalesce(octet_length(p.step_reason), 0) + coalesce(octet_length(p.snapshot_hash), 0)
                 + octet_length(concat(p.tool_input, p.metadata, p.exact, p.patch_files))
               ) FROM message_parts p WHERE p.message_id = m.message_id
             ), 0) AS weight
    FROM messages m WHERE m.conversation_id = %(conversation_id)s AND m.seq > %(after_seq)s
    ORDER BY m.seq LIMIT %(limit)s
  ) AS weighed
) AS added

-- name: conversations_that_fit
-- A template: the ids of the conversations that fit into a page, and the number of conversations up to its limit.
SELECT coalesce(array_agg(conversation_id ORDER BY place) FILTER (WHERE total <= %(most_bytes)s OR place = 1), '{{}}'), count(*)
FROM (
  SELECT conversation_id, row_number() OVER in_order AS place,
         sum(500 + octet_length(concat(metadata, overrides))) OVER in_order AS total
  FROM (
    SELECT c.conversation_id, c.metadata, c.overrides FROM conversations c
    WHERE (%(after_id)s::bigint IS NULL OR c.conversation_id {behind} %(after_id)s)
      AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
      AND (%(project)s::text IS NULL OR EXISTS (
          SELECT FROM projects p WHERE p.project_id = c.project_id AND p.name = %(project)s))
      AND (%(session_prefix)s::text IS NULL OR starts_with(c.session_id, %(session_prefix)s))
      AND (%(metadata)s::jsonb IS NULL OR c.metadata @> %(metadata)s)
      AND (%(updated_since)s::timestamptz IS NULL OR c.updated_at >= %(updated_since)s)
    ORDER BY c.conversation_id {direction} LIMIT %(limit)s
  ) AS listed
  WINDOW in_order AS (ORDER BY conversation_id {direction})
) AS added

-- name: first_prompts
-- The beginning of the first prompt of each conversation without a title. A text that a host added is no prompt.
SELECT c.conversation_id, found.prompt
FROM conversations c CROSS JOIN LATERAL (
  SELECT left(ltrim(coalesce(p.text_content, m.content), E' \n\r\t'), %s) AS prompt
  FROM messages m LEFT JOIN message_parts p ON p.message_id = m.message_id AND p.part_type = 'text'
  WHERE m.conversation_id = c.conversation_id AND m.seq <= %s AND m.role = 'user'
    AND (p.part_id IS NOT NULL OR m.chained_parts = 0) AND p.is_synthetic IS NOT TRUE
    AND coalesce(p.text_content, m.content) !~ '^\s*(<|# AGENTS\.md |$)'
  ORDER BY m.seq, p.ordinal LIMIT 1
) AS found
WHERE c.conversation_id = ANY(%s) AND c.title IS NULL AND c.quarantined = 0
