-- The values to show for the rows that a search found, and whether their conversations have quarantined items.

-- name: shown_messages
-- Messages, whether they are in the active context, and if not, the summary that covers them. A summary has the ordinal
-- of its first source. So the nearest item before a message that is not in the context covers this message, if that
-- summary has every message of its range. Counting characters costs more than fetching the text, so bytes are compared
-- first.
SELECT message_id::text AS id, conversation_id, session_id, seq AS first_seq, seq AS last_seq, messages.created_at, token_count,
       CASE WHEN %(is_shown)s THEN
           CASE WHEN octet_length(content) <= %(searched)s::int THEN content ELSE left(content, %(searched)s::int) END
       END AS content,
       CASE WHEN NOT active THEN (
           SELECT (
               SELECT summary_id FROM summaries top
               WHERE top.summary_id = item.summary_id
                 AND seq BETWEEN first_seq AND last_seq AND descendant_count = last_seq - first_seq + 1
           )
           FROM context_items item
           WHERE item.conversation_id = messages.conversation_id AND item.ordinal <= seq
           ORDER BY item.ordinal DESC LIMIT 1
       ) END AS covered_by,
       active, role::text AS role, author, NULL::integer AS depth, NULL::text AS file_name,
       quarantined > 0 AS has_quarantines
FROM messages JOIN conversations USING (conversation_id), LATERAL (
    SELECT EXISTS (SELECT FROM context_items item WHERE item.message_id = messages.message_id OFFSET 0) AS active
    OFFSET 0
) AS shown
WHERE message_id = ANY(%(messages)s::bigint[])

-- name: shown_summaries
-- Summaries, and whether they are in the active context.
SELECT summary_id, conversation_id, session_id, first_seq, last_seq, latest_at, token_count,
       CASE WHEN %(is_shown)s THEN
           CASE WHEN octet_length(content) <= %(searched)s::int THEN content ELSE left(content, %(searched)s::int) END
       END,
       NULL,
       EXISTS (SELECT FROM context_items item WHERE item.summary_id = summaries.summary_id OFFSET 0),
       NULL, NULL, depth, NULL, quarantined > 0
FROM summaries JOIN conversations USING (conversation_id) WHERE summary_id = ANY(%(others)s::text[])

-- name: shown_large_files
-- Files, their name and description as the text.
SELECT file_id, conversation_id, session_id, {seq}, {seq}, large_files.created_at, {tokens},
       CASE WHEN %(is_shown)s THEN left({text}, %(searched)s::int) END, NULL, false, NULL, NULL, NULL, file_name, quarantined > 0
FROM large_files JOIN conversations USING (conversation_id) WHERE file_id = ANY(%(others)s::text[])

-- name: above
-- A fragment: the messages that were found, each with the summaries above it.
above AS (
    SELECT message_id, summary_id FROM summary_messages WHERE message_id = ANY(%(sought)s::bigint[])
    UNION
    SELECT above.message_id, derived.summary_id
    FROM above, LATERAL (SELECT summary_id FROM summary_parents WHERE parent_summary_id = above.summary_id OFFSET 0) derived
)

-- name: covering_summaries
-- For each message that was found, the summary in the active context that covers it.
WITH RECURSIVE {above}
SELECT message_id::text, summary_id FROM above
WHERE EXISTS (SELECT FROM context_items item WHERE item.summary_id = above.summary_id OFFSET 0)
