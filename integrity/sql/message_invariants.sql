-- name: messages_are_complete
-- Gaps in `seq`, and messages without all parts that they were appended with.
WITH followed AS (
    SELECT conversation_id, seq, lead(seq) OVER (PARTITION BY conversation_id ORDER BY seq) AS next
    FROM messages WHERE conversation_id = ANY(%(ids)s)
    UNION ALL
    SELECT c.conversation_id, 0, (SELECT min(seq) FROM messages m WHERE m.conversation_id = c.conversation_id)
    FROM conversations c WHERE c.conversation_id = ANY(%(ids)s)
)
SELECT s.conversation_id, 'seq_' || s.seq + 1,
       format('messages %%s to %%s are missing', s.seq + 1, coalesce(s.next, c.next_seq) - 1)
FROM followed s JOIN conversations c USING (conversation_id)
WHERE coalesce(s.next, c.next_seq) > s.seq + 1
UNION ALL
SELECT m.conversation_id, 'msg_' || m.message_id,
       format('has %%s parts with ordinals up to %%s; it was appended with %%s', count(p.ordinal),
              coalesce(max(p.ordinal), -1), m.chained_parts)
FROM messages m LEFT JOIN message_parts p USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
GROUP BY m.message_id
HAVING count(p.ordinal) <> coalesce(max(p.ordinal), -1) + 1 OR count(p.ordinal) < m.chained_parts
    OR m.chained_parts < 0

-- name: messages_are_reachable_once
-- Messages that the active context reaches by no way or by several.
WITH RECURSIVE below(root, summary_id) AS (
    SELECT summary_id, summary_id FROM context_items
    WHERE conversation_id = ANY(%(ids)s) AND summary_id IS NOT NULL
    UNION ALL
    SELECT below.root, p.parent_summary_id
    FROM below JOIN summary_parents p ON p.summary_id = below.summary_id
) CYCLE summary_id SET is_cycle USING path,
ways AS (
    SELECT message_id, 'the context' AS root FROM context_items
    WHERE conversation_id = ANY(%(ids)s) AND message_id IS NOT NULL
    UNION ALL
    SELECT l.message_id, below.root
    FROM below JOIN summary_messages l ON l.summary_id = below.summary_id WHERE NOT below.is_cycle
)
SELECT m.conversation_id, 'msg_' || m.message_id,
       CASE count(w.message_id)
           WHEN 0 THEN format('message %%s cannot be reached', m.seq)
           ELSE format('message %%s is reached %%s times, through %%s', m.seq, count(*),
                       string_agg(DISTINCT w.root, ', '))
       END
FROM messages m LEFT JOIN ways w USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
GROUP BY m.message_id
HAVING count(w.message_id) <> 1

-- name: recording_never_goes_back
-- Messages recorded before their predecessor, and conversations written before their newest message.
SELECT conversation_id, 'msg_' || message_id,
       format('message %%s was recorded at %%s, the one before it at %%s', seq, recorded_at, before)
FROM (
    SELECT conversation_id, message_id, seq, recorded_at, lag(recorded_at) OVER in_order AS before
    FROM messages WHERE conversation_id = ANY(%(ids)s)
    WINDOW in_order AS (PARTITION BY conversation_id ORDER BY seq, message_id)
) AS recorded
WHERE recorded_at < before
UNION ALL
-- The next message is recorded no earlier than this.
SELECT c.conversation_id, 'conv_' || c.conversation_id,
       format('was last written at %%s, but its newest message was recorded at %%s', c.updated_at, newest.recorded_at)
FROM conversations c, LATERAL (
    SELECT m.recorded_at FROM messages m
    WHERE m.conversation_id = c.conversation_id ORDER BY m.seq DESC LIMIT 1
) newest
WHERE c.conversation_id = ANY(%(ids)s) AND c.updated_at < newest.recorded_at

-- name: parts_have_the_names_of_their_place
-- Parts whose id or session is not that of their message and ordinal.
SELECT m.conversation_id, p.part_id, CASE
           WHEN p.session_id <> c.session_id THEN 'names another session'
           ELSE format('belongs to message %%s at ordinal %%s', p.message_id, p.ordinal) END
FROM messages m
JOIN conversations c USING (conversation_id)
JOIN message_parts p USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
  AND (p.part_id <> 'part_' || p.message_id || '_' || p.ordinal OR p.session_id <> c.session_id)
