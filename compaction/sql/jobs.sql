-- name: request_job
-- Insert a job for a conversation, or return the queued one, whose reason may change to a more urgent one.
-- A manual request has priority over automatic ones: it runs even without pressure. `threshold` (found by an append)
-- and `maintenance` (found by the sweep) rank equally. Both have priority over a redo, which the sweep requests again,
-- and a redo of all degraded summaries, which a person requests, does not replace them. A manual request replaces a
-- queued redo of either kind: it cannot be refused, as hosts depend on it.
WITH waiting AS (
    SELECT job_id, reason FROM compaction_jobs WHERE conversation_id = %(conversation_id)s AND state = 'queued'
), written AS (
    INSERT INTO compaction_jobs (conversation_id, reason, state, fence, attempts, last_error, request_id)
    SELECT %(conversation_id)s, %(reason)s, 'queued', 0, 0, '', %(request_id)s
    WHERE NOT EXISTS (
        SELECT FROM waiting
        WHERE reason = 'manual' OR reason = %(reason)s
           OR (reason IN ('threshold', 'maintenance') AND %(reason)s IN ('threshold', 'maintenance'))
    )
    ON CONFLICT (conversation_id) WHERE state = 'queued' DO UPDATE
      SET reason = CASE WHEN excluded.reason = 'manual' OR compaction_jobs.reason = 'redo'
                        THEN excluded.reason ELSE compaction_jobs.reason END
    RETURNING job_id, xmax = 0 AS is_new
)
SELECT job_id, is_new FROM written
UNION ALL
SELECT job_id, false FROM waiting WHERE NOT EXISTS (SELECT FROM written)
