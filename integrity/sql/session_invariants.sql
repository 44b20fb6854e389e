-- name: session_summaries_match_their_hashes
-- Session, arc and epoch summaries whose hash does not match their text and sources.
WITH sources AS (
    SELECT l.summary_id, l.ordinal, encode(coalesce(m.content_hash, s.summary_hash), 'hex') AS hash
    FROM session_summary_memories l
    LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s ON s.summary_id = l.memory_summary_id
    UNION ALL
    SELECT l.parent_id, l.ordinal, encode(child.summary_hash, 'hex')
    FROM session_summary_children l JOIN session_summaries child ON child.summary_id = l.child_id
), expected AS (
    SELECT summary_id, string_agg(hash, ',' ORDER BY ordinal, hash) AS hashes FROM sources GROUP BY summary_id
)
SELECT s.conversation_id, s.summary_id, 'its text or its sources do not match its summary hash'
FROM session_summaries s LEFT JOIN expected USING (summary_id)
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s) AND s.erased_by_id IS NULL
  AND s.summary_hash <> sha256(convert_to(coalesce(expected.hashes, '') || '|' || s.content, 'UTF8'))

-- name: sessions_reach_every_message
-- Current session summaries from which a message up to their last seq cannot be reached, or in several ways; and those
-- that cover no message.
WITH RECURSIVE present AS (
    SELECT s.* FROM session_summaries s
    WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s) AND s.depth = 0
      AND NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id)
), below(root, summary_id) AS (
    SELECT l.summary_id, l.memory_summary_id
    FROM present JOIN session_summary_memories l USING (summary_id) WHERE l.memory_summary_id IS NOT NULL
    UNION ALL
    SELECT below.root, p.parent_summary_id FROM below JOIN summary_parents p ON p.summary_id = below.summary_id
) CYCLE summary_id SET is_cycle USING path,
ways AS (
    SELECT l.summary_id AS root, l.message_id
    FROM present JOIN session_summary_memories l USING (summary_id) WHERE l.message_id IS NOT NULL
    UNION ALL
    SELECT below.root, l.message_id
    FROM below JOIN summary_messages l ON l.summary_id = below.summary_id WHERE NOT below.is_cycle
), counted AS (
    SELECT root, message_id, count(*) AS ways FROM ways GROUP BY root, message_id
)
SELECT s.conversation_id, s.summary_id,
       CASE WHEN count(m.message_id) = 0 THEN 'covers no message at all'
            WHEN count(*) FILTER (WHERE w.message_id IS NULL) > 0
            THEN format('does not reach message %%s', min(m.seq) FILTER (WHERE w.message_id IS NULL))
            ELSE format('reaches message %%s several times', min(m.seq) FILTER (WHERE w.ways > 1)) END
FROM present s
LEFT JOIN LATERAL (
    SELECT CASE WHEN c.moves > 0 THEN lcm_off_path(s.conversation_id, s.last_seq) ELSE '{}' END AS off
    FROM conversations c WHERE c.conversation_id = s.conversation_id
) AS path ON true
LEFT JOIN messages m ON m.conversation_id = s.conversation_id AND m.seq BETWEEN 1 AND s.last_seq
    AND NOT coalesce(path.off, '{}') @> m.seq
LEFT JOIN counted w ON w.root = s.summary_id AND w.message_id = m.message_id
GROUP BY s.conversation_id, s.summary_id
HAVING bool_or(m.message_id IS NULL OR w.message_id IS NULL OR w.ways > 1)

-- name: history_sources_are_numbered_from_zero
-- Summaries whose sources are not numbered from 0 without a gap, or that have none.
WITH links AS (
    SELECT summary_id, ordinal FROM session_summary_memories
    UNION ALL
    SELECT parent_id, ordinal FROM session_summary_children
)
SELECT s.conversation_id, s.summary_id,
       CASE WHEN count(ordinal) = 0 THEN 'rests on nothing'
            ELSE format('its %%s sources have ordinals from %%s to %%s', count(*), min(ordinal), max(ordinal)) END
