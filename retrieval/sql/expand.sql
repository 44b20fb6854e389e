-- The statements that read one window of an expansion. `reach` has the summaries that overlap the window, with their
-- level below the root; all but those at the last level are opened. Their links are read summary by summary (OFFSET 0), and
-- used from the beginning of the window on, because message ids grow with seqs. Then the messages are read by id, all at
-- once: the planner cannot know how many summaries there will be, and may otherwise read every link for every message.
-- Summaries are looked up one by one (LATERAL with OFFSET 0), because a join may read a whole history. The subquery around
-- `include_messages` allows one plan for both values.

-- name: below
-- A template: the entries below the `roots` (summaries with their levels) that begin in a window of seqs: all summaries,
-- and the first of the `messages` up to a limit. `own_links` are further links to messages, if a root has others than
-- those of a summary; `raw` are further queries for messages. A summary that begins before `first`, the beginning of a
-- range, is sorted to it. Entries that are below no other entry are sources of `of`.
WITH RECURSIVE reach(summary_id, level) AS (
    {roots}
    UNION
    SELECT s.summary_id, reach.level + 1
    FROM reach, LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = reach.summary_id OFFSET 0) p
    CROSS JOIN LATERAL (SELECT * FROM summaries WHERE summary_id = p.parent_summary_id OFFSET 0) s
    WHERE reach.level < %(depth)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
), nodes AS (
    SELECT summary_id, min(level) AS level FROM reach GROUP BY summary_id
), edge AS (
    SELECT (SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s AND seq >= %(from)s
            ORDER BY seq LIMIT 1) AS message_id
), links AS MATERIALIZED (
    SELECT summary_id, level, ARRAY(
        SELECT l.message_id
        FROM (SELECT message_id FROM summary_messages WHERE summary_id = nodes.summary_id OFFSET 0) l
        WHERE (SELECT %(include_messages)s::boolean) AND l.message_id >= (SELECT message_id FROM edge)
        ORDER BY l.message_id LIMIT %(most)s
    ) AS message_ids
    FROM nodes WHERE level < %(depth)s
    {own_links}
), linked AS (
    SELECT DISTINCT ON (m.seq) m.message_id, m.seq, m.token_count, links.level + 1 AS level, links.summary_id AS of
    FROM links, LATERAL (SELECT * FROM messages WHERE message_id = ANY(links.message_ids) OFFSET 0) m
    WHERE m.conversation_id = %(conversation_id)s AND m.seq BETWEEN %(from)s AND %(upto)s
    ORDER BY m.seq, links.level
    LIMIT %(most)s
)
{raw}
SELECT greatest(s.first_seq, %(first)s), -s.depth, s.summary_id, NULL::bigint, s.token_count, nodes.level,
       coalesce((SELECT p.summary_id FROM summary_parents p JOIN nodes n ON n.summary_id = p.summary_id
                 WHERE p.parent_summary_id = s.summary_id AND n.level = nodes.level - 1
                 ORDER BY p.summary_id LIMIT 1), %(of)s::text)
FROM nodes, LATERAL (SELECT * FROM summaries WHERE summary_id = nodes.summary_id OFFSET 0) s
WHERE nodes.level > 0 AND greatest(s.first_seq, %(first)s) BETWEEN %(from)s AND %(upto)s
UNION ALL
SELECT seq, 1, '', message_id, token_count, level, of FROM {messages}

-- name: root_summary
-- The one root, if a summary is expanded.
SELECT %(of)s::text, 0

-- name: roots_of_range
-- The roots, if a range is expanded as of a moment: the summaries in the context of the range.
SELECT s.summary_id, 1 FROM summaries s
WHERE s.summary_id = ANY(%(roots)s) AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s

-- name: raw_of_range
-- The messages of a range that were raw at that moment, and the first of these and of the linked ones. `kept` has the
-- summaries on the path of that moment, or is null for all, and `off` the seqs that are not on it.
, then_raw AS (
    -- Candidates: what is raw now, and what was compacted since.
    SELECT message_id FROM context_items
    WHERE conversation_id = %(conversation_id)s AND ordinal BETWEEN %(from)s AND %(upto)s
      AND item_type = 'message'
    UNION
    SELECT l.message_id FROM summaries s JOIN summary_messages l ON l.summary_id = s.summary_id
    WHERE s.conversation_id = %(conversation_id)s AND s.created_at > %(as_of)s
    UNION
    -- After a move of the head, any message may have been raw.
    SELECT message_id FROM messages
    WHERE %(kept)s::text[] IS NOT NULL AND conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s
), raw AS (
    SELECT m.message_id, m.seq, m.token_count, 1 AS level, %(of)s::text AS of
    FROM then_raw JOIN messages m ON m.message_id = then_raw.message_id
    WHERE %(include_messages)s AND m.seq BETWEEN %(from)s AND %(upto)s AND NOT %(off)s::int8multirange @> m.seq
      AND NOT EXISTS (
          SELECT FROM summary_messages l JOIN summaries s ON s.summary_id = l.summary_id
          WHERE l.message_id = m.message_id AND s.created_at <= %(as_of)s
            AND (%(kept)s::text[] IS NULL OR s.summary_id = ANY(%(kept)s))
      )
    ORDER BY m.seq LIMIT %(most)s
), near AS (
    SELECT * FROM (SELECT * FROM linked UNION ALL SELECT * FROM raw) AS both_kinds ORDER BY seq LIMIT %(most)s
)

-- name: messages_of_range
-- The messages of a range, whether summarized or not.
SELECT seq, 1, '', message_id, token_count, 1, %(of)s::text
FROM messages
WHERE conversation_id = %(conversation_id)s AND seq BETWEEN %(from)s AND %(upto)s
ORDER BY seq LIMIT %(most)s

-- name: summaries
-- The summaries of a page.
SELECT summary_id, kind::text, depth, content, created_at, first_seq, last_seq, descendant_count,
       erased_by_id IS NOT NULL, earliest_at, latest_at
FROM summaries WHERE summary_id = ANY((SELECT %s)::text[])
