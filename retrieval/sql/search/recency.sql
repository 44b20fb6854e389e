-- Searches by words that give the newest first.

-- name: newest_matches
-- The newest of a window of places that hold the words, of whatever kind.
SELECT id, place, rank FROM ({each}) AS found ORDER BY place DESC, rank DESC, id COLLATE "C" DESC LIMIT %(limit)s

-- name: messages_by_index
-- Messages of the window that the word index leads to. They are sorted by an expression because no other index can give
-- them in that order; what takes long to find out is asked of one after the other, the newest first.
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
-- The same, walking back from the newest. A CASE serves no index, and the planner takes it to hold for every other row.
(
    SELECT message_id::text AS id, {place} AS place, 1000000 AS rank
    FROM messages
    WHERE {where} AND {place} > %(after)s AND {place} <= %(upto)s
      AND CASE WHEN content_tsv @@ %(query)s::tsquery THEN true ELSE false END AND {costly}
    ORDER BY {place} DESC LIMIT %(limit)s
)

-- name: others_by_index
-- Summaries or files of the window that the word index leads to.
SELECT {id} AS id, {place} AS place, {rank} AS rank FROM {table} WHERE {where} AND {words} AND {within}

-- name: lexemes_held
-- Which of these lexemes some rows hold.
SELECT tsvector_to_array(ts_filter(setweight({vector}, 'A', %(lexemes)s::text[]), '{{a}}'))
FROM {table} WHERE {id} = ANY(%(ids)s::text[]::{type}[])
