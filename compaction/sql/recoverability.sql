-- name: coverage
-- How many messages up to a seq can be recovered, how many are off the active path, and the first gaps.
-- Each message appears up to three times: as a row, as an item of the context, as a source of a summary. These are
-- grouped, because a join could get a bad plan for a conversation that has just grown and has no statistics yet.
-- UNION, not UNION ALL, so that the query ends even if a damaged lineage has a cycle.
WITH RECURSIVE opened(summary_id) AS (
    SELECT summary_id FROM context_items WHERE conversation_id = %(conversation_id)s AND summary_id IS NOT NULL
    UNION
    SELECT p.parent_summary_id FROM opened JOIN summary_parents p ON p.summary_id = opened.summary_id
), met(message_id, seq, raw, summarized) AS (
    SELECT message_id, seq, false, false
    FROM messages WHERE conversation_id = %(conversation_id)s AND seq <= %(last_seq)s
    UNION ALL
    SELECT message_id, NULL, true, false
    FROM context_items WHERE conversation_id = %(conversation_id)s AND message_id IS NOT NULL
    UNION ALL
    SELECT l.message_id, NULL, false, true
    FROM opened JOIN summary_messages l ON l.summary_id = opened.summary_id
), stored AS MATERIALIZED (
    SELECT max(seq) AS seq, bool_or(raw) AS raw, bool_or(summarized) AS summarized,
           %(off)s::int8multirange @> max(seq) AS off
    FROM met GROUP BY message_id HAVING max(seq) IS NOT NULL
), counted AS (
    SELECT count(*) AS stored, count(*) FILTER (WHERE summarized AND NOT raw) AS summarized,
           count(*) FILTER (WHERE raw) AS raw, count(*) FILTER (WHERE NOT raw AND NOT summarized AND NOT off) AS unreachable,
           count(*) FILTER (WHERE NOT raw AND NOT summarized AND off) AS inactive
    FROM stored
), gaps(first_seq, last_seq, kind) AS (
    SELECT seq + 1, next - 1, 'missing'
    FROM (
        SELECT seq, coalesce(lead(seq) OVER (ORDER BY seq), %(last_seq)s + 1) AS next
        FROM (SELECT 0 AS seq UNION ALL SELECT seq FROM stored) AS present
    ) AS neighbours
    WHERE next > seq + 1
    UNION ALL
    SELECT min(seq), max(seq), 'unreachable'
    FROM (
        SELECT seq, seq - row_number() OVER (ORDER BY seq) AS island FROM stored WHERE NOT raw AND NOT summarized AND NOT off
    ) AS lost
    GROUP BY island
), listed AS (
    SELECT first_seq, last_seq, kind, count(*) OVER () AS gaps FROM gaps ORDER BY first_seq LIMIT %(most)s
)
SELECT stored, summarized, raw, unreachable, inactive, coalesce(gaps, 0), first_seq, last_seq, kind
FROM counted LEFT JOIN listed ON true
ORDER BY first_seq

-- name: missing_keys
-- The given idempotency keys that no message of the conversation has, or had before it was erased.
SELECT key FROM unnest(%s::text[]) WITH ORDINALITY AS given(key, place)
WHERE NOT EXISTS (
    SELECT FROM messages m WHERE m.conversation_id = %s AND m.idempotency_key IN (key, lcm_erased_key(key))
)
GROUP BY key ORDER BY min(place)
