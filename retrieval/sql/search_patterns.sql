-- Searches by a regular expression, newest first.

-- name: matching_texts
-- What is given back of the matches. Their place in the text is computed only for these; the offset keeps the planner
-- from doing it before. A constant is computed in any case, so that an invalid expression is refused even where there is
-- nothing to match it with.
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
-- The newest rows of one table that match.
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
