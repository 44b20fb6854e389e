-- The statements that read a context. A context may have a thousand items, so a row holds arrays. Its columns: the kind
-- of the row, ordinals, tokens, message ids, texts (mostly summary ids), last seqs, and whether each message is
-- recalled, that is, not in the context itself. The fragment `above` is in `search/matches.sql`.

-- name: stored_context
-- A page of the present context, the mandatory messages before it, and the messages that match the query.
-- `newest` sums, for each item, the tokens of newer items. `page` keeps the items within `tokens`, and a margin.
-- `before` has the system messages and the newest question: a user's message with only tool results is not a question.
-- A summary's last seq is a subquery, because for a join the planner may scan all summaries. The ordinal of a raw
-- message is its seq.
WITH RECURSIVE {above}, newest AS MATERIALIZED (
    SELECT ordinal, token_count, message_id, summary_id,
           sum(token_count) OVER newest_first - token_count AS newer_tokens
    FROM context_items
    WHERE conversation_id = %(id)s AND ordinal < %(before)s
    WINDOW newest_first AS (ORDER BY ordinal DESC ROWS UNBOUNDED PRECEDING)
    ORDER BY ordinal DESC
    LIMIT %(size)s
), page AS MATERIALIZED (
    SELECT ordinal, token_count, message_id, summary_id
    FROM newest
    ORDER BY ordinal DESC
    LIMIT %(margin)s + (SELECT count(*) FROM newest WHERE newer_tokens <= %(tokens)s)
), before AS MATERIALIZED (
    SELECT c.ordinal, c.token_count, c.message_id, m.role
    FROM messages m
    JOIN context_items c ON c.message_id = m.message_id
    WHERE m.conversation_id = %(id)s AND m.seq < (SELECT min(ordinal) FROM page) AND m.role = 'system'
    UNION ALL (
        SELECT c.ordinal, c.token_count, c.message_id, m.role
        FROM messages m
        JOIN context_items c ON c.message_id = m.message_id
        WHERE m.conversation_id = %(id)s AND m.role = 'user'
          AND coalesce((
              SELECT bool_or(p.part_type IN ('text', 'file')) OR NOT bool_or(p.part_type = 'tool')
              FROM message_parts p WHERE p.message_id = m.message_id
          ), true)
        ORDER BY m.seq DESC
        LIMIT 1
    )
), sought AS MATERIALIZED (
    SELECT seq, token_count + %(overhead)s AS token_count, message_id, role
    FROM messages WHERE message_id = ANY(%(sought)s::bigint[])
), named AS MATERIALIZED (
    SELECT message_id, role FROM messages WHERE message_id = ANY(ARRAY(SELECT message_id FROM page))
    UNION ALL SELECT message_id, role FROM before
    UNION ALL SELECT message_id, role FROM sought
)
SELECT 'raw', array_agg(ordinal), array_agg(token_count), array_agg(message_id), NULL::text[], NULL::bigint[],
       NULL::boolean[]
FROM page
WHERE message_id IS NOT NULL
UNION ALL
SELECT 'summary', array_agg(ordinal), array_agg(token_count), NULL, array_agg(summary_id),
       array_agg((SELECT s.last_seq FROM summaries s WHERE s.summary_id = page.summary_id)), NULL
FROM page
WHERE summary_id IS NOT NULL
UNION ALL
SELECT 'before', array_agg(ordinal), array_agg(token_count), array_agg(message_id), NULL, NULL, NULL FROM before
UNION ALL
SELECT 'summaries', ARRAY[count(*)], NULL, NULL, NULL, NULL, NULL
FROM context_items
WHERE (SELECT %(has_summaries)s::boolean) AND conversation_id = %(id)s AND item_type = 'summary'
UNION ALL
SELECT 'sought', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL, NULL,
       array_agg(NOT EXISTS (SELECT FROM context_items c WHERE c.message_id = sought.message_id))
FROM sought
UNION ALL
SELECT 'above', array_agg(c.ordinal), array_agg(c.token_count), array_agg(above.message_id),
       array_agg(c.summary_id), array_agg(s.last_seq), NULL
FROM above
JOIN context_items c ON c.summary_id = above.summary_id
JOIN summaries s ON s.summary_id = c.summary_id
WHERE (SELECT cardinality(%(sought)s::bigint[]) > 0)
UNION ALL
{roles_and_parts}

