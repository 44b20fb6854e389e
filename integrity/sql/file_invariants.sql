-- name: lost_files
-- Files that a message needs and that have no row in its workspace.
SELECT m.conversation_id, 'msg_' || m.message_id,
       CASE WHEN f.file_id IS NULL THEN format('needs %%s, which has no row', r.file_id)
            ELSE format('needs %%s, a file of another workspace', r.file_id) END
FROM messages m
JOIN file_references r USING (message_id)
JOIN conversations c ON c.conversation_id = m.conversation_id
LEFT JOIN large_files f USING (file_id)
LEFT JOIN conversations owner ON owner.conversation_id = f.conversation_id
WHERE m.conversation_id = ANY(%(ids)s) AND owner.workspace_id IS DISTINCT FROM c.workspace_id

-- name: messages_with_files
-- The messages of these conversations that refer to at least one file, in the order in which they were stored.
SELECT message_id, chained_parts FROM messages m
WHERE m.conversation_id = ANY(%(ids)s) AND erased_by_id IS NULL
  AND EXISTS (SELECT FROM file_references r WHERE r.message_id = m.message_id)
ORDER BY conversation_id, message_id

-- name: stored_files
-- Stored files by path, each with whether it belongs to the sample.
-- Files of a workspace with equal bytes have the same path, so their rows are adjacent and the bytes are read once.
SELECT conversation_id, file_id, storage_uri, byte_size, content_hash, abs(hashtext(file_id)) %% %(every)s = 0
FROM large_files
WHERE conversation_id = ANY(%(ids)s) AND erased_by_id IS NULL
ORDER BY storage_uri, file_id
