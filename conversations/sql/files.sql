-- Uploads, and the files that messages need.

-- name: progress
-- For each upload: the number of chunks received, and the first numbers that are missing.
SELECT (SELECT count(*) FROM upload_chunks AS chunk WHERE chunk.upload_id = upload.upload_id),
       ARRAY(
         SELECT wanted FROM generate_series(0, upload.last) AS wanted
         WHERE NOT EXISTS (
           SELECT FROM upload_chunks AS chunk WHERE chunk.upload_id = upload.upload_id AND chunk.number = wanted
         )
         ORDER BY wanted LIMIT %(most_missing)s
       )
FROM unnest(%(ids)s::text[], %(lasts)s::int[]) WITH ORDINALITY AS upload (upload_id, last, place)
ORDER BY upload.place

-- name: files_of_messages
-- The files that messages refer to, with the positions of these references; a file whose row is missing has no hash.
-- The subquery hides the number of messages from the planner, which would otherwise make a new plan for each number.
SELECT r.message_id, r.file_id, encode(f.content_hash, 'hex'), r.part_ordinal, r.field, r.start_at, r.length
FROM file_references r LEFT JOIN large_files f USING (file_id)
WHERE r.message_id = ANY((SELECT %s)::bigint[])
