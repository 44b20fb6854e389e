-- The progress of embedders.

-- name: queue_conversations
-- Queue the conversations that an embedder has not begun, and those with messages after the last it embedded.
WITH new AS (
    INSERT INTO embedded_conversations (embedder_id, conversation_id)
    SELECT %(embedder_id)s, c.conversation_id FROM conversations c
    WHERE c.next_seq > 1 AND NOT EXISTS (
        SELECT FROM embedded_conversations e
        WHERE e.conversation_id = c.conversation_id AND e.embedder_id = %(embedder_id)s
    )
    ON CONFLICT DO NOTHING
)
UPDATE embedded_conversations e
SET state = 'queued', run_after = statement_timestamp(), finished_at = NULL, attempts = 0
FROM conversations c
WHERE e.embedder_id = %(embedder_id)s AND e.state = 'done'
  AND c.conversation_id = e.conversation_id AND e.upto_seq < c.next_seq - 1

-- name: advance
-- Record that a range of a conversation is embedded, unless the lease is lost or a part of the range must be embedded
-- again.
UPDATE embedded_conversations
SET upto_seq = %(upto)s, passages = passages + %(passages)s, passages_refused = passages_refused + %(refused)s,
    attempts = 0, last_error = ''
WHERE job_id = %(job_id)s AND fence = %(fence)s AND state = 'leased' AND upto_seq = %(after)s

-- name: set_aside
-- Store the passages for which the embedder makes no vector, unless they are stored already.
INSERT INTO refused_passages (embedder_id, message_id, passage, reason)
SELECT %(embedder_id)s, given.message_id, given.passage, given.reason
FROM unnest(%(messages)s::bigint[], %(passages)s::integer[], %(reasons)s::text[]) AS given(message_id, passage, reason)
ON CONFLICT DO NOTHING

-- name: is_complete
-- Whether an embedder has embedded at least 99 percent of the messages: some are always new. Messages of conversations
-- whose embedding failed do not count.
SELECT coalesce(sum(coalesce(e.upto_seq, 0)) >= 0.99 * sum(c.next_seq - 1), true)
FROM conversations c
LEFT JOIN embedded_conversations e ON e.conversation_id = c.conversation_id AND e.embedder_id = %(embedder_id)s
WHERE c.next_seq > 1 AND e.state IS DISTINCT FROM 'failed'

-- name: progress
-- What an embedder has embedded and refused of all messages, and how many conversations wait or have failed.
SELECT coalesce(sum(c.next_seq - 1), 0)::bigint, coalesce(sum(e.upto_seq), 0)::bigint,
       coalesce(sum(e.passages), 0)::bigint, coalesce(sum(e.passages_refused), 0)::bigint,
       count(*) FILTER (WHERE e.state IS DISTINCT FROM 'failed' AND coalesce(e.upto_seq, 0) < c.next_seq - 1),
       count(*) FILTER (WHERE e.state = 'failed'),
       coalesce(max(e.last_error) FILTER (WHERE e.state <> 'done'), '')
FROM conversations c
LEFT JOIN embedded_conversations e ON e.conversation_id = c.conversation_id AND e.embedder_id = %(embedder_id)s
WHERE c.next_seq > 1

-- name: seconds_to_next
-- In how many seconds the next conversation is due; NULL if there is none.
SELECT extract(epoch FROM min(greatest(e.run_after, coalesce(e.leased_until, e.run_after))) - statement_timestamp())::float8
FROM embedded_conversations e WHERE e.state IN ('queued', 'leased') AND e.embedder_id = ANY(%(embedders)s::bigint[])

-- name: embedded_of_conversation
-- How many messages of a conversation are embedded by the embedder in use, or else by the one being built.
SELECT e.upto_seq FROM embedders b JOIN embedded_conversations e USING (embedder_id)
WHERE e.conversation_id = %(conversation_id)s AND b.state IN ('building', 'current')
ORDER BY b.state DESC LIMIT 1
