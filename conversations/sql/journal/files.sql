-- The lines of a host's file in the journal, compared with the file by their hashes.

-- name: hashes_of_lines
-- The hashes of the entries behind a position, in order.
SELECT entry_hash FROM journal_entries
WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND position > %(after)s
ORDER BY position LIMIT %(limit)s

-- name: stored_uuids
-- Which of these uuids are taken.
SELECT uuid FROM journal_entries
WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND uuid = ANY(%(uuids)s)

-- name: copy_entries
-- Begins a file with the first lines of another version of it.
WITH copied AS (
    INSERT INTO journal_entries (conversation_id, subpath, position, uuid, entry, entry_hash, erased_by_id)
    SELECT conversation_id, %(to)s, position, uuid, entry, entry_hash, erased_by_id FROM journal_entries
    WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND position <= %(until)s
    RETURNING position
)
UPDATE conversations SET journal_size = journal_size + (SELECT count(*) FROM copied),
                         updated_at = greatest(updated_at, clock_timestamp())
WHERE conversation_id = %(id)s
RETURNING journal_size

-- name: newest_file
-- The session's own file in its newest version or, if it has none, the file that grew last.
SELECT subpath FROM journal_entries WHERE conversation_id = %(id)s
GROUP BY subpath ORDER BY subpath ~ '^(#[0-9]+)?$' DESC, max(recorded_at) DESC, subpath COLLATE "C" LIMIT 1