FROM session_summaries s LEFT JOIN links USING (summary_id)
WHERE %(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s
GROUP BY s.conversation_id, s.summary_id
HAVING count(ordinal) = 0 OR min(ordinal) <> 0 OR max(ordinal) <> count(*) - 1
    OR count(DISTINCT ordinal) <> count(*)

-- name: history_rests_on_its_own
-- Summaries with a source of another conversation, project or workspace, or of a wrong kind.
SELECT s.conversation_id, s.summary_id, format('rests on %%s, which is not of its conversation',
       coalesce(l.memory_summary_id, 'msg_' || l.message_id))
FROM session_summaries s JOIN session_summary_memories l USING (summary_id)
LEFT JOIN messages m USING (message_id) LEFT JOIN summaries below ON below.summary_id = l.memory_summary_id
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s)
  AND (s.depth, coalesce(m.conversation_id, below.conversation_id)) IS DISTINCT FROM (0, s.conversation_id)
UNION ALL
SELECT s.conversation_id, s.summary_id, format('rests on %%s, which is not one of its project and one level below',
       l.child_id)
FROM session_summaries s JOIN session_summary_children l ON l.parent_id = s.summary_id
LEFT JOIN session_summaries below ON below.summary_id = l.child_id
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s)
  AND (below.depth, below.project_id, below.workspace_id) IS DISTINCT FROM (s.depth - 1, s.project_id, s.workspace_id)
UNION ALL
SELECT s.conversation_id, s.summary_id, format('is of %%s, which has the depth %%s', s.kind, s.depth)
FROM session_summaries s
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s)
  AND (s.kind, s.depth) NOT IN (('session', 0), ('arc', 1), ('epoch', 2))

-- name: history_has_one_line
-- Summaries that supersede a missing summary, one of another conversation or project, themselves, or one that another
-- summary supersedes, too. Conversations with two current summaries. Sessions and arcs in two current summaries.
WITH RECURSIVE rows AS (
    SELECT s.*, NOT EXISTS (SELECT FROM session_summaries newer WHERE newer.supersedes_id = s.summary_id) AS is_current
    FROM session_summaries s WHERE %(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s
), line(root, summary_id) AS (
    SELECT summary_id, summary_id FROM rows
    UNION ALL
    SELECT line.root, s.supersedes_id FROM line JOIN session_summaries s USING (summary_id)
    WHERE s.supersedes_id IS NOT NULL
) CYCLE summary_id SET is_cycle USING path
SELECT s.conversation_id, s.summary_id, format('supersedes %%s, which is not of the same', s.supersedes_id)
FROM rows s LEFT JOIN session_summaries old ON old.summary_id = s.supersedes_id
WHERE s.supersedes_id IS NOT NULL
  AND (old.depth, old.conversation_id, old.workspace_id)
      IS DISTINCT FROM (s.depth, s.conversation_id, s.workspace_id)
   OR old.depth > 0 AND old.project_id IS DISTINCT FROM s.project_id
UNION ALL
SELECT NULL, supersedes_id, format('is superseded by %%s summaries', count(*))
FROM rows WHERE supersedes_id IS NOT NULL GROUP BY supersedes_id HAVING count(*) > 1
UNION ALL
SELECT s.conversation_id, s.summary_id, 'supersedes itself, directly or through others'
FROM rows s WHERE EXISTS (SELECT FROM line WHERE line.root = s.summary_id AND line.is_cycle)
UNION ALL
SELECT conversation_id, min(summary_id), format('is one of %%s current summaries of its conversation', count(*))
FROM rows WHERE depth = 0 AND is_current GROUP BY conversation_id HAVING count(*) > 1
UNION ALL
-- Compared by the first summary of each chain, so that a regenerated session counts as the same.
SELECT NULL, first.summary_id, format('is in %%s current summaries: %%s', count(*),
       string_agg(parent.summary_id, ', ' ORDER BY parent.summary_id))
FROM rows parent JOIN session_summary_children l ON l.parent_id = parent.summary_id
JOIN line ON line.root = l.child_id AND NOT line.is_cycle
JOIN session_summaries first ON first.summary_id = line.summary_id AND first.supersedes_id IS NULL
WHERE parent.is_current GROUP BY first.summary_id HAVING count(*) > 1

-- name: history_keeps_its_members
-- Arcs and epochs whose members differ from those of the summary that they supersede. A regenerated member counts as
-- the same.
WITH RECURSIVE line(root, summary_id) AS (
    SELECT summary_id, summary_id FROM session_summaries
    WHERE %(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s
    UNION ALL
    SELECT line.root, s.supersedes_id FROM line JOIN session_summaries s USING (summary_id)
    WHERE s.supersedes_id IS NOT NULL
) CYCLE summary_id SET is_cycle USING path,
members AS (
    SELECT l.parent_id, l.ordinal, min(first.summary_id) AS first_id
    FROM session_summary_children l JOIN line ON line.root = l.child_id AND NOT line.is_cycle
    JOIN session_summaries first ON first.summary_id = line.summary_id AND first.supersedes_id IS NULL
    GROUP BY l.parent_id, l.ordinal
), listed AS (
    SELECT parent_id, array_agg(first_id ORDER BY ordinal) AS ids FROM members GROUP BY parent_id
)
SELECT s.conversation_id, s.summary_id, format('has other members than %%s, which it supersedes', s.supersedes_id)
FROM session_summaries s LEFT JOIN listed own ON own.parent_id = s.summary_id
LEFT JOIN listed old ON old.parent_id = s.supersedes_id
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s)
  AND s.depth > 0 AND s.supersedes_id IS NOT NULL AND own.ids IS DISTINCT FROM old.ids

-- name: history_knows_what_it_covers
-- Summaries whose range or times differ from those of their sources.
WITH sources AS (
    SELECT l.summary_id, coalesce(m.seq, s.first_seq) AS first_seq, coalesce(m.seq, s.last_seq) AS last_seq,
           coalesce(m.created_at, s.earliest_at) AS earliest_at, coalesce(m.created_at, s.latest_at) AS latest_at
    FROM session_summary_memories l
    LEFT JOIN messages m USING (message_id) LEFT JOIN summaries s ON s.summary_id = l.memory_summary_id
    UNION ALL
    SELECT l.parent_id, NULL, NULL, child.earliest_at, child.latest_at
    FROM session_summary_children l JOIN session_summaries child ON child.summary_id = l.child_id
), covered AS (
    SELECT summary_id, min(first_seq) AS first_seq, max(last_seq) AS last_seq,
           min(earliest_at) AS earliest_at, max(latest_at) AS latest_at
    FROM sources GROUP BY summary_id
)
SELECT s.conversation_id, s.summary_id, 'its range or its times are not those of its sources'
FROM session_summaries s JOIN covered USING (summary_id)
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s)
  AND (s.first_seq, s.last_seq, s.earliest_at, s.latest_at)
      IS DISTINCT FROM (covered.first_seq, covered.last_seq, covered.earliest_at, covered.latest_at)

