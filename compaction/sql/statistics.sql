-- name: activity_totals
-- Conversations, tokens, and open and failed jobs of a workspace, or of all.
WITH totals AS (
    SELECT count(*) AS conversations, coalesce(sum(next_seq - 1), 0)::bigint AS messages,
           coalesce(sum(total_tokens), 0)::bigint AS total_tokens,
           coalesce(sum(active_tokens), 0)::bigint AS active_tokens,
           coalesce(sum(greatest(0, total_tokens - active_tokens)), 0)::bigint AS tokens_saved
    FROM conversations c WHERE (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
), open AS (
    SELECT count(*) FILTER (
               WHERE state = 'leased' AND run_after <= clock_timestamp() AND leased_until >= clock_timestamp()
           ) AS at_work,
           count(*) AS open, min(requested_at) AS oldest_at
    FROM compaction_jobs JOIN conversations c USING (conversation_id)
    WHERE state IN ('queued', 'leased') AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
), failed AS (
    SELECT count(*) AS failed FROM compaction_jobs JOIN conversations c USING (conversation_id)
    WHERE state = 'failed' AND finished_at >= %(since)s
      AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
)
SELECT conversations, messages, total_tokens, active_tokens, tokens_saved,
       open - at_work AS jobs_waiting, at_work AS jobs_at_work, failed AS jobs_failed, oldest_at AS oldest_job_at
FROM totals, open, failed

-- name: runs_by_hour
-- The runs of a workspace, or of all, by hour and outcome, with the tokens that they freed.
SELECT date_trunc('hour', started_at, 'UTC') AS hour, outcome, count(*),
       coalesce(sum(greatest(0, tokens_before - tokens_after)), 0)::bigint
FROM compaction_runs JOIN conversations c USING (conversation_id)
WHERE started_at >= %(since)s AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
GROUP BY hour, outcome ORDER BY hour, outcome
