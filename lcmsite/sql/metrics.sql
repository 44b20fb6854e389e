-- name: waiting_jobs
-- For each queue, how long its oldest job has been due without a worker. A pause before a retry does not count.
SELECT queue, extract(epoch FROM max(clock_timestamp() - greatest(requested_at, run_after)))::float8 AS seconds
FROM (
    SELECT 'compaction' AS queue, state, requested_at, run_after, leased_until FROM compaction_jobs
    WHERE state IN ('queued', 'leased')
    UNION ALL
    SELECT 'history', state, requested_at, run_after, leased_until FROM history_jobs
    WHERE state IN ('queued', 'leased')
    UNION ALL
    SELECT 'integrity', state, requested_at, run_after, leased_until FROM integrity_scans
    WHERE state IN ('queued', 'leased')
) AS open
WHERE run_after <= clock_timestamp() AND (state = 'queued' OR leased_until < clock_timestamp())
GROUP BY queue

-- name: begin
-- Set a statement timeout for the transaction, and return whether it may write.
SELECT set_config('statement_timeout', %(timeout)s, true),
       NOT current_setting('transaction_read_only')::boolean AS is_writable

-- name: memory
-- All conversations together: their messages, and what their active contexts hold.
SELECT count(*) AS conversations,
       count(*) FILTER (WHERE quarantined > 0) AS with_quarantines,
       coalesce(sum(active_tokens), 0)::bigint AS context_tokens,
       coalesce(sum(active_messages), 0)::bigint AS context_messages,
       coalesce(sum(total_tokens), 0)::bigint AS tokens,
       coalesce(sum(next_seq - 1), 0)::bigint AS messages,
       coalesce(sum(cold_messages), 0)::bigint AS cold_messages
FROM conversations

-- name: jobs
-- The jobs of each queue, by state.
WITH open AS (
    SELECT 'compaction' AS queue, state FROM compaction_jobs WHERE state IN ('queued', 'leased')
    UNION ALL
    SELECT 'history', state FROM history_jobs WHERE state IN ('queued', 'leased')
    UNION ALL
    SELECT 'integrity', state FROM integrity_scans WHERE state IN ('queued', 'leased')
), failed AS (
    SELECT 'compaction' AS queue, count(*) AS jobs FROM compaction_jobs WHERE state = 'failed'
    UNION ALL
    SELECT 'history', count(*) FROM history_jobs WHERE state = 'failed'
    UNION ALL
    SELECT 'integrity', count(*) FROM integrity_scans WHERE state = 'failed'
)
SELECT queue, jobs AS failed,
       count(*) FILTER (WHERE state = 'queued') AS queued,
       count(*) FILTER (WHERE state = 'leased') AS leased
FROM failed LEFT JOIN open USING (queue) GROUP BY queue, jobs

-- name: storage
-- Bytes on disk with indexes, read from the catalog and not from rows. The bytes of files are stored elsewhere, so
-- their sizes are added up.
SELECT (pg_total_relation_size('messages') + pg_total_relation_size('message_parts'))::bigint AS hot,
       pg_total_relation_size('cold_blocks')::bigint AS cold,
       pg_total_relation_size('summaries')::bigint AS summaries,
       (SELECT coalesce(sum(byte_size), 0)::bigint FROM large_files WHERE erased_by_id IS NULL) AS files,
       pg_database_size(current_database())::bigint AS database

-- name: open_findings
-- For each invariant, the findings in the newest reports of each workspace and of the whole site, without those in
-- conversations that a later check found clean. `site_codes` are the invariants of rows outside conversations.
WITH newest AS (
    SELECT report.report_id FROM workspaces CROSS JOIN LATERAL (
        SELECT report_id FROM integrity_reports AS r
        WHERE r.workspace_id = workspaces.workspace_id AND conversation_id IS NULL AND finished_at IS NOT NULL
        ORDER BY started_at DESC LIMIT 1
    ) AS report
    UNION ALL
    (SELECT report_id FROM integrity_reports
     WHERE workspace_id IS NULL AND conversation_id IS NULL AND finished_at IS NOT NULL
     ORDER BY started_at DESC LIMIT 1)
)
SELECT code, count(DISTINCT (found.conversation_id, target, detail)) AS findings
FROM newest JOIN integrity_findings AS found USING (report_id)
LEFT JOIN conversation_checks AS checked ON checked.conversation_id = found.conversation_id
WHERE checked.is_clean IS NOT TRUE OR code = ANY(%(site_codes)s)
GROUP BY code

-- name: checks
-- The conversations that their last check did not find clean, and the age of the newest report on the whole site. A
-- site without such a report is as old as its tables.
SELECT (SELECT count(*) FROM conversation_checks WHERE NOT is_clean) AS conversations_with_findings,
       extract(epoch FROM clock_timestamp() - coalesce(
           (SELECT finished_at FROM integrity_reports
            WHERE workspace_id IS NULL AND conversation_id IS NULL AND finished_at IS NOT NULL
            ORDER BY started_at DESC LIMIT 1),
           (SELECT min(applied) FROM django_migrations)
       ))::float8 AS report_age_seconds

-- name: recent_runs
-- The newest 1,000 compaction runs of the last hour by outcome, and their summaries by level.
WITH runs AS (
    SELECT run_id, conversation_id, started_at, outcome FROM compaction_runs
    WHERE started_at > clock_timestamp() - interval '1 hour' ORDER BY started_at DESC, run_id DESC LIMIT 1000
)
SELECT 'outcome' AS label, outcome AS value, count(*) FROM runs GROUP BY outcome
UNION ALL
SELECT 'level', level, count(*) FROM runs JOIN summaries USING (conversation_id, run_id)
WHERE created_at >= started_at GROUP BY level

-- name: connections
-- LCM's connections to the database, by state.
SELECT CASE WHEN state LIKE 'idle in transaction%' THEN 'idle in transaction' ELSE state END AS state, count(*)
FROM pg_stat_activity WHERE application_name = 'lcm' AND datname = current_database() AND state IS NOT NULL
GROUP BY 1
