-- name: messages_are_complete
-- Gaps in `seq`, and messages that lack a part with which they were appended.
WITH followed AS (
    SELECT conversation_id, seq, lead(seq) OVER (PARTITION BY conversation_id ORDER BY seq) AS next
    FROM messages WHERE conversation_id = ANY(%(ids)s)
    UNION ALL
    SELECT c.conversation_id, 0, (SELECT min(seq) FROM messages m WHERE m.conversation_id = c.conversation_id)
    FROM conversations c WHERE c.conversation_id = ANY(%(ids)s)
)
SELECT s.conversation_id, 'seq_' || s.seq + 1,
       format('messages %%s to %%s are missing', s.seq + 1, coalesce(s.next, c.next_seq) - 1)
FROM followed s JOIN conversations c USING (conversation_id)
WHERE coalesce(s.next, c.next_seq) > s.seq + 1
UNION ALL
SELECT m.conversation_id, 'msg_' || m.message_id,
       format('has %%s parts with ordinals up to %%s; it was appended with %%s', count(p.ordinal),
              coalesce(max(p.ordinal), -1), m.chained_parts)
FROM messages m LEFT JOIN message_parts p USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
GROUP BY m.message_id
HAVING count(p.ordinal) <> coalesce(max(p.ordinal), -1) + 1 OR count(p.ordinal) < m.chained_parts
    OR m.chained_parts < 0

-- name: messages_are_reachable_once
-- Messages that the context reaches not at all or in several ways, and messages off the active path that it reaches.
WITH RECURSIVE below(root, summary_id) AS (
    SELECT summary_id, summary_id FROM context_items
    WHERE conversation_id = ANY(%(ids)s) AND summary_id IS NOT NULL
    UNION ALL
    SELECT below.root, p.parent_summary_id
    FROM below JOIN summary_parents p ON p.summary_id = below.summary_id
) CYCLE summary_id SET is_cycle USING path,
ways AS (
    SELECT message_id, 'the context' AS root FROM context_items
    WHERE conversation_id = ANY(%(ids)s) AND message_id IS NOT NULL
    UNION ALL
    SELECT l.message_id, below.root
    FROM below JOIN summary_messages l ON l.summary_id = below.summary_id WHERE NOT below.is_cycle
)
SELECT m.conversation_id, 'msg_' || m.message_id,
       CASE
           WHEN count(w.message_id) = 0 THEN format('message %%s cannot be reached', m.seq)
           WHEN c.inactive @> m.seq THEN format('message %%s is off the active path and reached through %%s', m.seq,
                                                string_agg(DISTINCT w.root, ', '))
           ELSE format('message %%s is reached %%s times, through %%s', m.seq, count(*),
                       string_agg(DISTINCT w.root, ', '))
       END
FROM messages m JOIN conversations c USING (conversation_id) LEFT JOIN ways w USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
GROUP BY m.message_id, c.conversation_id
HAVING count(w.message_id) <> CASE WHEN c.inactive @> m.seq THEN 0 ELSE 1 END

-- name: heads_follow_their_moves
-- Moves that are out of order or lead to no message, and conversations whose columns contradict their moves.
WITH followed AS (
    SELECT m.*, row_number() OVER in_order AS expected, lag(m.at_seq, 1, 1::bigint) OVER in_order AS before
    FROM head_moves m WHERE m.conversation_id = ANY(%(ids)s)
    WINDOW in_order AS (PARTITION BY m.conversation_id ORDER BY m.number)
), moved AS (
    SELECT c.conversation_id, c.next_seq, c.moves, c.inactive,
           (SELECT coalesce(max(m.number), 0) FROM head_moves m WHERE m.conversation_id = c.conversation_id) AS made,
           (SELECT count(*) FROM audit_log a
             WHERE a.conversation_id = c.conversation_id AND a.act = 'move_head') AS acts
    FROM conversations c WHERE c.conversation_id = ANY(%(ids)s)
)
SELECT f.conversation_id, 'move_' || f.number,
       format('is move %%s, at seq %%s to %%s, behind one at seq %%s', f.expected, f.at_seq, f.head_seq, f.before)
