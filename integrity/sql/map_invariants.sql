-- name: map_events_are_chained
-- Events that do not follow from the previous event, or whose hash does not match their columns; runs without events;
-- and events of another workspace than their run.
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
-- Items whose input or output was altered, and runs whose prompt was. If a file of the run is erased, items must have
-- no text, and the prompt must be the placeholder.
WITH runs AS (
    SELECT r.run_id, r.prompt, r.prompt_hash, EXISTS (
        SELECT FROM large_files f WHERE f.erased_by_id IS NOT NULL
          AND f.file_id IN (r.input_file_id, r.output_file_id, r.failures_file_id)
    ) AS is_erased
    FROM map_runs r WHERE %(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s
)
SELECT NULL::bigint, i.run_id || ':' || i.position,
       CASE WHEN r.is_erased THEN 'is erased and has a text'
            WHEN i.input_hash <> sha256(convert_to(i.input, 'UTF8')) THEN 'the input does not match its hash'
            ELSE 'the output does not match its hash' END
FROM map_items i JOIN runs r USING (run_id)
WHERE CASE WHEN r.is_erased THEN i.input <> '' OR i.output <> ''
           ELSE i.input_hash <> sha256(convert_to(i.input, 'UTF8'))
             OR i.output_hash IS DISTINCT FROM sha256(convert_to(i.output, 'UTF8')) END
UNION ALL
SELECT NULL, run_id, 'the prompt does not match its hash'
FROM runs
WHERE CASE WHEN is_erased THEN prompt <> '{{item}}' ELSE prompt_hash <> sha256(convert_to(prompt, 'UTF8')) END

-- name: map_counts_add_up
-- Runs with missing items, and runs that ended before their items, or whose end time contradicts their state.
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
-- Completed items that do not have exactly one `completed` event with the same hashes, and such events whose item is
-- not completed.
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

-- name: map_runs_are_as_submitted
-- Runs that differ from their submission event, or from their delegation event, which every agentic run has.
SELECT NULL::bigint, r.run_id, format('does not have the %%s of the record', fact.what)
FROM map_runs r
LEFT JOIN map_events s ON s.run_id = r.run_id AND s.event = 'submitted'
LEFT JOIN map_events d ON d.run_id = r.run_id AND d.event = 'delegated',
LATERAL (VALUES
    ('kind', r.kind, s.details ->> 'kind'),
    ('model', r.model, s.details ->> 'model'),
    ('number of items', r.total::text, s.details ->> 'items'),
    ('prompt_hash', encode(r.prompt_hash, 'hex'), s.details ->> 'prompt_hash'),
    ('schema_hash', encode(r.schema_hash, 'hex'), s.details ->> 'schema_hash'),
    ('input_hash', encode(r.input_hash, 'hex'), encode(s.input_hash, 'hex')),
    ('delegation', (r.kind = 'agentic')::text, (d.event_id IS NOT NULL)::text)
) AS fact(what, of_run, of_record)
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s) AND fact.of_run IS DISTINCT FROM fact.of_record
UNION ALL
SELECT NULL, r.run_id, format('does not have the %%s of the record', fact.what)
FROM map_runs r JOIN map_events d ON d.run_id = r.run_id AND d.event = 'delegated',
LATERAL (VALUES
    ('retain', encode(sha256(convert_to(nullif(r.retain, ''), 'UTF8')), 'hex'), d.details ->> 'retain_hash'),
    ('delegated_scope', encode(sha256(convert_to(nullif(r.delegated_scope, ''), 'UTF8')), 'hex'),
     d.details ->> 'delegated_scope_hash'),
    ('kept_work', encode(sha256(convert_to(nullif(r.kept_work, ''), 'UTF8')), 'hex'), d.details ->> 'kept_work_hash'),
    ('grant_id', r.grant_id, d.details ->> 'grant_id'),
    ('read_only', r.read_only::text, d.details ->> 'read_only')
) AS fact(what, of_run, of_record)
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s) AND fact.of_run IS DISTINCT FROM fact.of_record

-- name: map_states_follow_their_record
-- Runs whose state contradicts the last event that changed it, and failed items without an event of the failure.
WITH moves AS (
    SELECT DISTINCT ON (run_id) run_id, seq, event, details
    FROM map_events WHERE event IN ('submitted', 'paused', 'resumed', 'cancelled', 'finished')
    ORDER BY run_id, seq DESC
)
SELECT NULL::bigint, r.run_id, format('is %%s, and the record says %%s', r.state, m.event)
FROM map_runs r JOIN moves m USING (run_id)
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s)
  AND CASE
      WHEN m.event = 'cancelled' THEN r.state <> 'cancelled'
      WHEN m.event = 'paused' THEN r.state <> 'paused' OR r.pause_reason NOT IN (m.details ->> 'reason', 'person')
      WHEN m.event = 'finished' AND NOT EXISTS (
          SELECT FROM map_events e WHERE e.run_id = r.run_id AND e.event = 'retried' AND e.seq > m.seq
      ) THEN (r.state, r.output_file_id, r.failures_file_id) IS DISTINCT FROM
             (m.details ->> 'state', m.details ->> 'output_file_id', m.details ->> 'failures_file_id')
      ELSE r.state NOT IN ('queued', 'running') END
UNION ALL
SELECT NULL, i.run_id || ':' || i.position, 'has failed without an event'
FROM map_items i JOIN map_runs r USING (run_id)
WHERE (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s) AND i.state = 'failed'
  AND NOT EXISTS (
      SELECT FROM map_events e WHERE e.run_id = i.run_id AND e.event = 'failed' AND e.position = i.position)

-- name: map_schemas
-- The schemas of runs, with their hashes.
SELECT run_id, output_schema, schema_hash FROM map_runs
WHERE %(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s
