-- The statements of describe. To open a summary costs the tokens of its sources: for a leaf, its `source_tokens`; for a
-- condensed summary, a source that is a summary counts with its own text. A subquery with LIMIT finds whether something
-- was made from a summary: for EXISTS, the planner may read the links of all conversations. In recursions, links are
-- joined LATERAL with OFFSET 0: otherwise the planner, which expects many more summaries, reads the links of all
-- conversations at each step. A summary is active if it is in the active context.

-- name: outline
-- A fragment: the outline columns of a summary `s`. The statement that includes it adds the distance.
s.summary_id, s.kind::text, s.depth, s.token_count,
       CASE WHEN s.kind = 'leaf' THEN s.source_tokens ELSE s.source_tokens + coalesce((
           SELECT sum(c.token_count - c.source_tokens)
           FROM summary_parents p JOIN summaries c ON c.summary_id = p.parent_summary_id
           WHERE p.summary_id = s.summary_id
       ), 0) END::bigint,
       s.first_seq, s.last_seq, s.earliest_at, s.latest_at, s.descendant_count, s.level,
       EXISTS (SELECT FROM context_items item WHERE item.summary_id = s.summary_id OFFSET 0),
       (SELECT later.summary_id FROM summaries later WHERE later.supersedes_id = s.summary_id)

-- name: summary
-- The outlines of a summary, of those below it (its sources) and above it (made from it), and the ranges of its direct
-- source messages. LIMIT ends the recursion: no more of a large tree is read than is shown.
WITH RECURSIVE below AS (
    SELECT %(summary_id)s::text AS summary_id, 0 AS distance
    UNION
    SELECT p.parent_summary_id, below.distance + 1
    FROM below, LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = below.summary_id OFFSET 0) p
), above AS (
    SELECT %(summary_id)s::text AS summary_id, 0 AS distance
    UNION
    SELECT p.summary_id, above.distance - 1
    FROM above, LATERAL (SELECT summary_id FROM summary_parents WHERE parent_summary_id = above.summary_id OFFSET 0) p
), kin AS (
    (SELECT * FROM below LIMIT %(most)s + 2)
    UNION ALL
    (SELECT * FROM above WHERE distance < 0 LIMIT %(most)s)
), islands AS (
    SELECT min(seq) AS first_seq, max(seq) AS last_seq
    FROM (
        SELECT m.seq, m.seq - row_number() OVER (ORDER BY m.seq) AS island
        FROM summary_messages l JOIN messages m ON m.message_id = l.message_id
        WHERE l.summary_id = %(summary_id)s
    ) AS direct
    GROUP BY island
), direct AS (
    SELECT array_agg(ARRAY[first_seq, last_seq] ORDER BY first_seq) AS spans,
           (SELECT reason FROM quarantines WHERE target = %(summary_id)s AND released_at IS NULL) AS quarantined
    FROM islands
)
SELECT {outline}, kin.distance, direct.spans, direct.quarantined
FROM kin JOIN summaries s ON s.summary_id = kin.summary_id CROSS JOIN direct

-- name: message
-- The types of a message's parts, its files, whether it is active, and the outlines of the summaries above it.
WITH RECURSIVE kin AS (
    SELECT summary_id, -1 AS distance FROM summary_messages WHERE message_id = %(message_id)s
    UNION
    SELECT p.summary_id, kin.distance - 1
    FROM kin, LATERAL (SELECT summary_id FROM summary_parents WHERE parent_summary_id = kin.summary_id OFFSET 0) p
), held AS (
    SELECT {outline}, kin.distance
    FROM kin JOIN summaries s ON s.summary_id = kin.summary_id
), kinds AS (
    SELECT array_agg(DISTINCT part_type::text) AS part_types,
           (SELECT reason FROM quarantines WHERE target = 'msg_' || %(message_id)s::bigint AND released_at IS NULL)
           AS quarantined,
           ARRAY(SELECT DISTINCT file_id FROM file_references WHERE message_id = %(message_id)s
                 ORDER BY file_id LIMIT %(most)s) AS file_ids,
           EXISTS (SELECT FROM context_items item WHERE item.message_id = %(message_id)s OFFSET 0) AS active
    FROM message_parts WHERE message_id = %(message_id)s
)
SELECT held.*, kinds.part_types, kinds.quarantined, kinds.file_ids, kinds.active FROM kinds LEFT JOIN held ON true

