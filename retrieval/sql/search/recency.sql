-- Searches by words, newest first.

-- name: newest_matches
-- The newest rows of a window that hold the words: messages, summaries and files.
SELECT id, place, rank FROM ({each}) AS found ORDER BY place DESC, rank DESC, id COLLATE "C" DESC LIMIT %(limit)s

-- name: messages_by_index
-- Messages of the window, found by the word index. Sorting by an expression keeps the planner from using another index
-- for the order; costly conditions are then checked row by row, newest first.
(
    SELECT message_id::text AS id, {place} AS place, 1000000 AS rank
    FROM (
        SELECT message_id, conversation_id, seq FROM messages
        WHERE {where} AND {words} AND ({place} > %(after)s) IS TRUE AND ({place} <= %(upto)s) IS TRUE
        ORDER BY -{place} OFFSET 0
    ) AS messages
    WHERE {costly} LIMIT %(limit)s
)

-- name: messages_by_walk
-- The same, by a walk back from the newest. The CASE keeps the planner from using the word index, and makes it expect
-- that every other row matches.
(
    SELECT message_id::text AS id, {place} AS place, 1000000 AS rank
    FROM messages
    WHERE {where} AND {place} > %(after)s AND {place} <= %(upto)s
      AND CASE WHEN content_tsv @@ %(query)s::tsquery THEN true ELSE false END AND {costly}
    ORDER BY {place} DESC LIMIT %(limit)s
)

-- name: others_by_index
-- Summaries or files of the window, found by the word index.
SELECT {id} AS id, {place} AS place, {rank} AS rank FROM {table} WHERE {where} AND {words} AND {within}

-- name: lexemes_held
-- Which of the given lexemes these rows hold.
SELECT tsvector_to_array(ts_filter(setweight({vector}, 'A', %(lexemes)s::text[]), '{{a}}'))
FROM {table} WHERE {id} = ANY(%(ids)s::text[]::{type}[])
