-- The floors of `make bench`: what LCM does, in as few plain statements as can be.

-- name: append_one
-- A message with its part and its place in the context.
WITH c AS (
    UPDATE conversations SET next_seq = next_seq + 1, total_tokens = total_tokens + %(token_count)s,
        active_messages = active_messages + 1, active_tokens = active_tokens + %(token_count)s + 4,
        updated_at = now()
    WHERE conversation_id = %(conversation_id)s
    RETURNING conversation_id, next_seq - 1 AS seq, session_id
), m AS (
    INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at, token_counter,
                          chained_parts, content_hash, entry_hash, chain_hash)
    SELECT conversation_id, seq, %(role)s::message_role, %(content)s, %(token_count)s, %(created_at)s, 'estimate',
           1, %(digest)s, %(digest)s, %(digest)s
    FROM c
    RETURNING message_id
), p AS (
    INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, text_content, tool_call_id,
                               tool_name, tool_status, tool_input, tool_output, part_hash)
    SELECT 'part_' || message_id || '_0', message_id, session_id, %(part_type)s::message_part_type, 0,
           %(text_content)s, %(tool_call_id)s, %(tool_name)s, %(tool_status)s, %(tool_input)s::jsonb,
           %(tool_output)s, %(digest)s
    FROM m, c
)
INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
SELECT conversation_id, seq, 'message', message_id, %(token_count)s + 4 FROM m, c
RETURNING message_id, ordinal

-- name: append_many
-- The same for a batch, given by columns. Lists go as psycopg sends them by default, as texts, which the goals were
-- measured beside. In binary, this floor would take about a seventh less.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(
        %(role)s::message_role[], %(content)s::text[], %(token_count)s::int[], %(created_at)s::timestamptz[],
        %(digest)s::bytea[], %(part_type)s::message_part_type[], %(text_content)s::text[], %(tool_call_id)s::text[],
        %(tool_name)s::text[], %(tool_status)s::text[], %(tool_input)s::text[], %(tool_output)s::text[]
    ) WITH ORDINALITY AS each(
        role, content, token_count, created_at, digest, part_type, text_content, tool_call_id, tool_name,
        tool_status, tool_input, tool_output, place
    )
), c AS (
    UPDATE conversations SET next_seq = next_seq + more.messages, total_tokens = total_tokens + more.tokens,
        active_messages = active_messages + more.messages,
        active_tokens = active_tokens + more.tokens + 4 * more.messages, updated_at = now()
    FROM (SELECT count(*) AS messages, sum(token_count) AS tokens FROM given) more
    WHERE conversation_id = %(conversation_id)s
    RETURNING conversation_id, next_seq - more.messages AS first_seq, session_id
), m AS (
    INSERT INTO messages (conversation_id, seq, role, content, token_count, created_at, token_counter,
                          chained_parts, content_hash, entry_hash, chain_hash)
    SELECT conversation_id, first_seq + place - 1, role, content, token_count, created_at, 'estimate', 1,
           digest, digest, digest
    FROM given, c ORDER BY place
    RETURNING message_id, seq, token_count
), p AS (
    INSERT INTO message_parts (part_id, message_id, session_id, part_type, ordinal, text_content, tool_call_id,
                               tool_name, tool_status, tool_input, tool_output, part_hash)
    SELECT 'part_' || message_id || '_0', message_id, session_id, part_type, 0, text_content, tool_call_id,
           tool_name, tool_status, tool_input::jsonb, tool_output, digest
    FROM m, c, given WHERE seq = first_seq + place - 1
)
INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
SELECT conversation_id, seq, 'message', message_id, token_count + 4 FROM m, c
RETURNING message_id, ordinal

-- name: raw_sources
-- The raw messages before the fresh tail.
SELECT c.ordinal, c.message_id, m.content, c.token_count, m.created_at
FROM context_items c JOIN messages m USING (message_id)
WHERE c.conversation_id = %(conversation_id)s
  AND c.ordinal < (SELECT next_seq - %(tail)s FROM conversations WHERE conversation_id = %(conversation_id)s)
ORDER BY c.ordinal

-- name: summary_sources
-- The summaries of one depth in the context.
SELECT c.ordinal, c.summary_id, s.content, c.token_count, s.latest_at
FROM context_items c JOIN summaries s USING (summary_id)
WHERE c.conversation_id = %(conversation_id)s AND s.depth = %(depth)s
ORDER BY c.ordinal

-- name: insert_summary
-- A summary by a stub.
INSERT INTO summaries (summary_id, conversation_id, kind, content, token_count, depth, first_seq, last_seq,
                       earliest_at, latest_at, source_count, descendant_count, source_tokens, level, model,
                       token_counter, summary_hash, run_id)
VALUES (%(id)s, %(conversation_id)s, %(kind)s, %(text)s, %(tokens)s, %(depth)s, %(first)s, %(last)s,
        %(since)s, %(until)s, %(sources)s, %(sources)s, %(source_tokens)s, 'deterministic', 'stub',
        'estimate', %(hash)s, 'run_0')

-- name: link_messages
-- What a leaf was made from.
INSERT INTO summary_messages (summary_id, message_id, ordinal)
SELECT %(id)s, message_id, place FROM unnest(%(source_ids)s::bigint[]) WITH ORDINALITY AS given(message_id, place)