FROM followed f JOIN conversations c USING (conversation_id)
WHERE f.number <> f.expected OR f.at_seq < f.before OR f.at_seq > c.next_seq OR f.head_seq NOT BETWEEN 0 AND f.at_seq - 1
UNION ALL
SELECT conversation_id, 'conv_' || conversation_id,
       CASE WHEN acts > made THEN format('its head was moved %%s times, and %%s moves are there', acts, made)
            ELSE format('says that its head moved %%s times and %%s is off its path; its moves are %%s and say %%s',
                        moves, inactive, made, lcm_inactive(conversation_id, next_seq, made)) END
FROM moved
WHERE acts > made OR moves <> made OR inactive <> lcm_inactive(conversation_id, next_seq, made)

-- name: recording_never_goes_back
-- Messages recorded before their predecessor, and conversations written before their newest message.
SELECT conversation_id, 'msg_' || message_id,
       format('message %%s was recorded at %%s, the one before it at %%s', seq, recorded_at, before)
FROM (
    SELECT conversation_id, message_id, seq, recorded_at, lag(recorded_at) OVER in_order AS before
    FROM messages WHERE conversation_id = ANY(%(ids)s)
    WINDOW in_order AS (PARTITION BY conversation_id ORDER BY seq, message_id)
) AS recorded
WHERE recorded_at < before
UNION ALL
-- The next message gets this time or a later one.
SELECT c.conversation_id, 'conv_' || c.conversation_id,
       format('was last written at %%s, but its newest message was recorded at %%s', c.updated_at, newest.recorded_at)
FROM conversations c, LATERAL (
    SELECT m.recorded_at FROM messages m
    WHERE m.conversation_id = c.conversation_id ORDER BY m.seq DESC LIMIT 1
) newest
WHERE c.conversation_id = ANY(%(ids)s) AND c.updated_at < newest.recorded_at

-- name: parts_have_the_names_of_their_place
-- Parts whose id or session differs from the one derived from their message and ordinal.
SELECT m.conversation_id, p.part_id, CASE
           WHEN p.session_id <> c.session_id THEN 'names another session'
           ELSE format('belongs to message %%s at ordinal %%s', p.message_id, p.ordinal) END
FROM messages m
JOIN conversations c USING (conversation_id)
JOIN message_parts p USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s)
  AND (p.part_id <> 'part_' || p.message_id || '_' || p.ordinal OR p.session_id <> c.session_id)

-- name: context_points_at_rows
-- Context items that do not refer to exactly one existing message or summary of their conversation.
SELECT c.conversation_id, 'ordinal_' || c.ordinal,
       CASE
           WHEN coalesce(m.message_id::text, s.summary_id) IS NULL THEN format(
               'points at %%s, which does not exist',
                  coalesce('msg_' || c.message_id, c.summary_id, 'a row'))
           WHEN coalesce(m.conversation_id, s.conversation_id) <> c.conversation_id THEN format(
               'points at %%s of conversation %%s', coalesce('msg_' || m.message_id, s.summary_id),
               coalesce(m.conversation_id, s.conversation_id))
           ELSE format('is a %%s item but does not point at exactly one %%s', c.item_type, c.item_type)
       END
FROM context_items c
LEFT JOIN messages m ON m.message_id = c.message_id
LEFT JOIN summaries s ON s.summary_id = c.summary_id
WHERE c.conversation_id = ANY(%(ids)s)
  AND (coalesce(m.conversation_id, s.conversation_id) IS DISTINCT FROM c.conversation_id
       OR (c.item_type = 'message') <> (c.message_id IS NOT NULL)
       OR (c.item_type = 'summary') <> (c.summary_id IS NOT NULL))

