-- Full text over session, arc and epoch summaries.

-- name: best
-- The current summaries that hold any of the terms, best first. The score sums, over the terms, the rarity of each
-- times its rank in the text. Summaries that hold every term come before all others.
WITH superseded AS MATERIALIZED (
    SELECT supersedes_id AS id FROM session_summaries WHERE supersedes_id IS NOT NULL
), terms AS MATERIALIZED (
    SELECT n, term::tsquery AS term FROM unnest(%(terms)s::text[]) WITH ORDINALITY AS given(term, n)
), searched AS MATERIALIZED (
    SELECT s.summary_id, s.depth, p.name AS project, s.conversation_id, c.session_id, s.earliest_at, s.latest_at,
           s.token_count, s.content_tsv
    FROM session_summaries s
    LEFT JOIN conversations c ON c.conversation_id = s.conversation_id
    LEFT JOIN projects p ON p.project_id = coalesce(c.project_id, s.project_id)
    WHERE s.erased_by_id IS NULL AND s.summary_id NOT IN (SELECT id FROM superseded)
      AND s.summary_id <> ALL((SELECT %(hidden)s)::text[]) AND {conditions}
), held AS MATERIALIZED (
    SELECT searched.summary_id, terms.n, ts_rank('{{1,1,1,1}}', searched.content_tsv, terms.term) AS share
    FROM searched JOIN terms ON searched.content_tsv @@ terms.term
), rarities AS MATERIALIZED (
    SELECT n, ln(1 + (SELECT count(*) FROM searched)::float8 / count(*)) AS rarity FROM held GROUP BY n
), worths AS (
    SELECT held.summary_id, sum(held.share * rarities.rarity) AS worth,
           count(*) = (SELECT count(*) FROM terms) AS is_complete
    FROM held JOIN rarities ON rarities.n = held.n GROUP BY held.summary_id
)
SELECT searched.summary_id, depth, project, conversation_id, session_id, earliest_at, latest_at, token_count, worth,
       is_complete, count(*) FILTER (WHERE is_complete) OVER ()
FROM worths JOIN searched ON searched.summary_id = worths.summary_id
WHERE {excluding}
ORDER BY is_complete DESC, worth DESC, latest_at DESC, searched.summary_id COLLATE "C"
OFFSET %(offset)s LIMIT %(limit)s
