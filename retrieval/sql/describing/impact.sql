-- What was made from an item, and what the item was made from, step by step. An item is a message, a summary, a file,
-- or a session, arc or epoch summary. OFFSET 0 keeps each step an index lookup: the planner would otherwise join the
-- links of all conversations. A link has the confidence of the summary that was made. `levels` lists the summary levels
-- whose confidence is at least `min_confidence`.

-- name: upstream
-- One step from an item to those that were made from it, or refer to it.
(SELECT 'message' AS kind, 'msg_' || r.message_id AS id, r.message_id AS number
 FROM file_references r WHERE reach.kind = 'file' AND r.file_id = reach.id OFFSET 0)
UNION ALL
(SELECT 'summary', l.summary_id, NULL FROM summary_messages l
 WHERE reach.kind = 'message' AND l.message_id = reach.number
   AND (SELECT s.level FROM summaries s WHERE s.summary_id = l.summary_id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT 'summary', p.summary_id, NULL FROM summary_parents p
 WHERE reach.kind = 'summary' AND p.parent_summary_id = reach.id
   AND (SELECT s.level FROM summaries s WHERE s.summary_id = p.summary_id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT 'session_summary', l.summary_id, NULL FROM session_summary_memories l
 WHERE reach.kind = 'message' AND l.message_id = reach.number
   AND (SELECT s.level FROM session_summaries s WHERE s.summary_id = l.summary_id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT 'session_summary', l.summary_id, NULL FROM session_summary_memories l
 WHERE reach.kind = 'summary' AND l.memory_summary_id = reach.id
   AND (SELECT s.level FROM session_summaries s WHERE s.summary_id = l.summary_id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT 'session_summary', c.parent_id, NULL FROM session_summary_children c
 WHERE reach.kind = 'session_summary' AND c.child_id = reach.id
   AND (SELECT s.level FROM session_summaries s WHERE s.summary_id = c.parent_id) = ANY(%(levels)s::text[]) OFFSET 0)

-- name: downstream
-- One step from an item to those that it was made from, or refers to.
(SELECT 'file' AS kind, r.file_id AS id, NULL::bigint AS number
 FROM file_references r WHERE reach.kind = 'message' AND r.message_id = reach.number OFFSET 0)
UNION ALL
(SELECT 'message', 'msg_' || l.message_id, l.message_id FROM summary_messages l
 WHERE reach.kind = 'summary' AND l.summary_id = reach.id
   AND (SELECT s.level FROM summaries s WHERE s.summary_id = reach.id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT 'summary', p.parent_summary_id, NULL FROM summary_parents p
 WHERE reach.kind = 'summary' AND p.summary_id = reach.id
   AND (SELECT s.level FROM summaries s WHERE s.summary_id = reach.id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT l.item_type::text, coalesce(l.memory_summary_id, 'msg_' || l.message_id), l.message_id
 FROM session_summary_memories l
 WHERE reach.kind = 'session_summary' AND l.summary_id = reach.id
   AND (SELECT s.level FROM session_summaries s WHERE s.summary_id = reach.id) = ANY(%(levels)s::text[]) OFFSET 0)
UNION ALL
(SELECT 'session_summary', c.child_id, NULL FROM session_summary_children c
 WHERE reach.kind = 'session_summary' AND c.parent_id = reach.id
   AND (SELECT s.level FROM session_summaries s WHERE s.summary_id = reach.id) = ANY(%(levels)s::text[]) OFFSET 0)

-- name: things
-- A fragment that begins other statements: all items reached, each at its smallest distance. The item itself is at 0.
WITH RECURSIVE reach AS (
    SELECT %(kind)s::text AS kind, %(id)s::text AS id, %(number)s::bigint AS number, 0 AS distance
    UNION
    SELECT step.kind, step.id, step.number, reach.distance + 1
    FROM reach, LATERAL ({step}) step WHERE reach.distance < %(max_depth)s
), nearest AS (
    SELECT kind, id, number, min(distance) AS distance FROM reach GROUP BY kind, id, number
), things AS (
    SELECT nearest.kind, nearest.id, nearest.distance, known.* FROM nearest, LATERAL (
        (SELECT m.conversation_id, m.seq AS first_seq, m.seq AS last_seq, m.token_count,
                (SELECT true FROM context_items c WHERE c.message_id = m.message_id LIMIT 1) IS NOT NULL AS active,
                NULL::integer AS depth, NULL AS level, NULL AS superseded_by, NULL AS file_name
         FROM messages m WHERE nearest.kind = 'message' AND m.message_id = nearest.number OFFSET 0)
        UNION ALL
        (SELECT s.conversation_id, s.first_seq, s.last_seq, s.token_count,
                (SELECT true FROM context_items c WHERE c.summary_id = s.summary_id LIMIT 1) IS NOT NULL,
                s.depth, s.level, (SELECT later.summary_id FROM summaries later WHERE later.supersedes_id = s.summary_id),
                NULL
         FROM summaries s WHERE nearest.kind = 'summary' AND s.summary_id = nearest.id OFFSET 0)
        UNION ALL
        (SELECT s.conversation_id, s.first_seq, s.last_seq, s.token_count, later.summary_id IS NULL, s.depth, s.level,
                later.summary_id, NULL
         FROM session_summaries s LEFT JOIN LATERAL (
             SELECT n.summary_id FROM session_summaries n WHERE n.supersedes_id = s.summary_id OFFSET 0
         ) later ON true
         WHERE nearest.kind = 'session_summary' AND s.summary_id = nearest.id OFFSET 0)
        UNION ALL
        (SELECT f.conversation_id, NULL, NULL, NULL, false, NULL, NULL, NULL, f.file_name
         FROM large_files f WHERE nearest.kind = 'file' AND f.file_id = nearest.id OFFSET 0)
    ) known
)

-- name: levels
-- For each distance: how many items, their tokens, and how many of them are active.
{things}
SELECT distance, count(*), coalesce(sum(token_count), 0)::bigint, count(*) FILTER (WHERE active)
FROM things GROUP BY distance ORDER BY distance

-- name: nearest
-- The nearest items, in the columns of `ImpactItem`.
{things}
SELECT id, kind, distance, conversation_id, first_seq, last_seq, token_count, active, depth, superseded_by, file_name,
       level
FROM things WHERE distance > 0
ORDER BY distance, conversation_id, first_seq, depth DESC NULLS LAST, id LIMIT %(limit)s
