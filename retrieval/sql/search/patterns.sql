-- Searches by a regular expression, newest first.

-- name: matching_texts
-- The values to return for each match. The position in the text is computed only for the returned rows: OFFSET 0 keeps
-- the planner from computing it earlier. The expression is also matched with a constant, so that an invalid one is
-- refused even if there is no text to search.
SELECT id, order_place, rank, from_place, to_place,
       substr(content, greatest(1, from_place - {width}), {width} * 3), greatest(0, from_place - {width} - 1)
FROM (
    SELECT *, regexp_instr(content, %(expression)s) AS from_place,
           regexp_instr(content, %(expression)s, 1, 1, 1) AS to_place
    FROM ({newest}) AS newest OFFSET 0
) AS found
WHERE regexp_instr('', %(expression)s) >= 0
ORDER BY order_place DESC

-- name: newest_of_table
-- The newest rows of one table that match a regular expression.
SELECT {id} AS id, {place} AS order_place, {rank} AS rank, {text} AS content
FROM {table} WHERE {where} AND {within} AND {has_text} AND {matches}
ORDER BY {order} LIMIT %(limit)s

-- name: newest_by_trigrams
-- The newest messages that match, found by the index of trigrams. Materialized, because for the order alone the planner
-- would walk through all rows.
WITH matching AS MATERIALIZED (
    SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
    FROM {table} WHERE {where} AND {within} AND {has_text} AND {text} ~ %(expression)s
), newest AS (
    SELECT * FROM matching ORDER BY order_place DESC LIMIT %(limit)s
)
SELECT id, order_place, rank, (SELECT {text} FROM {table} WHERE ctid = newest.row) AS content FROM newest
