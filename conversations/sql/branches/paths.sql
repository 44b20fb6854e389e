-- Queries on the path to the head of a conversation, or to another message; see `head_moves.sql`.

-- name: active
-- The number of moves of the head, and the seqs that are not on the path to it, both computed from head_moves.
SELECT moved.moves, lcm_inactive(c.conversation_id, greatest(c.next_seq, last.seq + 1), moved.moves)::text
FROM conversations c, LATERAL (
    -- During an import, next_seq does not count the messages yet.
    SELECT coalesce(max(m.seq), 0) AS seq FROM messages m WHERE m.conversation_id = c.conversation_id
) AS last, LATERAL (
    SELECT coalesce(max(m.number), 0) AS moves FROM head_moves m WHERE m.conversation_id = c.conversation_id
) AS moved
WHERE c.conversation_id = %(id)s

-- name: at_time
-- The seqs that are not on the path that had its head at a time, with what was appended to it until the next move.
SELECT (lcm_inactive(c.conversation_id, until.seq, until.moves)
        + int8multirange(int8range(until.seq, greatest(until.seq, c.next_seq))))::text
FROM conversations c, LATERAL (
    SELECT coalesce(min(m.at_seq) FILTER (WHERE m.recorded_at > %(time)s), c.next_seq) AS seq,
           coalesce(max(m.number) FILTER (WHERE m.recorded_at <= %(time)s), 0) AS moves
    FROM head_moves m WHERE m.conversation_id = c.conversation_id
) AS until
WHERE c.conversation_id = %(id)s

-- name: summaries_on_path
-- The summaries on a path, with their sources; summaries of the most messages first. `off` are the seqs that are not on
-- the path: a summary is on it if its last message is.
SELECT s.summary_id, s.supersedes_id,
       (SELECT array_agg(p.parent_summary_id) FROM summary_parents p WHERE p.summary_id = s.summary_id),
       (SELECT array_agg(l.message_id) FROM summary_messages l WHERE l.summary_id = s.summary_id)
FROM summaries s
WHERE s.conversation_id = %(id)s AND NOT %(off)s::int8multirange @> s.last_seq
  AND (%(last)s::bigint IS NULL OR s.last_seq <= %(last)s)
  AND (%(before)s::timestamptz IS NULL OR s.created_at < %(before)s OR %(upto)s AND s.created_at = %(before)s)
ORDER BY s.descendant_count DESC, s.depth DESC, s.summary_id

-- name: branches
-- The ranges of messages between moves of the head. For each: the seq that its first message follows, its last seq on
-- the active path (0 if there is none) and its tokens. Empty ranges are left out.
WITH stretches AS (
    SELECT 0 AS number, 1::bigint AS first_seq, 0::bigint AS follows_seq
    UNION ALL
    SELECT number, at_seq, head_seq FROM head_moves WHERE conversation_id = %(id)s
), bounded AS (
    SELECT s.*, coalesce(lead(first_seq) OVER (ORDER BY number), c.next_seq) - 1 AS last_seq, c.inactive
    FROM stretches s, conversations c WHERE c.conversation_id = %(id)s
)
SELECT number, first_seq, last_seq, follows_seq,
       (SELECT coalesce(max(seq), 0) FROM messages m
         WHERE m.conversation_id = %(id)s AND m.seq BETWEEN first_seq AND last_seq AND NOT inactive @> m.seq),
       (SELECT coalesce(sum(m.token_count), 0)::bigint FROM messages m
         WHERE m.conversation_id = %(id)s AND m.seq BETWEEN first_seq AND last_seq)
FROM bounded WHERE last_seq >= first_seq ORDER BY number

-- name: follow_moves
-- Updates `moves` and `inactive` of the conversation's row from its head_moves.
UPDATE conversations c
SET moves = moved.moves, inactive = lcm_inactive(c.conversation_id, c.next_seq, moved.moves)
FROM (SELECT max(m.number) AS moves FROM head_moves m WHERE m.conversation_id = %(id)s) AS moved
WHERE c.conversation_id = %(id)s

-- name: count_context
-- Recounts the messages and tokens of the active context.
UPDATE conversations c
SET active_messages = shown.messages, active_tokens = shown.tokens
FROM (
    SELECT count(message_id) AS messages, coalesce(sum(token_count), 0) AS tokens
    FROM context_items WHERE conversation_id = %(id)s
) AS shown
WHERE c.conversation_id = %(id)s

-- name: messages_on_path
-- A page of the messages on the path to a seq.
SELECT m.message_id, m.seq FROM messages m
WHERE m.conversation_id = %(id)s AND m.seq > %(after)s AND m.seq <= %(seq)s
  AND NOT (SELECT lcm_off_path(%(id)s, %(seq)s)) @> m.seq
ORDER BY m.seq LIMIT %(limit)s

-- name: count_on_path
-- The number of messages on the path to a seq.
SELECT count(*) FROM messages m
WHERE m.conversation_id = %(id)s AND m.seq <= %(seq)s AND NOT (SELECT lcm_off_path(%(id)s, %(seq)s)) @> m.seq