-- name: needing_file
-- The messages that refer to a file, and the summaries that list it in `file_ids`.
WITH needing AS (
    SELECT DISTINCT m.message_id, m.conversation_id
    FROM file_references r JOIN messages m ON m.message_id = r.message_id
    WHERE r.file_id = %(file_id)s
    ORDER BY m.message_id LIMIT %(most)s
)
SELECT 'msg_' || message_id FROM needing
UNION ALL
(SELECT summary_id FROM summaries
 WHERE conversation_id IN (SELECT conversation_id FROM needing) AND file_ids @> jsonb_build_array(%(file_id)s::text)
 ORDER BY first_seq, depth LIMIT %(most)s)

-- name: made_by_run
-- The outlines of the summaries that a run has made.
SELECT {outline}, 0
FROM summaries s WHERE s.conversation_id = %(conversation_id)s AND s.run_id = %(run_id)s
ORDER BY s.first_seq, s.depth DESC, s.summary_id LIMIT %(most)s + 1

-- name: active_summaries
-- The outlines of the summaries in an active context.
SELECT {outline}, 0
FROM context_items c JOIN summaries s ON s.summary_id = c.summary_id
WHERE c.conversation_id = %(conversation_id)s
ORDER BY c.ordinal LIMIT %(most)s + 1

-- name: figures_of_conversation
-- When a conversation began and ended, how many summaries it has, and their greatest depth.
SELECT (SELECT created_at FROM messages WHERE conversation_id = %(conversation_id)s ORDER BY seq LIMIT 1),
       (SELECT created_at FROM messages WHERE conversation_id = %(conversation_id)s ORDER BY seq DESC LIMIT 1),
       (SELECT count(*) FROM summaries WHERE conversation_id = %(conversation_id)s),
       (SELECT max(depth) FROM summaries WHERE conversation_id = %(conversation_id)s)

-- name: files_of_conversation
-- The newest files of a conversation.
SELECT file_id FROM large_files WHERE conversation_id = %(conversation_id)s
ORDER BY created_at DESC, file_id LIMIT %(most)s

-- name: tokens_of_conversations
-- For each conversation, the tokens of summaries and system messages in its context, and its number of summaries.
SELECT c.conversation_id,
       coalesce((SELECT sum(i.token_count) FROM context_items i
                 WHERE i.conversation_id = c.conversation_id AND i.item_type = 'summary'), 0),
       coalesce((SELECT sum(i.token_count) FROM context_items i JOIN messages m ON m.message_id = i.message_id
                 WHERE m.conversation_id = c.conversation_id AND m.role = 'system'), 0),
       (SELECT count(*) FROM summaries s WHERE s.conversation_id = c.conversation_id)
FROM unnest(%s::bigint[]) AS c(conversation_id)

-- name: active_then
-- A condition: the summary was in the active context at that time. `kept` has the summaries on the path of that time,
-- or is null for all.
(%(kept)s::text[] IS NULL OR s.summary_id = ANY(%(kept)s)) AND NOT EXISTS (
    SELECT FROM summary_parents p JOIN summaries d ON d.summary_id = p.summary_id
    WHERE p.parent_summary_id = s.summary_id AND d.created_at <= %(time)s
      AND (%(kept)s::text[] IS NULL OR d.summary_id = ANY(%(kept)s))
) AND NOT EXISTS (
    SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id AND later.created_at <= %(time)s
      AND (%(kept)s::text[] IS NULL OR later.summary_id = ANY(%(kept)s))
)