-- name: link_summaries
-- What a condensed summary was made from.
INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
SELECT %(id)s, source_id, place FROM unnest(%(source_ids)s::text[]) WITH ORDINALITY AS given(source_id, place)

-- name: remove_sources
-- Take the sources out of the context, and count.
WITH gone AS (
    DELETE FROM context_items WHERE conversation_id = %(conversation_id)s AND ordinal BETWEEN %(first)s AND %(last)s
    RETURNING 1
), counted AS (
    UPDATE conversations SET active_tokens = active_tokens - %(source_tokens)s + %(tokens)s,
           active_messages = active_messages - %(raw)s
    WHERE conversation_id = %(conversation_id)s
)
SELECT count(*) FROM gone

-- name: show_summary
-- Put the summary in their place.
INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, token_count)
VALUES (%(conversation_id)s, %(first)s, 'summary', %(id)s, %(tokens)s)

-- name: newest_items
-- The newest items of a context with their texts.
WITH c AS MATERIALIZED (
    SELECT ordinal, token_count, message_id, summary_id FROM context_items
    WHERE conversation_id = %s ORDER BY ordinal DESC LIMIT %s
)
SELECT c.ordinal, c.token_count, m.role::text, coalesce(m.content, s.content), coalesce(m.created_at, s.latest_at)
FROM c LEFT JOIN messages m ON m.message_id = c.message_id LEFT JOIN summaries s ON s.summary_id = c.summary_id
ORDER BY c.ordinal DESC

-- name: sources
-- The summaries that a summary was made from.
SELECT s.summary_id, s.token_count, s.content FROM summary_parents p
JOIN summaries s ON s.summary_id = p.parent_summary_id WHERE p.summary_id = %s ORDER BY p.ordinal

-- name: messages
-- The messages that a summary was made from.
SELECT m.message_id, m.token_count, m.role::text, m.content, m.created_at FROM summary_messages l
JOIN messages m ON m.message_id = l.message_id WHERE l.summary_id = %s ORDER BY l.ordinal LIMIT %s

-- name: links
-- The ids around a summary.
SELECT (SELECT array_agg(parent_summary_id ORDER BY ordinal) FROM summary_parents WHERE summary_id = %(id)s),
       (SELECT array_agg(summary_id) FROM summary_parents WHERE parent_summary_id = %(id)s),
       (SELECT count(*) FROM summary_messages WHERE summary_id = %(id)s)

-- name: everything
-- Every message below a summary.
WITH RECURSIVE below AS (
    SELECT %s AS summary_id
    UNION
    SELECT p.parent_summary_id FROM below JOIN summary_parents p ON p.summary_id = below.summary_id
)
SELECT m.seq, m.role::text, m.content, m.created_at
FROM below JOIN summary_messages l ON l.summary_id = below.summary_id JOIN messages m ON m.message_id = l.message_id
ORDER BY m.seq

-- name: best_matches
-- The best matches by PostgreSQL's own rank.
SELECT m.message_id, m.seq, m.content, ts_rank_cd(m.content_tsv, asked) AS rank
FROM messages m, websearch_to_tsquery('english', %s) AS asked
WHERE m.conversation_id = %s AND m.content_tsv @@ asked ORDER BY rank DESC, m.seq DESC LIMIT %s

-- name: newest_matches
-- The newest matches.
SELECT m.message_id, m.seq, m.content FROM messages m, websearch_to_tsquery('english', %s) AS asked
WHERE m.conversation_id = %s AND m.content_tsv @@ asked ORDER BY m.seq DESC LIMIT %s

-- name: matches_of_pattern
-- The newest matches of a regular expression.
SELECT message_id, seq, content FROM messages
WHERE conversation_id = %s AND content ~* %s ORDER BY seq DESC LIMIT %s

-- name: holders_of_words
-- Words with the number of messages that hold them. Only what is its own lexeme: a stem that is stemmed once more,
-- as a query is, is another word, and mostly nobody's.
SELECT word, ndoc FROM ts_stat(%s)
WHERE word ~ '^[a-z./]+$' AND tsvector_to_array(to_tsvector('english', word)) = ARRAY[word]

-- name: counted_or_made
-- What an append counts and makes beside messages.
SELECT c.next_seq, c.active_messages, c.active_tokens, c.total_tokens,
       (SELECT count(*) FROM context_items i WHERE i.conversation_id = c.conversation_id AND i.ordinal = ANY(
           SELECT seq FROM messages m WHERE m.conversation_id = c.conversation_id AND m.message_id = i.message_id))
FROM conversations c WHERE c.conversation_id = %s

-- name: messages_and_parts
-- Messages and parts as they were written.
SELECT m.seq, m.role::text, m.content, m.token_count, m.created_at, m.chained_parts, p.ordinal, p.part_type::text,
       p.text_content, p.tool_call_id, p.tool_name, p.tool_status, p.tool_input, p.tool_output,
       p.part_id = 'part_' || m.message_id || '_0'
FROM messages m JOIN message_parts p ON p.message_id = m.message_id WHERE m.conversation_id = %s ORDER BY m.seq

-- name: summary
-- A summary.
SELECT * FROM summaries WHERE summary_id = %s

-- name: parts
-- The parts of messages.
SELECT * FROM message_parts WHERE message_id = ANY(%s) ORDER BY message_id, ordinal

-- name: words_of
-- The words of some messages.
SELECT tsvector_to_array(content_tsv) FROM messages WHERE conversation_id = %s AND seq = ANY(%s)