-- name: ordinals_are_unique
-- Ordinals and seqs that are used twice.
SELECT conversation_id, 'ordinal_' || ordinal, format('%%s context items have this ordinal', count(*))
FROM context_items WHERE conversation_id = ANY(%(ids)s)
GROUP BY conversation_id, ordinal HAVING count(*) > 1
UNION ALL
SELECT conversation_id, 'seq_' || seq, format('%%s messages have this seq', count(*))
FROM messages WHERE conversation_id = ANY(%(ids)s)
GROUP BY conversation_id, seq HAVING count(*) > 1
UNION ALL
SELECT m.conversation_id, 'msg_' || m.message_id, format('%%s parts have ordinal %%s', count(*), p.ordinal)
FROM message_parts p JOIN messages m USING (message_id) WHERE m.conversation_id = ANY(%(ids)s)
GROUP BY m.conversation_id, m.message_id, p.ordinal HAVING count(*) > 1
UNION ALL
SELECT s.conversation_id, s.summary_id, format('%%s source messages have ordinal %%s', count(*), l.ordinal)
FROM summary_messages l JOIN summaries s USING (summary_id) WHERE s.conversation_id = ANY(%(ids)s)
GROUP BY s.conversation_id, s.summary_id, l.ordinal HAVING count(*) > 1
UNION ALL
SELECT s.conversation_id, s.summary_id, format('%%s source summaries have ordinal %%s', count(*), p.ordinal)
FROM summary_parents p JOIN summaries s USING (summary_id) WHERE s.conversation_id = ANY(%(ids)s)
GROUP BY s.conversation_id, s.summary_id, p.ordinal HAVING count(*) > 1

-- name: context_is_what_lineage_says
-- Differences between the stored context and the one derived from lineage. A conversation whose head was moved is
-- checked alone: `off` are the seqs off its active path, `kept` the ids of the summaries that belong to the path.
WITH derived AS (
    SELECT m.conversation_id, m.seq AS ordinal, 'msg_' || m.message_id AS id,
           m.token_count + %(message_overhead)s AS tokens
    FROM messages m
    WHERE m.conversation_id = ANY(%(ids)s) AND NOT %(off)s::int8multirange @> m.seq
      AND NOT EXISTS (
          SELECT FROM summary_messages l
          WHERE l.message_id = m.message_id AND (%(kept)s::text[] IS NULL OR l.summary_id = ANY(%(kept)s::text[])))
    UNION ALL
    SELECT s.conversation_id, s.first_seq, s.summary_id, NULL
    FROM summaries s
    WHERE s.conversation_id = ANY(%(ids)s) AND (%(kept)s::text[] IS NULL OR s.summary_id = ANY(%(kept)s::text[]))
      AND NOT EXISTS (
          SELECT FROM summary_parents p
          WHERE p.parent_summary_id = s.summary_id
            AND (%(kept)s::text[] IS NULL OR p.summary_id = ANY(%(kept)s::text[])))
      AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id)
), stored AS (
    SELECT conversation_id, ordinal, coalesce('msg_' || message_id, summary_id, 'nothing') AS id,
           CASE WHEN message_id IS NOT NULL THEN token_count END AS tokens
    FROM context_items WHERE conversation_id = ANY(%(ids)s)
)
SELECT coalesce(d.conversation_id, s.conversation_id), coalesce(d.id, s.id),
       CASE
           WHEN s.id IS NULL THEN format('is missing from the context at ordinal %%s', d.ordinal)
           WHEN d.id IS NULL THEN format('is in the context at ordinal %%s but should not be', s.ordinal)
           WHEN d.ordinal <> s.ordinal THEN format('is at ordinal %%s instead of %%s', s.ordinal, d.ordinal)
           ELSE format('costs %%s tokens in the context instead of %%s', s.tokens, d.tokens)
       END
FROM derived d FULL JOIN stored s ON s.conversation_id = d.conversation_id AND s.id = d.id
WHERE (d.ordinal, d.tokens) IS DISTINCT FROM (s.ordinal, s.tokens)

