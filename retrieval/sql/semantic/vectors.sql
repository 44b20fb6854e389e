-- The statements on the table of one embedder's vectors. They need pgvector, except the first and those that drop.

-- name: pgvector
-- The version of pgvector in this database, or that could be created in it.
SELECT coalesce(installed_version, default_version) FROM pg_available_extensions WHERE name = 'vector'

-- name: create_table
-- The table of vectors. Half precision needs less space, and lets an index have twice as many dimensions.
CREATE TABLE IF NOT EXISTS {table} (
    message_id bigint NOT NULL,
    passage integer NOT NULL,
    starts_at integer NOT NULL,
    ends_at integer NOT NULL,
    conversation_id bigint NOT NULL,
    workspace_id bigint NOT NULL,
    embedding halfvec({dimension}) NOT NULL,
    PRIMARY KEY (message_id, passage)
)

-- name: create_conversation_index
-- An index for searches of one conversation, which compare all of its vectors.
CREATE INDEX IF NOT EXISTS {table}_conv_idx ON {table} (conversation_id)

-- name: create_workspace_index
-- An index for searches of a workspace that has few vectors, when other workspaces have many.
CREATE INDEX IF NOT EXISTS {table}_workspace_idx ON {table} (workspace_id)

-- name: create_extension
-- Install pgvector in LCM's database.
CREATE EXTENSION IF NOT EXISTS vector

-- name: drop_table
-- Drop the table with its indexes.
DROP TABLE IF EXISTS {table}

-- name: drop_index
-- Drop an index whose build was interrupted.
DROP INDEX CONCURRENTLY IF EXISTS {table}_hnsw_idx

-- name: create_index
-- The index for all other searches; built concurrently, so that nothing waits for it.
CREATE INDEX CONCURRENTLY IF NOT EXISTS {table}_hnsw_idx ON {table} USING hnsw (embedding halfvec_cosine_ops)

-- name: table_state
-- Whether the table has its vector column, whether its index is valid (NULL if there is none), and the total size.
SELECT EXISTS (
           SELECT FROM pg_attribute WHERE attrelid = t.oid AND attname = 'embedding' AND NOT attisdropped
       ), i.indisvalid, pg_total_relation_size(t.oid)
FROM pg_class t LEFT JOIN pg_index i ON i.indexrelid = to_regclass('{table}_hnsw_idx')
WHERE t.oid = to_regclass('{table}')

-- name: next_texts
-- The messages of a conversation after a seq, each with its text if it may be embedded and has no vectors yet.
SELECT m.seq, m.message_id, CASE WHEN {is_open} AND NOT EXISTS (
           SELECT FROM {table} v WHERE v.message_id = m.message_id
       ) THEN left(m.content, %(most_characters)s) END
FROM messages m
WHERE m.conversation_id = %(conversation_id)s AND m.seq > %(after)s
ORDER BY m.seq LIMIT %(most)s

-- name: try_again
-- Queue the messages with refused passages to be embedded again, in each conversation from the first of them on. A
-- worker that is processing such a conversation loses its lease.
WITH refused AS (
    DELETE FROM refused_passages WHERE embedder_id = %(embedder_id)s RETURNING message_id
), gone AS (
    DELETE FROM {table} WHERE message_id IN (SELECT message_id FROM refused) RETURNING message_id
), again AS (
    SELECT m.conversation_id, min(m.seq) AS seq,
           sum((SELECT count(*) FROM refused r WHERE r.message_id = m.message_id)) AS refused,
           sum((SELECT count(*) FROM gone g WHERE g.message_id = m.message_id)) AS gone
    FROM messages m WHERE m.message_id IN (SELECT message_id FROM refused) GROUP BY m.conversation_id
)
UPDATE embedded_conversations e
SET upto_seq = least(e.upto_seq, again.seq - 1), passages = greatest(0, e.passages - again.gone),
    passages_refused = greatest(0, e.passages_refused - again.refused),
    fence = CASE WHEN e.state = 'leased' THEN e.fence + 1 ELSE e.fence END,
    leased_until = CASE WHEN e.state = 'leased' THEN statement_timestamp() ELSE e.leased_until END
FROM again WHERE e.conversation_id = again.conversation_id AND e.embedder_id = %(embedder_id)s

-- name: is_open
-- A condition: a message may be embedded. Calls of LCM's own tools, and their results, are found by words alone.
NOT {of_lcm} AND m.erased_by_id IS NULL AND m.cold_block_id IS NULL AND NOT EXISTS (
    SELECT FROM quarantines q
    WHERE q.conversation_id = m.conversation_id AND q.released_at IS NULL AND (
        q.target = 'msg_' || m.message_id
        OR q.target IN (SELECT part_id FROM message_parts p WHERE p.message_id = m.message_id)
    )
)

-- name: hold_messages
-- Lock messages, so that erasing, archiving or quarantining their texts waits until the vectors are stored.
SELECT message_id FROM messages WHERE message_id = ANY(%(messages)s::bigint[]) ORDER BY message_id FOR SHARE

-- name: open_messages
-- Those of the messages that may be embedded. A separate statement, to see what was committed during the wait for
-- locks.
SELECT message_id FROM messages m WHERE message_id = ANY(%(messages)s::bigint[]) AND {is_open}

-- name: store_vectors
-- Insert the vectors of passages.
INSERT INTO {table} (message_id, passage, starts_at, ends_at, conversation_id, workspace_id, embedding)
SELECT given.message_id, given.passage, given.starts_at, given.ends_at, c.conversation_id, c.workspace_id,
       given.embedding::halfvec({dimension})
FROM unnest(%(messages)s::bigint[], %(passages)s::integer[], %(starts)s::integer[], %(ends)s::integer[],
            %(embeddings)s::text[]) AS given(message_id, passage, starts_at, ends_at, embedding),
     conversations c
WHERE c.conversation_id = %(conversation_id)s
ON CONFLICT DO NOTHING
