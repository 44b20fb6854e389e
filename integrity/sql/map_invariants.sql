-- name: map_events_are_chained
-- Events that do not follow from the event before, or whose hash is not that of their columns.
WITH links AS (
    SELECT event_id, lag(hash, 1, ''::bytea) OVER by_seq AS before, row_number() OVER by_seq AS place,
           event = 'submitted' AS is_submission
    FROM map_events
    WHERE %(workspace_id)s::bigint IS NULL
       OR run_id IN (SELECT run_id FROM map_runs WHERE workspace_id = %(workspace_id)s)
    WINDOW by_seq AS (PARTITION BY run_id ORDER BY seq)
)
SELECT NULL::bigint, e.run_id || ':' || e.seq,
       CASE WHEN e.seq <> l.place THEN format('is event %%s of the run by its place', l.place)
            WHEN e.previous_hash <> l.before THEN 'does not follow from the event before'
            ELSE 'does not have the hash of its columns' END
FROM links l JOIN map_events e USING (event_id)
WHERE e.seq <> l.place OR e.previous_hash <> l.before
   OR e.hash <> sha256(e.previous_hash || convert_to(lcm_map_event_text(e), 'UTF8'))
   OR (l.place = 1) <> l.is_submission
UNION ALL
SELECT NULL, r.run_id, 'has no event of its submission'
FROM map_runs r
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s)
  AND NOT EXISTS (SELECT FROM map_events e WHERE e.run_id = r.run_id)
UNION ALL
SELECT NULL, e.run_id || ':' || e.seq, 'is of another workspace than its run'
FROM map_events e JOIN map_runs r USING (run_id)
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s) AND e.workspace_id <> r.workspace_id

-- name: map_items_match_their_hashes
-- Items whose input or output was altered, and runs whose prompt was. Those of an erased file have no text.
WITH runs AS (
    SELECT * FROM map_runs r
    WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s) AND NOT EXISTS (
        SELECT FROM large_files f WHERE f.erased_by_id IS NOT NULL
          AND f.file_id IN (r.input_file_id, r.output_file_id, r.failures_file_id)
    )
)
SELECT NULL::bigint, i.run_id || ':' || i.position,
       CASE WHEN i.input_hash <> sha256(convert_to(i.input, 'UTF8')) THEN 'the input does not match its hash'
            ELSE 'the output does not match its hash' END
FROM map_items i JOIN runs USING (run_id)
WHERE i.input_hash <> sha256(convert_to(i.input, 'UTF8'))
   OR i.output_hash IS DISTINCT FROM sha256(convert_to(i.output, 'UTF8'))
UNION ALL
SELECT NULL, run_id, 'the prompt does not match its hash'
FROM runs WHERE prompt_hash <> sha256(convert_to(prompt, 'UTF8'))

-- name: map_counts_add_up
-- Runs whose items are not as many as they were, or whose end came before that of their items.
SELECT NULL::bigint, r.run_id,
       CASE WHEN count(i.item_id) <> r.total OR coalesce(max(i.position), 0) <> r.total
            THEN format('has %%s items up to position %%s instead of %%s', count(i.item_id), max(i.position), r.total)
            WHEN r.state IN ('completed', 'failed')
            THEN format('is %%s with %%s open items', r.state,
                        count(*) FILTER (WHERE i.state IN ('queued', 'leased')))
            ELSE format('is %%s but has %%s a time of its end', r.state,
                        CASE WHEN r.finished_at IS NULL THEN 'not' ELSE 'already' END) END
FROM map_runs r LEFT JOIN map_items i USING (run_id)
WHERE %(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s
GROUP BY r.run_id
HAVING count(i.item_id) <> r.total OR coalesce(max(i.position), 0) <> r.total
    OR r.state IN ('completed', 'failed') AND count(*) FILTER (WHERE i.state IN ('queued', 'leased')) > 0
    OR (r.state IN ('completed', 'failed', 'cancelled')) <> (r.finished_at IS NOT NULL)

-- name: map_completions_are_recorded_once
-- Completed items without exactly one event of the same hashes, and events whose item is not completed.
WITH completions AS (
    SELECT run_id, position, count(*) AS times, (array_agg(input_hash))[1] AS input_hash,
           (array_agg(output_hash))[1] AS output_hash
    FROM map_events WHERE event = 'completed' GROUP BY run_id, position
)
SELECT NULL::bigint, run_id || ':' || coalesce(position::text, '?'),
       CASE WHEN i.state IS DISTINCT FROM 'done'
            THEN format('was completed by the record and is %%s', coalesce(i.state, 'missing'))
            WHEN c.times IS NULL THEN 'is completed without an event'
            WHEN c.times > 1 THEN format('was completed %%s times by the record', c.times)
            ELSE 'has other hashes in the record' END
FROM map_items i FULL JOIN completions c USING (run_id, position) JOIN map_runs r USING (run_id)
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s)
  AND (i.state = 'done' OR c.times IS NOT NULL)
  AND (i.state IS DISTINCT FROM 'done' OR c.times IS DISTINCT FROM 1
       OR (i.input_hash, i.output_hash) IS DISTINCT FROM (c.input_hash, c.output_hash))
