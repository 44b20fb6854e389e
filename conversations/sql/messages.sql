-- Stored messages, and which of them are withheld. `store/read.py` has the columns from which it builds records.

-- name: messages_by_id
-- The messages with these ids, in any order. The subquery hides the number of ids from the planner, which would
-- otherwise make a new plan for each number.
SELECT {columns}
FROM messages WHERE message_id = ANY((SELECT %(message_ids)s)::bigint[])

-- name: messages_after
-- The messages of a conversation after a seq, oldest first; none if the conversation is not in the workspace.
SELECT {columns}
FROM messages
WHERE conversation_id = %(conversation_id)s AND seq > %(after_seq)s
  AND (%(workspace_id)s::bigint IS NULL OR EXISTS (
    SELECT FROM conversations c
    WHERE c.conversation_id = %(conversation_id)s AND c.workspace_id = %(workspace_id)s::bigint
  ))
ORDER BY seq LIMIT %(limit)s

-- name: quarantined_messages
-- The ids of the withheld messages of some conversations. A message is withheld if it is quarantined, if one of its
-- parts is, or if a file is that one of its texts was moved to (the message contains the file's name and description).
-- For summaries made from withheld messages see `compaction/sql/quarantines.sql`.
SELECT coalesce(p.message_id, r.message_id, substring(q.target FROM '^msg_([0-9]{1,18})$')::bigint)
FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
LEFT JOIN file_references r ON r.file_id = q.target AND r.start_at IS NOT NULL
WHERE q.conversation_id = ANY(%s) AND q.released_at IS NULL
  AND (p.part_id IS NOT NULL OR r.file_id IS NOT NULL OR q.target LIKE 'msg\_%%')

-- name: quarantined_files
-- Those of the given files that are quarantined, or hold a text that was moved out of a quarantined message.
SELECT given.file_id FROM unnest(%s::text[]) AS given(file_id)
WHERE EXISTS (SELECT FROM quarantines q WHERE q.target = given.file_id AND q.released_at IS NULL)
   OR EXISTS (
    SELECT FROM file_references r JOIN messages m USING (message_id)
    JOIN quarantines q ON q.conversation_id = m.conversation_id AND q.released_at IS NULL
    WHERE r.file_id = given.file_id AND r.start_at IS NOT NULL AND (
        q.target = 'msg_' || m.message_id
        OR q.target IN (SELECT part_id FROM message_parts p WHERE p.message_id = m.message_id)
    )
)