-- name: nothing_is_shown_twice
-- Messages and summaries with more than one context item.
SELECT conversation_id, coalesce('msg_' || message_id, summary_id),
       format('is in the context %%s times, at ordinals %%s', count(*),
              string_agg(ordinal::text, ', ' ORDER BY ordinal))
FROM context_items WHERE conversation_id = ANY(%(ids)s)
GROUP BY conversation_id, message_id, summary_id HAVING count(*) > 1

-- name: summaries_have_sources
-- Summaries without a source.
SELECT s.conversation_id, s.summary_id, 'has no source'
FROM summaries s
WHERE s.conversation_id = ANY(%(ids)s)
  AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.summary_id = s.summary_id)
  AND NOT EXISTS (SELECT FROM summary_parents p WHERE p.summary_id = s.summary_id)

-- name: lineage_stays_in_its_conversation
-- Links to sources that are missing or belong to another conversation.
WITH links AS (
    SELECT l.summary_id, 'msg_' || l.message_id AS source_id, m.conversation_id
    FROM summary_messages l LEFT JOIN messages m USING (message_id)
    UNION ALL
    SELECT p.summary_id, p.parent_summary_id, source.conversation_id
    FROM summary_parents p LEFT JOIN summaries source ON source.summary_id = p.parent_summary_id
)
SELECT s.conversation_id, s.summary_id,
       CASE
           WHEN links.conversation_id IS NULL THEN format('its source %%s does not exist', links.source_id)
           ELSE format('its source %%s belongs to conversation %%s', links.source_id, links.conversation_id)
       END
FROM summaries s JOIN links USING (summary_id)
WHERE s.conversation_id = ANY(%(ids)s) AND links.conversation_id IS DISTINCT FROM s.conversation_id

-- name: lineage_has_no_cycle
-- Summaries that are, through others, a source of themselves.
-- Every cycle has a link whose source is no shallower than its summary, so the search starts from these links.
WITH RECURSIVE suspect AS (
    SELECT s.conversation_id, s.summary_id, p.parent_summary_id
    FROM summaries s
    JOIN summary_parents p ON p.summary_id = s.summary_id
    JOIN summaries source ON source.summary_id = p.parent_summary_id
    WHERE s.conversation_id = ANY(%(ids)s) AND source.depth >= s.depth
), below(summary_id, source_id) AS (
    SELECT summary_id, parent_summary_id FROM suspect
    UNION
    SELECT below.summary_id, p.parent_summary_id
    FROM below JOIN summary_parents p ON p.summary_id = below.source_id
)
SELECT DISTINCT suspect.conversation_id, suspect.summary_id, 'is a source of itself'
FROM suspect JOIN below ON below.summary_id = suspect.summary_id AND below.source_id = suspect.summary_id

-- name: summaries_know_what_they_cover
-- Summaries whose recorded range, depth or counts differ from those of their sources.
WITH sources AS (
    SELECT l.summary_id, m.seq AS first_seq, m.seq AS last_seq, m.created_at AS earliest_at,
           m.created_at AS latest_at, 1 AS descendants, -1 AS depth, m.token_count::bigint AS tokens
    FROM summaries s JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
    WHERE s.conversation_id = ANY(%(ids)s)
    UNION ALL
    SELECT p.summary_id, source.first_seq, source.last_seq, source.earliest_at,
           source.latest_at, source.descendant_count, source.depth, source.source_tokens
    FROM summaries s JOIN summary_parents p USING (summary_id)
    JOIN summaries source ON source.summary_id = p.parent_summary_id
    WHERE s.conversation_id = ANY(%(ids)s)
), expected AS (
    SELECT summary_id, min(first_seq) AS first_seq, max(last_seq) AS last_seq, min(earliest_at) AS earliest_at,
           max(latest_at) AS latest_at, sum(descendants) AS descendants, count(*) AS sources,
           max(depth) + 1 AS depth, sum(tokens) AS tokens
    FROM sources GROUP BY summary_id
)
SELECT s.conversation_id, s.summary_id, concat_ws('; ',
    CASE WHEN s.first_seq <> t.first_seq OR s.last_seq <> t.last_seq THEN format(
        'records messages %%s to %%s instead of %%s to %%s', s.first_seq, s.last_seq, t.first_seq, t.last_seq) END,
    CASE WHEN s.earliest_at <> t.earliest_at OR s.latest_at <> t.latest_at THEN format(
        'records %%s to %%s instead of %%s to %%s', s.earliest_at, s.latest_at, t.earliest_at, t.latest_at) END,
    CASE WHEN s.depth <> t.depth THEN format('records depth %%s instead of %%s', s.depth, t.depth) END,
    CASE WHEN s.source_count <> t.sources THEN format(
        'records %%s sources instead of %%s', s.source_count, t.sources) END,
    CASE WHEN s.descendant_count <> t.descendants THEN format(
        'records %%s messages below it instead of %%s', s.descendant_count, t.descendants) END,
    CASE WHEN s.source_tokens <> t.tokens THEN format(
        'records %%s tokens below it instead of %%s', s.source_tokens, t.tokens) END)
