-- The statements that prepare a search.

-- name: extent_of_one
-- The size of one conversation, the seqs off its active path, and the time of PostgreSQL's statistics.
SELECT next_seq - 1, cold_messages::bigint, next_seq - 1, NULL::bigint[],
       CASE WHEN NOT isempty(inactive) THEN inactive::text END, now(), {statistics}
FROM conversations WHERE {where}

-- name: extent_of_several
-- The same for several conversations, where positions are message ids. With `named`, it also returns which of them
-- exist. If any has seqs off its active path, the search checks each row against its own conversation.
SELECT coalesce(sum(next_seq - 1), 0)::bigint, coalesce(sum(cold_messages), 0)::bigint,
       (SELECT coalesce(max(message_id), 0) FROM messages), array_agg(conversation_id) FILTER (WHERE %(named)s),
       CASE WHEN bool_or(NOT isempty(inactive)) THEN '{{}}' END, now(), {statistics}
FROM conversations WHERE {where}

-- name: statistics
-- When `messages` was last analyzed, and whether this transaction has written nothing: one that has written may see
-- statistics of its own ANALYZE, which are not committed.
(SELECT greatest(pg_stat_get_last_analyze_time(oid), pg_stat_get_last_autoanalyze_time(oid))
 FROM pg_class WHERE oid = to_regclass('messages')),
pg_current_xact_id_if_assigned() IS NULL

-- name: word_frequencies
-- The most common lexemes of all messages, and the share of messages that holds each.
SELECT json_build_array(most_common_elems::text::text[], most_common_elem_freqs)::text
FROM pg_stats
WHERE schemaname = ANY(current_schemas(false)) AND tablename = 'messages' AND attname = 'content_tsv'
  AND most_common_elems IS NOT NULL
LIMIT 1

-- name: below_summary
-- The conversation and range of a summary, and all summaries below it, with those that supersede any of them.
WITH RECURSIVE top AS MATERIALIZED (
    SELECT summary_id, conversation_id, first_seq, last_seq FROM summaries WHERE summary_id = %(under)s AND {owned}
), below AS (
    SELECT parent_summary_id AS id FROM summary_parents WHERE summary_id = (SELECT summary_id FROM top)
    UNION
    SELECT further.id FROM below, LATERAL (
        SELECT parent_summary_id AS id FROM summary_parents WHERE summary_id = below.id
        UNION ALL
        SELECT summary_id FROM summaries WHERE supersedes_id = below.id
    ) AS further
)
SELECT conversation_id, first_seq, last_seq, ARRAY(SELECT id FROM below) FROM top

-- name: lexed_terms
-- The lexemes of each term as the index has them. OFFSET 0 keeps expressions that are used twice from being computed
-- twice.
SELECT tsvector_to_array(to_tsvector('lcm_words', words)),
       tsvector_to_array(to_tsvector('lcm_words', parts)),
       tsvector_to_array(to_tsvector('lcm_words', forms)),
       CASE WHEN is_phrase OR is_excluded OR parts = '' THEN '' ELSE lcm_tsquery(ltrim(term, '-'))::text END,
       CASE WHEN is_phrase THEN lcm_tsquery('"' || term || '"')::text
            WHEN is_excluded THEN lcm_tsquery(term)::text
            ELSE '' END
FROM (
    SELECT *, lcm_compound_parts(words) AS parts
    FROM (
        SELECT *, lcm_bigrams(lcm_fold(term)) AS words
        FROM unnest(%(terms)s::text[], %(phrases)s::boolean[], %(exclusions)s::boolean[], %(forms)s::text[])
             WITH ORDINALITY AS given(term, is_phrase, is_excluded, forms, place)
        OFFSET 0
    ) AS folded
    OFFSET 0
) AS parted
ORDER BY place

-- name: messages_of_rare_tools
-- All messages of tools that are called rarely: the calls, and the results that answer them.
-- Ids grow in the order of recording, so the ids of a conversation lie between its first and its last. Row comparisons
-- let the index serve both the condition and the order. OFFSET 0 keeps each step an index lookup, however many rows the
-- planner expects of the step before.
WITH ends AS MATERIALIZED (
    SELECT coalesce((
        SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s::bigint
        ORDER BY seq LIMIT 1
    ), 0) AS first, coalesce((
        SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s::bigint
        ORDER BY seq DESC LIMIT 1
    ), 9223372036854775807) AS last
), calls AS MATERIALIZED (
    SELECT found.message_id, found.tool_call_id
    FROM ends, unnest(%(tool_names)s::text[]) AS asked(name), LATERAL (
        SELECT message_id, tool_call_id FROM message_parts
        WHERE tool_name IS NOT NULL AND (tool_name, message_id) >= (asked.name, ends.first)
          AND (tool_name, message_id) <= (asked.name, ends.last)
        ORDER BY tool_name, message_id LIMIT %(most)s
    ) AS found
    LIMIT %(most)s
), few AS MATERIALIZED (
    SELECT calls.* FROM calls WHERE (SELECT count(*) FROM calls) < %(most)s
)
SELECT (SELECT count(*) FROM calls), array(
    SELECT message_id FROM few
    UNION
    SELECT answer.message_id
    FROM few, LATERAL (
        SELECT conversation_id, seq FROM messages WHERE message_id = few.message_id OFFSET 0
    ) AS call, LATERAL (
        SELECT message_id FROM messages
        WHERE conversation_id = call.conversation_id AND seq BETWEEN call.seq + 1 AND call.seq + 16
        OFFSET 0
    ) AS later, LATERAL (
        SELECT message_id FROM message_parts
        WHERE message_id = later.message_id AND tool_name IS NULL AND tool_call_id = few.tool_call_id
        OFFSET 0
    ) AS answer
)
