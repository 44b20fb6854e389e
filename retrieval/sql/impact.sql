-- What derives from a message or a summary, each summary once, at its shortest distance. See describe.sql.

-- name: levels
-- For each distance, the summaries that derive from a message or a summary: how many, their tokens, how many active.
WITH RECURSIVE reach AS (
    SELECT summary_id, 1 AS distance FROM summary_messages WHERE message_id = %(message_id)s::bigint
    UNION
    SELECT summary_id, 1 FROM summary_parents WHERE parent_summary_id = %(summary_id)s::text
    UNION
    SELECT p.summary_id, reach.distance + 1
    FROM reach, LATERAL (
        SELECT summary_id FROM summary_parents WHERE parent_summary_id = reach.summary_id OFFSET 0
    ) p
), derived AS (
    SELECT summary_id, min(distance) AS distance FROM reach GROUP BY summary_id
)
SELECT derived.distance, count(*), sum(s.token_count)::bigint, count(c.summary_id)
FROM derived
JOIN summaries s ON s.summary_id = derived.summary_id
LEFT JOIN context_items c ON c.summary_id = s.summary_id
GROUP BY derived.distance ORDER BY derived.distance

-- name: nearest
-- The outlines of the nearest summaries that derive from it.
WITH RECURSIVE reach AS (
    SELECT summary_id, 1 AS distance FROM summary_messages WHERE message_id = %(message_id)s::bigint
    UNION
    SELECT summary_id, 1 FROM summary_parents WHERE parent_summary_id = %(summary_id)s::text
    UNION
    SELECT p.summary_id, reach.distance + 1
    FROM reach, LATERAL (
        SELECT summary_id FROM summary_parents WHERE parent_summary_id = reach.summary_id OFFSET 0
    ) p
), derived AS (
    SELECT summary_id, min(distance) AS distance FROM reach GROUP BY summary_id
), nearest AS (
    SELECT derived.* FROM derived JOIN summaries s ON s.summary_id = derived.summary_id
    ORDER BY derived.distance, s.first_seq, s.depth DESC, s.summary_id LIMIT %(limit)s
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
       -nearest.distance
FROM nearest JOIN summaries s ON s.summary_id = nearest.summary_id
ORDER BY nearest.distance, s.first_seq, s.depth DESC, s.summary_id

-- name: is_active
-- Whether it is in the active context itself.
SELECT EXISTS (SELECT FROM context_items WHERE message_id = %(message_id)s::bigint)
    OR EXISTS (SELECT FROM context_items WHERE summary_id = %(summary_id)s::text)
