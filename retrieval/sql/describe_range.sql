-- What covers a range of messages. Outlines and recursions: see describe.sql.

-- name: covering
-- The summaries that cover a range as of a moment, with the number of its messages that each stands for.
-- Only of a summary that reaches beyond the range are the messages counted; one with none of them does not cover it.
WITH RECURSIVE shown AS MATERIALIZED (
    SELECT s.summary_id, s.first_seq < %(from)s OR s.last_seq > %(upto)s AS is_wider
    FROM summaries s
    WHERE s.conversation_id = %(conversation_id)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
      AND s.created_at <= %(as_of)s
      AND NOT EXISTS (
          SELECT FROM summary_parents p JOIN summaries d ON d.summary_id = p.summary_id
          WHERE p.parent_summary_id = s.summary_id AND d.created_at <= %(as_of)s
      ) AND NOT EXISTS (
          SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id AND later.created_at <= %(as_of)s
      )
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
SELECT s.summary_id, s.kind::text, s.depth, s.token_count,
       CASE WHEN s.kind = 'leaf' THEN s.source_tokens ELSE s.source_tokens + coalesce((
           SELECT sum(c.token_count - c.source_tokens)
           FROM summary_parents p JOIN summaries c ON c.summary_id = p.parent_summary_id
           WHERE p.summary_id = s.summary_id
       ), 0) END::bigint,
       s.first_seq, s.last_seq, s.earliest_at::text, s.latest_at::text, s.descendant_count, s.level,
       (SELECT true FROM summary_parents p WHERE p.parent_summary_id = s.summary_id LIMIT 1) IS NOT NULL,
       (SELECT later.summary_id FROM summaries later WHERE later.supersedes_id = s.summary_id),
       0, CASE WHEN shown.is_wider THEN held.messages ELSE s.descendant_count END
FROM shown JOIN summaries s ON s.summary_id = shown.summary_id LEFT JOIN held ON held.root = shown.summary_id
WHERE NOT shown.is_wider OR held.messages > 0
ORDER BY s.first_seq, s.depth DESC, s.summary_id

-- name: below
-- The outlines of the summaries below some that overlap the range, the nearest first.
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
SELECT s.summary_id, s.kind::text, s.depth, s.token_count,
       CASE WHEN s.kind = 'leaf' THEN s.source_tokens ELSE s.source_tokens + coalesce((
           SELECT sum(c.token_count - c.source_tokens)
           FROM summary_parents p JOIN summaries c ON c.summary_id = p.parent_summary_id
           WHERE p.summary_id = s.summary_id
       ), 0) END::bigint,
       s.first_seq, s.last_seq, s.earliest_at::text, s.latest_at::text, s.descendant_count, s.level,
       (SELECT true FROM summary_parents p WHERE p.parent_summary_id = s.summary_id LIMIT 1) IS NOT NULL,
       (SELECT later.summary_id FROM summaries later WHERE later.supersedes_id = s.summary_id),
       near.distance
FROM near JOIN summaries s ON s.summary_id = near.summary_id

-- name: tokens
-- The tokens of all messages of a range, and of those that are raw.
SELECT coalesce(sum(token_count), 0)::bigint,
       (SELECT coalesce(sum(token_count), 0)::bigint FROM context_items
        WHERE conversation_id = %(conversation_id)s AND item_type = 'message'
          AND ordinal BETWEEN %(from)s AND %(upto)s)
FROM messages WHERE conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s

-- name: raw_spans
-- The stretches of a range that are raw.
-- Messages that follow each other have the same difference between their seq and their number in the list.
SELECT min(ordinal), max(ordinal)
FROM (
    SELECT ordinal, ordinal - row_number() OVER (ORDER BY ordinal) AS island
    FROM context_items
    WHERE conversation_id = %(conversation_id)s AND item_type = 'message'
      AND ordinal BETWEEN %(from)s AND %(upto)s
) AS raw
GROUP BY island ORDER BY 1
