-- Which files a message needs: those that hold what was too long for it, and those that it names.

-- `start_at` and `length` are the characters (not bytes) of the named field, as it is read, that stand for the whole file; both
-- NULL where the message only names it. `part_ordinal` is NULL for the content of the message itself. The text that stands
-- there names the SHA-256 of the file, so that the chain of the conversation seals the file as well.
CREATE TABLE file_references (
  reference_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  message_id BIGINT NOT NULL REFERENCES messages(message_id) ON DELETE CASCADE,
  file_id TEXT NOT NULL REFERENCES large_files(file_id) ON DELETE RESTRICT,
  part_ordinal INTEGER,
  field TEXT NOT NULL,
  start_at INTEGER,
  length INTEGER,
  CONSTRAINT file_references_stand_somewhere CHECK (
    (start_at IS NULL AND length IS NULL) OR (start_at IS NOT NULL AND length IS NOT NULL AND start_at >= 0 AND length > 0)
  )
);
CREATE INDEX file_references_message_idx ON file_references (message_id);
CREATE INDEX file_references_file_idx ON file_references (file_id);
CREATE TRIGGER file_references_are_immutable BEFORE UPDATE OR DELETE ON file_references
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER file_references_are_kept BEFORE TRUNCATE ON file_references
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- A file that arrives in chunks. Once it is whole, `file_id` says what it became; the row goes with the sweep.
CREATE TABLE uploads (
  upload_id TEXT PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  file_name TEXT,
  mime_type TEXT,
  byte_size BIGINT NOT NULL,
  chunk_bytes INTEGER NOT NULL,
  -- What the caller says the whole file's SHA-256 is.
  content_hash BYTEA,
  file_id TEXT REFERENCES large_files(file_id) ON DELETE CASCADE,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  touched_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT uploads_have_a_size CHECK (byte_size >= 0 AND chunk_bytes > 0)
);
CREATE INDEX uploads_conversation_idx ON uploads (conversation_id);
CREATE INDEX uploads_touched_idx ON uploads (touched_at);

-- The chunks that are there: chunk 0 is the beginning. Each has `chunk_bytes` bytes, the last one what is left.
CREATE TABLE upload_chunks (
  upload_chunk_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  upload_id TEXT NOT NULL REFERENCES uploads(upload_id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  content_hash BYTEA NOT NULL,
  CONSTRAINT upload_chunks_are_kept_once UNIQUE (upload_id, number),
  CONSTRAINT upload_chunks_are_numbered_from_zero CHECK (number >= 0)
);
