-- What is quarantined itself. Summaries that carry its words: `compaction/sql/quarantines.sql`.

-- name: quarantined_messages
-- The quarantined messages of some conversations; a message is withheld with any of its parts.
SELECT coalesce(p.message_id, substring(q.target FROM '^msg_([0-9]{1,18})$')::bigint)
FROM quarantines q LEFT JOIN message_parts p ON p.part_id = q.target
WHERE q.conversation_id = ANY(%s) AND q.released_at IS NULL
  AND (p.part_id IS NOT NULL OR q.target LIKE 'msg\_%%')

-- name: quarantined_files
-- Those of some files that are quarantined.
SELECT target FROM quarantines WHERE target = ANY(%s) AND released_at IS NULL
