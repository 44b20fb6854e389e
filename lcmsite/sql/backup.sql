-- name: conversation_digests
-- Each conversation with its number of messages and last hash, its number of summaries, and a hash of their hashes.
SELECT w.name, c.session_id, c.next_seq - 1, encode(c.chain_head, 'hex'), count(s.summary_id),
       encode(sha256(coalesce(string_agg(s.summary_hash, ''::bytea ORDER BY s.summary_id), '')), 'hex')
FROM conversations c JOIN workspaces w USING (workspace_id) LEFT JOIN summaries s USING (conversation_id)
GROUP BY c.conversation_id, w.workspace_id
ORDER BY w.name COLLATE "C", c.session_id COLLATE "C"

-- name: stored_files
-- The storage URI of the bytes of each file, with the SHA-256 that they must have.
SELECT storage_uri, encode(min(content_hash), 'hex') FROM large_files WHERE erased_by_id IS NULL
GROUP BY storage_uri ORDER BY storage_uri COLLATE "C"
