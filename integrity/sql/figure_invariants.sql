-- name: counters_are_recounts
-- Counters of a conversation that differ from a recount.
WITH counted AS (
    SELECT conversation_id, max(seq) + 1 AS next_seq, sum(token_count) AS total_tokens,
           count(cold_block_id) AS cold_messages
    FROM messages WHERE conversation_id = ANY(%(ids)s) GROUP BY conversation_id
), shown AS (
    SELECT conversation_id, count(message_id) AS active_messages, sum(token_count) AS active_tokens
    FROM context_items WHERE conversation_id = ANY(%(ids)s) GROUP BY conversation_id
), held AS (
    SELECT conversation_id, count(*) AS quarantined
    FROM quarantines WHERE conversation_id = ANY(%(ids)s) AND released_at IS NULL GROUP BY conversation_id
), compared AS (
    SELECT c.conversation_id, counter.*
    FROM conversations c
    LEFT JOIN counted USING (conversation_id)
    LEFT JOIN shown USING (conversation_id)
    LEFT JOIN held USING (conversation_id)
    CROSS JOIN LATERAL (VALUES
        ('next_seq', c.next_seq::text, coalesce(counted.next_seq, 1)::text),
        ('total_tokens', c.total_tokens::text, coalesce(counted.total_tokens, 0)::text),
        ('active_messages', c.active_messages::text, coalesce(shown.active_messages, 0)::text),
        ('active_tokens', c.active_tokens::text, coalesce(shown.active_tokens, 0)::text),
        ('cold_messages', c.cold_messages::text, coalesce(counted.cold_messages, 0)::text),
        ('quarantined', c.quarantined::text, coalesce(held.quarantined, 0)::text),
        -- A lookup, because an aggregate would hold the hashes of all messages to return the last.
        ('chain_head', encode(c.chain_head, 'hex'), encode(coalesce((
            SELECT m.chain_hash FROM messages m WHERE m.conversation_id = c.conversation_id
            ORDER BY m.seq DESC LIMIT 1), ''), 'hex'))
    ) AS counter(name, stored, recount)
    WHERE c.conversation_id = ANY(%(ids)s)
)
SELECT conversation_id, name, format('is %%s; counting gives %%s', stored, recount)
FROM compared WHERE stored <> recount

-- name: messages_to_recount
-- Messages with their token counts, and whether the content is all that was counted.
-- If not, their parts must be read, too.
SELECT m.conversation_id, m.message_id, m.content, m.token_count, m.token_counter, m.chained_parts,
       m.exact IS NULL AND NOT EXISTS (
           SELECT FROM message_parts p
           WHERE p.message_id = m.message_id AND p.part_type IN ('reasoning', 'file') AND p.ordinal < m.chained_parts),
       m.content_hash
FROM messages m
WHERE m.conversation_id = ANY(%(ids)s) AND m.message_id %% %(every)s = 0
  AND m.cold_block_id IS NULL AND m.erased_by_id IS NULL
ORDER BY m.conversation_id, m.message_id

-- name: summaries_to_recount
-- Summaries with their token counts.
SELECT conversation_id, summary_id, content, token_count, token_counter
FROM summaries
WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NULL AND abs(hashtext(summary_id)) %% %(every)s = 0
ORDER BY conversation_id, summary_id

-- name: runs_add_up
-- Runs with impossible token counts; the database accepts no new ones.
SELECT conversation_id, run_id, format('%%s tokens before, %%s after', tokens_before, tokens_after)
FROM compaction_runs
WHERE conversation_id = ANY(%(ids)s)
  AND (tokens_before < 0 OR tokens_after < 0 OR (tokens_after > tokens_before AND redone_summaries = 0))

-- name: work_comes_to_an_end
-- Jobs whose lease expired more than an hour ago, and runs that began more than a day ago and never ended.
SELECT conversation_id, 'job_' || job_id, format('was leased until %%s and no worker took it over', leased_until)
FROM compaction_jobs
WHERE conversation_id = ANY(%(ids)s) AND state = 'leased'
  AND greatest(leased_until, run_after) < clock_timestamp() - interval '1 hour'
UNION ALL
SELECT conversation_id, run_id, format('has been running since %%s', started_at)
FROM compaction_runs
WHERE conversation_id = ANY(%(ids)s) AND outcome = 'running'
  AND started_at < clock_timestamp() - interval '1 day'

-- name: grants_come_to_an_end
-- Grants that expired more than a month ago and are still open, or that last longer than a day.
SELECT NULL::bigint, grant_id, format('was granted %%s, expires %%s and is still open', created_at, expires_at)
FROM grants
WHERE (%(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s) AND revoked_at IS NULL
  AND (expires_at < clock_timestamp() - interval '31 days' OR expires_at > created_at + interval '25 hours')
