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
-- On a cycle depth cannot rise all the way round, so only links that do not descend can close one.
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
-- Summaries that supersede one of other messages.
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
