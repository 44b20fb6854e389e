-- Searches by embeddings.

-- name: nearest_passages
-- The passages nearest to a question whose messages meet all filters, nearest first. Filters are checked passage by
-- passage, so that the index scan continues until there are enough; OFFSET 0 enforces this plan.
SELECT near.message_id, near.starts_at, near.ends_at, near.distance,
       found.order_place, found.place, found.role, found.token_count
FROM (
    SELECT message_id, starts_at, ends_at, {distance} AS distance
    FROM {table} WHERE {within} ORDER BY {distance} OFFSET 0
) AS near,
LATERAL (
    SELECT {order_place} AS order_place, {one_place} AS place, role::text, token_count
    FROM messages WHERE messages.message_id = near.message_id AND {has_text} AND {where} OFFSET 0
) AS found
LIMIT %(most)s

-- name: count_passages
-- The number of passages, but at most one more than `few`: so many are not all compared.
SELECT count(*) FROM (SELECT FROM {table} WHERE {within} LIMIT %(few)s::bigint + 1) AS counted

-- name: mean_of_sample
-- The mean of the normalized vectors of every nth message's passages; NULL if there are none.
SELECT avg(l2_normalize(embedding))::text FROM {table} WHERE {within} AND message_id %% %(nth)s = 0

-- name: settings
-- How the index is searched: the scan continues if filters leave too few rows, up to a number of tuples and a multiple
-- of work_mem.
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', %(breadth)s, true),
       set_config('hnsw.max_scan_tuples', %(most_scanned)s, true),
       set_config('hnsw.scan_mem_multiplier', %(memory)s, true)

-- name: passage_texts
-- The texts of passages.
SELECT m.message_id, substr(m.content, given.starts_at + 1, given.ends_at - given.starts_at)
FROM unnest(%(messages)s::bigint[], %(starts)s::integer[], %(ends)s::integer[]) AS given(message_id, starts_at, ends_at)
JOIN messages m USING (message_id)
