-- Reading and writing the journal.

-- name: stored_entries
-- The stored entries with these uuids, as text.
SELECT uuid, entry FROM journal_entries
WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND uuid = ANY(%(uuids)s)

-- name: insert_entries
-- Appends entries to a file of the journal and updates journal_size; returns the file's last position.
WITH last AS (
    SELECT coalesce(max(position), 0) AS position FROM journal_entries
    WHERE conversation_id = %(id)s AND subpath = %(subpath)s
), kept AS (
    INSERT INTO journal_entries (conversation_id, subpath, position, uuid, entry, entry_hash)
    SELECT %(id)s, %(subpath)s, last.position + given.place, given.uuid, given.entry,
           sha256(convert_to(given.entry, 'UTF8'))
    FROM last, unnest(%(uuids)s::text[], %(entries)s::text[]) WITH ORDINALITY AS given(uuid, entry, place)
    RETURNING position
), counted AS (
    UPDATE conversations SET journal_size = journal_size + (SELECT count(*) FROM kept),
                             updated_at = greatest(updated_at, clock_timestamp())
    WHERE conversation_id = %(id)s
)
SELECT greatest((SELECT position FROM last), (SELECT max(position) FROM kept))

-- name: page_of_entries
-- A page of entries: as many as fit into `most_bytes`, but at least one; and the number of entries up to `limit`.
SELECT position, uuid, entry, recorded_at, erased_by_id, there
FROM (
    SELECT *, sum(octet_length(entry) + 200) OVER in_order AS total, row_number() OVER in_order AS place,
           count(*) OVER () AS there
    FROM (
        SELECT position, uuid, entry, recorded_at, erased_by_id FROM journal_entries
        WHERE conversation_id = %(id)s AND subpath = %(subpath)s AND position > %(after)s
        ORDER BY position LIMIT %(limit)s
    ) AS listed
    WINDOW in_order AS (ORDER BY position)
) AS added
WHERE coalesce(total, 0) <= %(most_bytes)s OR place = 1
ORDER BY position

-- name: subpaths
-- The files of a journal by name: number of entries, time of the last one, and bytes.
SELECT subpath, count(*), max(recorded_at), coalesce(sum(octet_length(entry)), 0)::bigint FROM journal_entries
WHERE conversation_id = %(id)s AND (%(after)s::text IS NULL OR subpath COLLATE "C" > %(after)s)
GROUP BY subpath ORDER BY subpath COLLATE "C" LIMIT %(limit)s
