-- name: summaries
-- The summaries that overlap the window, in the columns of `WindowSummary`.
SELECT s.summary_id, s.depth, s.first_seq, s.last_seq, s.token_count, s.source_tokens, s.level, s.retention,
       s.is_degraded, {seen},
       (SELECT later.created_at <= coalesce(%(time)s::timestamptz, later.created_at)
        FROM summaries later WHERE later.supersedes_id = s.summary_id) IS TRUE,
       s.run_id, s.created_at
FROM summaries s
WHERE s.conversation_id = %(conversation_id)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
  AND (%(time)s::timestamptz IS NULL OR s.created_at <= %(time)s) {among}
ORDER BY s.depth, s.first_seq, s.created_at

-- name: bundles
-- The summaries that are not listed one by one, as bundles of adjacent summaries.
SELECT s.depth, min(s.first_seq) AS first_seq, max(s.last_seq) AS last_seq, count(*) AS summaries,
       max(s.token_count) AS token_count, sum(s.source_tokens)::bigint AS source_tokens,
       sum(s.last_seq - s.first_seq + 1)::bigint AS messages
FROM summaries s
WHERE s.conversation_id = %(conversation_id)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
  AND (%(time)s::timestamptz IS NULL OR s.created_at <= %(time)s) AND NOT ({is_single})
GROUP BY s.depth, s.first_seq / %(bundle_width)s
ORDER BY 1, 2

-- name: is_single
-- A condition: a summary is listed by itself if it is wide enough, or active.
s.last_seq - s.first_seq + 1 >= %(least)s OR {seen}

-- name: active_now
-- A condition: the summary is in the active context.
s.summary_id IN (
    SELECT c.summary_id FROM context_items c WHERE c.conversation_id = %(conversation_id)s AND c.item_type = 'summary'
)

-- name: raw_then
-- The ranges of messages that were raw in the context at that time; `raw_spans` in `describe.sql` has those of now.
-- `off` are the seqs that were not on the path.
-- Within a range of consecutive messages, seq minus row number is constant, so it identifies the range.
SELECT min(seq) AS first_seq, max(seq) AS last_seq
FROM (
    SELECT m.seq, m.seq - row_number() OVER (ORDER BY m.seq) AS island
    FROM messages m
    WHERE m.conversation_id = %(conversation_id)s AND m.seq BETWEEN %(from)s AND %(upto)s
      AND NOT %(off)s::int8multirange @> m.seq AND NOT EXISTS (
          SELECT FROM summary_messages l JOIN summaries s ON s.summary_id = l.summary_id
          WHERE l.message_id = m.message_id AND s.created_at <= %(time)s
            AND (%(kept)s::text[] IS NULL OR s.summary_id = ANY(%(kept)s))
      )
) AS raw
GROUP BY island ORDER BY 1

-- name: runs
-- The newest runs that made summaries, in the columns of `WindowRun`.
SELECT made.run_id, made.finished_at, made.last_seq, made.summaries, r.reason, r.outcome
FROM (
    SELECT s.run_id, max(s.created_at) AS finished_at, max(s.last_seq) AS last_seq, count(*) AS summaries
    FROM summaries s WHERE s.conversation_id = %(conversation_id)s GROUP BY s.run_id ORDER BY 2 DESC LIMIT %(most)s
) AS made
LEFT JOIN compaction_runs r ON r.run_id = made.run_id
ORDER BY 2, 1

-- name: last_message_then
-- The last seq that was recorded by a time.
SELECT m.seq FROM messages m WHERE m.conversation_id = %(conversation_id)s AND m.recorded_at <= %(time)s
ORDER BY m.seq DESC LIMIT 1

-- name: messages
-- The messages of the window.
SELECT message_id, seq, role::text, token_count FROM messages
WHERE conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s ORDER BY seq
