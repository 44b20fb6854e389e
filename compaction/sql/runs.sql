-- name: record_run
-- Write the row of a run, or update it.
INSERT INTO compaction_runs (run_id, conversation_id, job_id, reason, outcome, started_at, finished_at,
                             tokens_before, tokens_after, leaf_summaries, condensed_summaries, redone_summaries,
                             details)
VALUES (%(run_id)s, %(conversation_id)s, %(job_id)s, %(reason)s, %(outcome)s, %(started_at)s, %(finished_at)s,
        %(tokens_before)s, %(tokens_after)s, %(leaf)s, %(condensed)s, %(redone)s, %(details)s)
ON CONFLICT (run_id) DO UPDATE SET
    outcome = excluded.outcome, finished_at = excluded.finished_at, tokens_after = excluded.tokens_after,
    leaf_summaries = excluded.leaf_summaries, condensed_summaries = excluded.condensed_summaries,
    redone_summaries = excluded.redone_summaries, details = excluded.details
RETURNING run_id

-- name: abandon_runs
-- Close the open runs of a conversation whose worker died.
UPDATE compaction_runs SET outcome = 'abandoned', finished_at = clock_timestamp()
WHERE conversation_id = %(conversation_id)s AND outcome = 'running'
RETURNING reason
