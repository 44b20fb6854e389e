-- name: summaries_within
-- The given summaries and those below them, down to a depth, each with its level. Messages below the last level are
-- outside of the grant.
WITH RECURSIVE reach AS (
    SELECT unnest(%(roots)s::text[]) AS summary_id, 0 AS level
    UNION
    SELECT p.parent_summary_id, reach.level + 1
    FROM reach JOIN summary_parents p ON p.summary_id = reach.summary_id
    WHERE reach.level < %(depth)s
)
SELECT summary_id, min(level) FROM reach GROUP BY summary_id

-- name: messages_of_summaries
-- Those of the given messages that are direct sources of the given summaries.
SELECT DISTINCT message_id FROM summary_messages
WHERE message_id = ANY(%s) AND summary_id = ANY(%s)

-- name: conversations
-- The conversations of the given messages and summaries.
SELECT conversation_id FROM messages WHERE message_id = ANY(%s)
UNION
SELECT conversation_id FROM summaries WHERE summary_id = ANY(%s)

-- name: spans
-- The ranges of consecutive seqs among the given messages.
-- Within a range of consecutive messages, seq minus row number is constant, so it identifies the range.
SELECT conversation_id, min(seq), max(seq)
FROM (
    SELECT conversation_id, seq, seq - row_number() OVER (PARTITION BY conversation_id ORDER BY seq) AS island
    FROM messages WHERE message_id = ANY(%s)
) AS named
GROUP BY conversation_id, island ORDER BY conversation_id, min(seq)

-- name: tokens_below
-- The tokens of all that can be read, each item counted once: messages, and the summaries on the way to them.
SELECT (SELECT coalesce(sum(token_count), 0) FROM summaries WHERE summary_id = ANY(%(below)s))
     + (SELECT coalesce(sum(m.token_count), 0) FROM messages m WHERE m.message_id = ANY(%(messages)s)
        OR m.message_id IN (SELECT message_id FROM summary_messages WHERE summary_id = ANY(%(opened)s)))

-- name: widest_spans
-- The first and the last seq of the given messages, by conversation.
SELECT conversation_id, min(seq), max(seq) FROM messages WHERE message_id = ANY(%s) GROUP BY conversation_id

-- name: around_messages
-- For each message, the current summary made from it; if there is none, the raw messages beside it.
SELECT m.message_id, held.summary_id, near.message_id
FROM unnest(%(messages)s::bigint[]) WITH ORDINALITY AS found(message_id, place)
JOIN messages m ON m.message_id = found.message_id
LEFT JOIN LATERAL (
    SELECT l.summary_id FROM summary_messages l
    WHERE l.message_id = m.message_id
      AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = l.summary_id)
    ORDER BY l.summary_id LIMIT 1
) AS held ON true
LEFT JOIN messages near ON held.summary_id IS NULL AND near.conversation_id = m.conversation_id
     AND near.seq BETWEEN m.seq - %(neighbours)s AND m.seq + %(neighbours)s
     AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.message_id = near.message_id)
ORDER BY found.place, near.seq

-- name: count_refusal
-- Count a refusal of a grant by its code.
UPDATE grants SET refusals = jsonb_set(
    refusals, ARRAY[%(code)s], to_jsonb(coalesce((refusals ->> %(code)s)::bigint, 0) + 1)
) WHERE grant_id = %(grant_id)s

-- name: item_lines
-- One line of text for each summary and message.
SELECT summary_id, format('%%s [%%s-%%s], %%s summary of %%s messages, %%s tokens',
                          summary_id, first_seq, last_seq, kind, descendant_count, token_count)
FROM summaries WHERE summary_id = ANY(%s)
UNION ALL
SELECT 'msg_' || message_id, format('msg_%%s [%%s], %%s, %%s tokens', message_id, seq, role, token_count)
FROM messages WHERE message_id = ANY(%s)
