-- name: next_run
-- The run whose items are processed next: of the runs with a due item and fewer items in progress than their
-- concurrency, the one with the oldest last claim. An item in backoff counts as leased, with its `run_after` ahead.
SELECT r.run_id
FROM map_runs r
WHERE r.state IN ('queued', 'running') AND r.kind = 'llm' AND r.run_id <> ALL (%(passed)s::text[])
  AND EXISTS (
      SELECT FROM map_items i
      WHERE i.run_id = r.run_id AND i.run_after <= statement_timestamp()
        AND (i.state = 'queued' OR (i.state = 'leased' AND i.leased_until < statement_timestamp()))
  )
  AND r.concurrency > (
      SELECT count(*) FROM map_items i
      WHERE i.run_id = r.run_id AND i.state = 'leased'
        AND i.leased_until >= statement_timestamp() AND i.run_after <= statement_timestamp()
  )
ORDER BY r.last_claim_at NULLS FIRST, r.created_at, r.run_id
LIMIT 1

-- name: items_at_work
-- How many items of a run are in progress.
SELECT count(*) FROM map_items
WHERE run_id = %(run_id)s AND state = 'leased'
  AND leased_until >= statement_timestamp() AND run_after <= statement_timestamp()

-- name: claim_items
-- Lease due items of a run, longest waiting first, up to a number of items and of bytes (prompts included). With
-- `needs_one`, the first item is leased whatever its size. The rows of items that do not fit stay locked until the
-- transaction ends, so that no smaller item overtakes them.
WITH due AS MATERIALIZED (
    SELECT item_id, run_after, 500 + %(prompt_bytes)s + (1 + %(copies)s) * octet_length(input)::bigint
                                   + octet_length(validation_errors) AS bytes
    FROM map_items
    WHERE run_id = %(run_id)s AND run_after <= statement_timestamp()
      AND (state = 'queued' OR (state = 'leased' AND leased_until < statement_timestamp()))
    ORDER BY run_after, item_id LIMIT %(most)s FOR UPDATE SKIP LOCKED
), weighed AS (
    SELECT item_id, bytes, row_number() OVER in_order AS place, sum(bytes) OVER in_order AS total
    FROM due
    WINDOW in_order AS (ORDER BY run_after, item_id)
)
UPDATE map_items i
SET state = 'leased', fence = fence + 1, attempts = attempts + 1, worker = %(worker)s,
    leased_until = statement_timestamp() + make_interval(secs => %(seconds)s),
    started_at = coalesce(started_at, statement_timestamp())
FROM weighed
WHERE i.item_id = weighed.item_id AND (weighed.total <= %(most_bytes)s OR %(needs_one)s AND weighed.place = 1)
RETURNING i.*, weighed.bytes

-- name: seconds_to_next
-- In how many seconds the next item will be due, when its backoff or its lease ends; NULL if there is none.
SELECT extract(epoch FROM min(greatest(i.run_after, i.leased_until)) - statement_timestamp())::float AS seconds
FROM map_runs r JOIN map_items i USING (run_id)
WHERE r.state IN ('queued', 'running') AND r.kind = 'llm' AND i.state IN ('queued', 'leased')
  AND greatest(i.run_after, i.leased_until) > statement_timestamp()

-- name: counts_of_runs
-- How many items of each of these runs are done, failed and in progress; one in backoff is not in progress.
SELECT run_id, count(*) FILTER (WHERE state = 'done') AS done, count(*) FILTER (WHERE state = 'failed') AS failed,
       count(*) FILTER (WHERE state = 'leased' AND run_after <= statement_timestamp()
                          AND leased_until >= statement_timestamp()) AS leased
FROM map_items WHERE run_id = ANY (%(run_ids)s::text[]) GROUP BY run_id

-- name: count_spending
-- Add the tokens of a call to its run.
UPDATE map_runs SET spent_in = spent_in + %(tokens_in)s, spent_out = spent_out + %(tokens_out)s
WHERE run_id = %(run_id)s

-- name: end_open_items
-- Withdraw the open items of a cancelled run from their workers: no worker claims them again, and the new fence number
-- makes later writes of these workers fail.
UPDATE map_items SET state = 'queued', leased_until = NULL, fence = fence + 1
WHERE run_id = %(run_id)s AND state IN ('queued', 'leased')

-- name: requeue_failed_items
-- Queue the failed items of a run again, as if they had never been tried.
UPDATE map_items SET state = 'queued', run_after = statement_timestamp(), leased_until = NULL, finished_at = NULL,
                     attempts = 0, refused_answers = 0, faults = 0, last_error = '', error_kind = NULL,
                     validation_errors = '', fence = fence + 1
WHERE run_id = %(run_id)s AND state = 'failed'

-- name: end_backoff
-- End the backoff of a run's items, because their model answers again.
UPDATE map_items SET run_after = statement_timestamp(), leased_until = statement_timestamp()
WHERE run_id = %(run_id)s AND state = 'leased' AND run_after > statement_timestamp()

-- name: runs_to_look_at
-- Runs that only the sweep takes care of: those whose items have all ended, and those that are paused for their model.
SELECT r.run_id, r.state = 'paused' AS is_paused
FROM map_runs r
WHERE (r.state = 'paused' AND r.pause_reason IN ('breaker', 'spend'))
   OR (r.state IN ('queued', 'running')
       AND NOT EXISTS (SELECT FROM map_items i WHERE i.run_id = r.run_id AND i.state IN ('queued', 'leased')))

-- name: items_of_page
-- The items of a run after a position, in one state or in any: as many as fit into the bytes of a page, but at least
-- one. `there` is their number up to the limit. 500 bytes per item allow for names of fields, ids and numbers.
SELECT i.*, weighed.there
FROM (
    SELECT item_id, row_number() OVER in_order AS place, count(*) OVER () AS there, sum(bytes) OVER in_order AS total
    FROM (
        SELECT item_id, position, 500 + octet_length(input) + coalesce(octet_length(output), 0)
                                  + octet_length(last_error) + octet_length(validation_errors) AS bytes
        FROM map_items
        WHERE run_id = %(run_id)s AND position > %(after_position)s AND (%(state)s::text IS NULL OR state = %(state)s)
        ORDER BY position LIMIT %(limit)s
    ) AS listed
    WINDOW in_order AS (ORDER BY position)
) AS weighed JOIN map_items i USING (item_id)
WHERE weighed.place = 1 OR weighed.total <= %(most_bytes)s
ORDER BY i.position