-- name: erased_history_holds_no_text
-- Summaries that are erased and hold text, or that hold none and are not erased.
SELECT s.conversation_id, s.summary_id,
       CASE WHEN s.erased_by_id IS NULL THEN 'holds no text and is not erased' ELSE 'is erased, but holds text' END
FROM session_summaries s
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s)
  AND (s.erased_by_id IS NULL) = (s.content = '')

-- name: history_work_comes_to_an_end
-- Jobs whose lease expired more than an hour ago.
SELECT conversation_id, 'history_job_' || job_id, format('was leased until %%s and no worker took it over', leased_until)
FROM history_jobs
WHERE (%(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s) AND state = 'leased'
  AND greatest(leased_until, run_after) < clock_timestamp() - interval '1 hour'

-- name: history_to_recount
-- Summaries with their texts, to count their tokens again.
SELECT s.conversation_id, s.summary_id, s.content, s.token_count, s.token_counter
FROM session_summaries s
WHERE (%(workspace_id)s::bigint IS NULL OR s.workspace_id = %(workspace_id)s) AND s.erased_by_id IS NULL
  -- Texts that do not match their hash are findings of another invariant.
  AND s.summary_hash = sha256(convert_to(coalesce((
      SELECT string_agg(source.hash, ',' ORDER BY source.ordinal) FROM (
          SELECT l.ordinal, encode(coalesce(m.content_hash, below.summary_hash), 'hex') AS hash
          FROM session_summary_memories l LEFT JOIN messages m USING (message_id)
          LEFT JOIN summaries below ON below.summary_id = l.memory_summary_id WHERE l.summary_id = s.summary_id
          UNION ALL
          SELECT l.ordinal, encode(child.summary_hash, 'hex')
          FROM session_summary_children l JOIN session_summaries child ON child.summary_id = l.child_id
          WHERE l.parent_id = s.summary_id
      ) AS source), '') || '|' || s.content, 'UTF8'))
ORDER BY s.summary_id
