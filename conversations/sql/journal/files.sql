-- Statements that compare the lines of a host's file with those stored in the journal, by their hashes.

-- name: hashes_of_lines
-- The hashes of the entries after a position, in order.
SELECT entry_hash FROM journal_entries
WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND position > %(after)s
ORDER BY position LIMIT %(limit)s

-- name: stored_uuids
-- The given uuids that are already stored.
SELECT uuid FROM journal_entries
WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND uuid = ANY(%(uuids)s)

-- name: copy_entries
-- Copies the first lines of one version of a file to a new version.
WITH copied AS (
    INSERT INTO journal_entries (conversation_id, subpath, position, uuid, entry, entry_hash, erased_by_id)
    SELECT conversation_id, %(to)s, position, uuid, entry, entry_hash, erased_by_id FROM journal_entries
    WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND position <= %(until)s
    RETURNING position
)
UPDATE conversations SET journal_size = journal_size + (SELECT count(*) FROM copied),
                         updated_at = greatest(updated_at, clock_timestamp())
WHERE conversation_id = %(id)s

-- name: newest_file
-- The newest version of the session's own file or, if there is none, the file appended to last.
SELECT subpath FROM journal_entries WHERE conversation_id = %(id)s
GROUP BY subpath ORDER BY subpath ~ '^(#[0-9]+)?$' DESC, max(recorded_at) DESC, subpath COLLATE "C" LIMIT 1