-- name: roles_and_parts
-- Two rows on the messages in `named`: their roles; and the ids of those with tool parts, the ids of the tool calls
-- and, in the column of the last seqs, the ids of those with text or file parts. All parts are read at once, not
-- message by message.
SELECT 'role', NULL::bigint[], NULL::integer[], array_agg(message_id), array_agg(role::text), NULL::bigint[],
       NULL::boolean[]
FROM named
UNION ALL
SELECT 'parts', NULL, NULL, array_agg(message_id) FILTER (WHERE part_type = 'tool'),
       array_agg(tool_call_id) FILTER (WHERE part_type = 'tool'),
       array_agg(message_id) FILTER (WHERE part_type <> 'tool'), NULL
FROM message_parts
WHERE message_id = ANY(ARRAY(SELECT message_id FROM named)) AND part_type IN ('tool', 'text', 'file')

-- name: withheld
-- A template: the ids of the quarantined items, and of the summaries that contain their text.
SELECT 'withheld', NULL::bigint[], NULL::integer[], NULL::bigint[], array_agg(target), NULL::bigint[], NULL::boolean[]
FROM ({withheld_items}) AS withheld

-- name: messages_around
-- The messages near the given seqs, and whether each is missing from the context. `roles_and_parts` is appended.
-- OFFSET 0 keeps one lookup for each range: for a join, the planner may read the whole conversation.
WITH given AS MATERIALIZED (
    SELECT seq - %(reach)s AS first_seq, seq + %(reach)s AS last_seq FROM unnest(%(seqs)s::bigint[]) AS given(seq)
), named AS MATERIALIZED (
    SELECT DISTINCT near.seq, near.token_count, near.message_id, near.role
    FROM given, LATERAL (
        SELECT m.seq, m.token_count + %(overhead)s AS token_count, m.message_id, m.role
        FROM messages m
        WHERE m.conversation_id = %(id)s AND m.seq BETWEEN given.first_seq AND given.last_seq
          AND NOT %(off)s::int8multirange @> m.seq
        OFFSET 0
    ) AS near
)
SELECT 'near', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL::text[], NULL::bigint[],
       array_agg(message_id NOT IN (
           SELECT raw.message_id
           FROM given, LATERAL (
               SELECT c.message_id
               FROM context_items c
               WHERE c.conversation_id = %(id)s AND c.ordinal BETWEEN given.first_seq AND given.last_seq
                 AND c.message_id IS NOT NULL
               OFFSET 0
           ) AS raw
       ))
FROM named

-- name: past_context
-- The context as it was at a past moment: the summaries that existed then, and the messages that none of them covered.
-- `moment` is a seq or a time. A summary whose range ends after the moment's last message did not exist yet, whatever
-- its creation time. If the head was moved, only the path to the head of that moment counts: `off` lists the seqs that
-- are not on this path, `kept` the summaries that are.
WITH RECURSIVE {above}, moment AS MATERIALIZED (
    {moment}
), there AS MATERIALIZED (
    SELECT s.summary_id, s.first_seq, s.last_seq, s.supersedes_id
    FROM summaries s
    WHERE s.conversation_id = %(id)s AND s.last_seq <= (SELECT seq FROM moment)
      AND ((SELECT time FROM moment) IS NULL OR s.created_at < (SELECT time FROM moment)
           OR (%(upto)s AND s.created_at = (SELECT time FROM moment)))
      AND (%(kept)s::text[] IS NULL OR s.summary_id = ANY(%(kept)s::text[]))
), summed AS MATERIALIZED (
    SELECT t.first_seq, c.token_count, t.summary_id, t.last_seq
    FROM there t LEFT JOIN context_items c ON c.summary_id = t.summary_id
    WHERE NOT EXISTS (
        SELECT FROM summary_parents p JOIN there d ON d.summary_id = p.summary_id
        WHERE p.parent_summary_id = t.summary_id
      ) AND NOT EXISTS (SELECT FROM there later WHERE later.supersedes_id = t.summary_id)
), raw AS MATERIALIZED (
    SELECT m.seq, m.token_count + %(overhead)s AS token_count, m.message_id, m.role
    FROM messages m
    LEFT JOIN (
        SELECT DISTINCT l.message_id FROM there t JOIN summary_messages l ON l.summary_id = t.summary_id
    ) AS covered ON covered.message_id = m.message_id
    WHERE m.conversation_id = %(id)s AND m.seq <= (SELECT seq FROM moment) AND covered.message_id IS NULL
      AND NOT %(off)s::int8multirange @> m.seq
), sought AS MATERIALIZED (
    SELECT seq, token_count + %(overhead)s AS token_count, message_id, role
    FROM messages WHERE message_id = ANY(%(sought)s::bigint[])
      AND seq <= (SELECT seq FROM moment) AND NOT %(off)s::int8multirange @> seq
), named AS (
    SELECT message_id, role FROM raw UNION ALL SELECT message_id, role FROM sought
)
SELECT 'moment', ARRAY[seq], NULL::integer[], NULL::bigint[], NULL::text[], NULL::bigint[], NULL::boolean[],
       {time}