FROM summaries s JOIN expected t USING (summary_id)
WHERE (s.first_seq, s.last_seq, s.earliest_at, s.latest_at, s.depth, s.source_count, s.descendant_count,
       s.source_tokens)
      <> (t.first_seq, t.last_seq, t.earliest_at, t.latest_at, t.depth, t.sources, t.descendants, t.tokens)

-- name: redone_summaries_stand_for_the_same
-- Summaries that supersede one which covers other messages.
SELECT s.conversation_id, s.summary_id,
       format('supersedes %%s, which covers other messages', s.supersedes_id)
FROM summaries s LEFT JOIN summaries old ON old.summary_id = s.supersedes_id
WHERE s.conversation_id = ANY(%(ids)s) AND s.supersedes_id IS NOT NULL
  AND (s.conversation_id, s.first_seq, s.last_seq, s.depth, s.descendant_count, s.source_count)
      IS DISTINCT FROM
      (old.conversation_id, old.first_seq, old.last_seq, old.depth, old.descendant_count, old.source_count)

-- name: sources_are_numbered_from_zero
-- Summaries whose sources are not numbered from 0 without a gap.
WITH links AS (
    SELECT summary_id, 'messages' AS kind, ordinal FROM summary_messages
    UNION ALL
    SELECT summary_id, 'summaries', ordinal FROM summary_parents
)
SELECT s.conversation_id, s.summary_id,
       format('its %%s source %%s have ordinals from %%s to %%s', count(*), links.kind,
              min(ordinal), max(ordinal))
FROM summaries s JOIN links USING (summary_id)
WHERE s.conversation_id = ANY(%(ids)s)
GROUP BY s.conversation_id, s.summary_id, links.kind
HAVING min(ordinal) <> 0 OR max(ordinal) <> count(DISTINCT ordinal) - 1

-- name: journals_are_complete
-- Journal entries that do not match their hash or follow a gap, and journals whose size differs from the counter.
SELECT conversation_id, 'entry_' || journal_entry_id,
       format('entry %%s of %%L %%s', position, subpath,
              CASE WHEN place <> position THEN format('is in place %%s', place) ELSE 'does not match its hash' END)
FROM (
    SELECT *, row_number() OVER (PARTITION BY conversation_id, subpath ORDER BY position) AS place
    FROM journal_entries WHERE conversation_id = ANY(%(ids)s)
) AS placed
WHERE place <> position OR entry_hash <> sha256(convert_to(entry, 'UTF8'))
UNION ALL
SELECT c.conversation_id, 'conv_' || c.conversation_id,
       format('has %%s entries in its journal; %%s were kept', count(j.journal_entry_id), c.journal_size)
FROM conversations c LEFT JOIN journal_entries j USING (conversation_id)
WHERE c.conversation_id = ANY(%(ids)s)
GROUP BY c.conversation_id HAVING count(j.journal_entry_id) <> c.journal_size
