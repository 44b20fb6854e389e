-- name: nodes
-- The summaries of a conversation.
SELECT s.summary_id, s.kind::text, s.depth, s.level, s.first_seq, s.last_seq, s.token_count, s.source_tokens,
       s.source_count, s.descendant_count, s.created_at
FROM summaries s WHERE s.conversation_id = %s ORDER BY s.first_seq, s.depth DESC, s.summary_id

-- name: edges
-- Each summary with its sources that are summaries.
SELECT p.summary_id, p.parent_summary_id
FROM summaries s JOIN summary_parents p ON p.summary_id = s.summary_id
WHERE s.conversation_id = %s ORDER BY s.first_seq, s.depth DESC, p.summary_id, p.ordinal

-- name: raw_spans
-- The stretches of messages that are raw.
-- Messages that follow each other have the same difference between their seq and their number in the list.
SELECT min(ordinal), max(ordinal)
FROM (
    SELECT ordinal, ordinal - row_number() OVER (ORDER BY ordinal) AS island
    FROM context_items WHERE conversation_id = %s AND item_type = 'message'
) AS raw
GROUP BY island ORDER BY 1
