-- Vectors for `make bench`, made without a model.

-- name: make_themes
-- Directions that passages are about, and others a little to each side.
CREATE TEMPORARY TABLE themes AS
SELECT theme, array_agg(random_normal()) AS direction
FROM generate_series(1, %(themes)s) AS theme, generate_series(1, %(dimension)s)
GROUP BY theme

-- name: make_vectors
-- Ten passages of each message behind an id, each about a theme.
INSERT INTO {table} (message_id, passage, starts_at, ends_at, conversation_id, workspace_id, embedding)
SELECT m.message_id, number, 0, 20, c.conversation_id, c.workspace_id,
       (SELECT array_agg((value + 0.7 * random_normal())::real) FROM unnest(t.direction) AS value)::halfvec({dimension})
FROM messages m JOIN conversations c USING (conversation_id), generate_series(0, 9) AS number,
     LATERAL (SELECT direction FROM themes WHERE theme = 1 + (m.message_id * 10 + number) * 7919 %% %(themes)s) AS t
WHERE m.message_id BETWEEN %(first)s AND %(last)s

-- name: count_passages
-- How far each conversation is embedded.
INSERT INTO embedded_conversations (embedder_id, conversation_id, upto_seq, passages, state)
SELECT %(embedder_id)s, conversation_id, next_seq - 1, 10 * (next_seq - 1), 'done' FROM conversations
WHERE next_seq > 1

-- name: questions
-- Questions, each a little beside a passage.
SELECT '[' || string_agg((value + 0.7 * random_normal())::real::text, ',') || ']'
FROM (SELECT theme, direction FROM themes ORDER BY random() LIMIT %(questions)s) AS chosen, unnest(direction) AS value
GROUP BY theme