-- name: covering
-- The summaries that cover a range as of a moment, each with the number of messages of the range that it contains.
-- Messages are counted only for a summary that extends beyond the range; if it contains none of the range, it is left
-- out.
WITH RECURSIVE shown AS MATERIALIZED (
    SELECT s.summary_id, s.first_seq < %(from)s OR s.last_seq > %(upto)s AS is_wider
    FROM summaries s
    WHERE s.conversation_id = %(conversation_id)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
      AND s.created_at <= %(time)s AND {active_then}
), below AS (
    SELECT summary_id AS root, summary_id FROM shown WHERE is_wider
    UNION
    SELECT below.root, s.summary_id
    FROM below, LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = below.summary_id OFFSET 0) p
    JOIN summaries s ON s.summary_id = p.parent_summary_id
    WHERE s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
), held AS (
    SELECT below.root, count(DISTINCT m.message_id) AS messages
    FROM below
    JOIN summary_messages l ON l.summary_id = below.summary_id
    JOIN messages m ON m.message_id = l.message_id
    WHERE m.seq BETWEEN %(from)s AND %(upto)s
    GROUP BY below.root
)
SELECT {outline}, 0, CASE WHEN shown.is_wider THEN held.messages ELSE s.descendant_count END
FROM shown JOIN summaries s ON s.summary_id = shown.summary_id LEFT JOIN held ON held.root = shown.summary_id
WHERE NOT shown.is_wider OR held.messages > 0
ORDER BY s.first_seq, s.depth DESC, s.summary_id

-- name: below
-- The outlines of the nearest summaries below the `roots` that overlap the range.
WITH RECURSIVE below AS (
    SELECT unnest(%(roots)s::text[]) AS summary_id, 0 AS distance
    UNION
    SELECT s.summary_id, below.distance + 1
    FROM below, LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = below.summary_id OFFSET 0) p
    JOIN summaries s ON s.summary_id = p.parent_summary_id
    WHERE s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
), near AS (
    SELECT * FROM below WHERE distance > 0 LIMIT %(most)s + 1
)
SELECT {outline}, near.distance
FROM near JOIN summaries s ON s.summary_id = near.summary_id

-- name: tokens
-- Count the tokens of all messages of a range, and of those that the context shows verbatim.
SELECT coalesce(sum(token_count), 0)::bigint,
       (SELECT coalesce(sum(token_count), 0)::bigint FROM context_items
        WHERE conversation_id = %(conversation_id)s AND item_type = 'message'
          AND ordinal BETWEEN %(from)s AND %(upto)s)
FROM messages WHERE conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s

-- name: raw_spans
-- The ranges of messages, within the given range, that the context shows verbatim.
-- Within a range of consecutive messages, seq minus row number is constant, so it identifies the range.
SELECT min(ordinal), max(ordinal)
FROM (
    SELECT ordinal, ordinal - row_number() OVER (ORDER BY ordinal) AS island
    FROM context_items
    WHERE conversation_id = %(conversation_id)s AND item_type = 'message'
      AND ordinal BETWEEN %(from)s AND %(upto)s
) AS raw
GROUP BY island ORDER BY 1

-- name: off_path
-- The number of messages of a range that are not on a path.
SELECT count(*) FROM messages
WHERE conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s AND %(off)s::int8multirange @> seq

-- name: nodes
-- The summaries of a conversation, in the columns of `LineageNode`.
SELECT s.summary_id, s.kind::text, s.depth, s.level, s.first_seq, s.last_seq, s.token_count, s.source_tokens,
       s.source_count - (SELECT count(*) FROM summary_parents p WHERE p.summary_id = s.summary_id),
       s.descendant_count, s.created_at,
       EXISTS (SELECT FROM context_items item WHERE item.summary_id = s.summary_id OFFSET 0)
FROM summaries s WHERE s.conversation_id = %s ORDER BY s.first_seq, s.depth DESC, s.summary_id

-- name: edges
-- Each summary with its sources that are summaries.
SELECT p.summary_id, p.parent_summary_id
FROM summaries s JOIN summary_parents p ON p.summary_id = s.summary_id
WHERE s.conversation_id = %s ORDER BY s.first_seq, s.depth DESC, p.summary_id, p.ordinal
