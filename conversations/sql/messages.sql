-- Messages with the columns that `store/read.py` makes records of. Times and JSON come as text, which it parses itself.

-- name: messages_by_id
-- The messages with these ids, in any order. The subquery hides their number from the planner, which would otherwise
-- plan again for each number.
SELECT message_id, conversation_id, seq, role::text, content, token_count, token_counter, created_at::text,
       encode(content_hash, 'hex'), encode(chain_hash, 'hex'), author, idempotency_key, metadata::text, erased_by_id,
       exact, cold_block_id
FROM messages WHERE message_id = ANY((SELECT %(message_ids)s)::bigint[])

-- name: messages_after
-- The messages of a conversation behind a seq, oldest first; none if the conversation is not in the workspace.
SELECT message_id, conversation_id, seq, role::text, content, token_count, token_counter, created_at::text,
       encode(content_hash, 'hex'), encode(chain_hash, 'hex'), author, idempotency_key, metadata::text, erased_by_id,
       exact, cold_block_id
FROM messages
WHERE conversation_id = %(conversation_id)s AND seq > %(after_seq)s
  AND (%(workspace_id)s::bigint IS NULL OR EXISTS (
    SELECT FROM conversations c
    WHERE c.conversation_id = %(conversation_id)s AND c.workspace_id = %(workspace_id)s::bigint
  ))
ORDER BY seq LIMIT %(limit)s
