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
