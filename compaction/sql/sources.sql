-- name: context_slots
-- The active context, with the ids of the tool calls that each message makes or answers.
-- The last column is true for a user's message that has only tool results, and no text or file.
SELECT c.ordinal, c.token_count, c.message_id, c.summary_id, m.role::text, s.depth, s.last_seq, parts.calls,
       m.role = 'user' AND parts.are_tools AND NOT parts.are_words
FROM context_items c
LEFT JOIN messages m ON m.message_id = c.message_id
LEFT JOIN summaries s ON s.summary_id = c.summary_id
LEFT JOIN LATERAL (
    SELECT array_agg(p.tool_call_id) FILTER (WHERE p.part_type = 'tool' AND p.tool_call_id IS NOT NULL) AS calls,
           bool_or(p.part_type = 'tool') AS are_tools, bool_or(p.part_type IN ('text', 'file')) AS are_words
    FROM message_parts p WHERE p.message_id = c.message_id
) AS parts ON true
WHERE c.conversation_id = %(conversation_id)s
ORDER BY c.ordinal

-- name: source_messages
-- Messages as a summarizer needs them. A user's message with only tool results gets the role `tool`. The last two
-- columns have a placeholder for each image or file without a name, and the texts that the host added, each with the id
-- of its part, to find a text that is in a cold block.
SELECT message_id, seq,
       CASE WHEN role = 'user' AND EXISTS (
                SELECT FROM message_parts p WHERE p.message_id = m.message_id
                HAVING bool_or(p.part_type = 'tool') AND NOT bool_or(p.part_type IN ('text', 'file'))
            ) THEN 'tool' ELSE role::text END,
       author, content, created_at, token_count, content_hash,
       ARRAY(SELECT DISTINCT file_id FROM file_references r WHERE r.message_id = m.message_id ORDER BY file_id),
       cold_block_id, erased_by_id,
       ARRAY(SELECT CASE WHEN p.file_mime LIKE 'image/%%' THEN '[image]' ELSE '[file]' END FROM message_parts p
             WHERE p.message_id = m.message_id AND p.part_type = 'file' AND p.file_name IS NULL ORDER BY p.ordinal),
       ARRAY(SELECT ARRAY[p.part_id, p.text_content] FROM message_parts p
             WHERE p.message_id = m.message_id AND p.part_type = 'text' AND p.is_synthetic ORDER BY p.ordinal)
FROM messages m WHERE message_id = ANY(%s)

-- name: newest_turns
-- The newest messages in the context except system messages, each shortened to a maximum length.
SELECT left(m.content, %s), m.message_id, m.cold_block_id
FROM context_items c JOIN messages m USING (message_id)
WHERE c.conversation_id = %s AND m.role <> 'system' ORDER BY c.ordinal DESC LIMIT %s

-- name: summary_remains
-- Whether any message below a summary is not erased.
WITH RECURSIVE below AS (
    SELECT %s::text AS summary_id
    UNION
    SELECT p.parent_summary_id FROM below JOIN summary_parents p USING (summary_id)
)
SELECT EXISTS (
    SELECT FROM below JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
    WHERE m.erased_by_id IS NULL
)

-- name: context_cost
-- The number of messages in the active context, and the tokens of all its items.
SELECT count(message_id), coalesce(sum(token_count), 0)::bigint FROM context_items WHERE conversation_id = %s

-- name: current_sources
-- The summaries that a summary was made from, each in its current version, in order.
WITH RECURSIVE line(ordinal, summary_id) AS (
    SELECT ordinal, parent_summary_id FROM summary_parents WHERE summary_id = %s
    UNION
    SELECT line.ordinal, s.summary_id FROM line JOIN summaries s ON s.supersedes_id = line.summary_id
)
SELECT summary_id FROM line
WHERE NOT EXISTS (SELECT FROM summaries newer WHERE newer.supersedes_id = line.summary_id)
ORDER BY ordinal
