-- Searches of texts in cold storage.

-- name: newest_cold_messages
-- The newest cold messages up to a position, and the blocks that hold their texts.
SELECT message_id, {place}, cold_block_id, token_count FROM messages
WHERE {where} AND cold_block_id IS NOT NULL AND {place} <= %(upto)s
ORDER BY {place} DESC LIMIT %(at_once)s

-- name: texts_with_words
-- Which of these texts match a query.
SELECT place FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS given(text, place)
WHERE lcm_tsv(text) @@ %(query)s::tsquery

-- name: texts_with_pattern
-- Which of these texts a regular expression matches, and the begin and end of the match.
SELECT place, regexp_instr(text, %(pattern)s), regexp_instr(text, %(pattern)s, 1, 1, 1)
FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS given(text, place)
WHERE text ~ %(pattern)s
