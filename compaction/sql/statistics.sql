-- name: activity_totals
-- Conversations, tokens, open and failed jobs, and new summaries by level, of one workspace or of all.
-- Summaries are read only for conversations with a run since `since`, through the index by conversation.
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
), history AS (
    SELECT count(*) FILTER (WHERE state <> 'failed') AS open,
           count(*) FILTER (WHERE state = 'failed' AND finished_at >= %(since)s) AS failed
    FROM history_jobs
    WHERE state IN ('queued', 'leased', 'failed') AND (%(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s)
), compacted AS (
    SELECT DISTINCT conversation_id FROM compaction_runs JOIN conversations c USING (conversation_id)
    WHERE started_at >= %(since)s AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
), made AS (
    SELECT count(*) FILTER (WHERE level = 'normal') AS normal,
           count(*) FILTER (WHERE level = 'aggressive') AS aggressive,
           count(*) FILTER (WHERE level = 'deterministic') AS deterministic,
           count(*) FILTER (WHERE is_degraded) AS degraded_summaries
    FROM compacted, LATERAL (
        SELECT s.level, s.is_degraded FROM summaries s
        WHERE s.conversation_id = compacted.conversation_id AND s.created_at >= %(since)s OFFSET 0
    ) AS made
)
SELECT conversations, messages, total_tokens, active_tokens, tokens_saved,
       open.open - at_work AS jobs_waiting, at_work AS jobs_at_work, failed.failed AS jobs_failed,
       oldest_at AS oldest_job_at, history.open AS history_jobs_open, history.failed AS history_jobs_failed,
       normal, aggressive, deterministic, degraded_summaries
FROM totals, open, failed, history, made

-- name: runs_by_hour
-- The runs of one workspace, or of all, by hour and outcome, with the tokens that they freed.
SELECT date_trunc('hour', started_at, 'UTC') AS hour, outcome, count(*),
       coalesce(sum(greatest(0, tokens_before - tokens_after)), 0)::bigint
FROM compaction_runs JOIN conversations c USING (conversation_id)
WHERE started_at >= %(since)s AND (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
GROUP BY hour, outcome ORDER BY hour, outcome