FROM moment
UNION ALL
SELECT 'raw', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL, NULL, NULL, NULL
FROM raw
UNION ALL
SELECT 'summary', array_agg(first_seq), array_agg(token_count), NULL, array_agg(summary_id), array_agg(last_seq),
       NULL, NULL
FROM summed
UNION ALL
SELECT 'sought', array_agg(seq), array_agg(token_count), array_agg(message_id), NULL, NULL, NULL, NULL
FROM sought
UNION ALL
SELECT 'above', array_agg(first_seq), array_agg(0), array_agg(message_id), array_agg(summary_id),
       array_agg(last_seq), NULL, NULL
FROM above JOIN summed USING (summary_id)
UNION ALL
SELECT named.*, NULL
FROM (
    {roles_and_parts}
) AS named

-- name: moment_after_seq
-- A seq, and the time until which its message was the newest: when the next one was recorded.
SELECT %(as_of)s::bigint AS seq, (
    SELECT min(m.recorded_at) FROM messages m WHERE m.conversation_id = %(id)s AND m.seq = %(as_of)s::bigint + 1
) AS time

-- name: moment_at_time
-- The last seq that was recorded by a time. If the clock went back, times are not in the order of seqs: seqs decide.
SELECT coalesce((
    SELECT m.seq FROM messages m WHERE m.conversation_id = %(id)s AND m.recorded_at <= given.time
    ORDER BY m.seq DESC LIMIT 1
), 0) AS seq, given.time
FROM (SELECT %(as_of)s::timestamptz AS time OFFSET 0) AS given

-- name: moment_of_run
-- The last seq at the end of a run, and the time of that end: when the run made its last summary or, if it made none,
-- the time in the run's row.
SELECT coalesce((
    SELECT m.seq FROM messages m WHERE m.conversation_id = %(id)s AND m.recorded_at <= given.time
    ORDER BY m.seq DESC LIMIT 1
), 0) AS seq, given.time
FROM (SELECT coalesce(
    (SELECT max(s.created_at) FROM summaries s WHERE s.conversation_id = %(id)s AND s.run_id = %(as_of)s),
    (SELECT coalesce(r.finished_at, r.started_at) FROM compaction_runs r
     WHERE r.conversation_id = %(id)s AND r.run_id = %(as_of)s)
) AS time OFFSET 0) AS given

-- name: shown_summaries
-- The columns of `ShownSummary`.
SELECT summary_id, content, erased_by_id, kind::text, depth, first_seq, last_seq, earliest_at, latest_at
FROM summaries WHERE summary_id = ANY(%s::text[])

-- name: path_at_moment
-- The last seq of a moment, its time, and the seqs up to it that are not on the path to the head of that moment. The
-- head is that last seq, unless the head was moved by then and nothing was appended after the move.
SELECT moment.seq, moment.time,
       (lcm_off_path(%(id)s, head) + int8multirange(int8range(head + 1, greatest(head, moment.seq) + 1)))::text
FROM ({moment}) AS moment, LATERAL (
    SELECT CASE WHEN %(is_seq)s THEN moment.seq ELSE lcm_head_at(%(id)s, moment.seq + 1, (
        SELECT coalesce(max(m.number), 0) FROM head_moves m
        WHERE m.conversation_id = %(id)s AND m.recorded_at <= moment.time
    )) END AS head OFFSET 0
) AS there
