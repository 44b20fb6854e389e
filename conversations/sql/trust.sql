-- What the store keeps so that it can be trusted: who did what, where texts went, and what is not to be shown.

-- Every administrative act. `transaction_id` ties an act to what it did: see lcm_is_announced.
CREATE TABLE audit_log (
  audit_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  recorded_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  workspace_id BIGINT REFERENCES workspaces(workspace_id) ON DELETE RESTRICT,
  conversation_id BIGINT REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
  actor TEXT NOT NULL,
  act TEXT NOT NULL,
  target TEXT NOT NULL DEFAULT '',
  detail JSONB NOT NULL DEFAULT '{}'::jsonb,
  transaction_id XID8 NOT NULL DEFAULT pg_current_xact_id(),
  CONSTRAINT audit_log_names_who_and_what CHECK (actor <> '' AND act <> '')
);
CREATE INDEX audit_log_transaction_idx ON audit_log (transaction_id);
CREATE INDEX audit_log_workspace_idx ON audit_log (workspace_id, audit_id);
CREATE INDEX audit_log_conversation_idx ON audit_log (conversation_id, audit_id);
CREATE TRIGGER audit_log_is_immutable BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER audit_log_is_kept BEFORE TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- The cold tier: the texts of a stretch of messages with their parts, compressed together. A block that messages point at
-- cannot be removed (RESTRICT), and none can be changed.
CREATE TABLE cold_blocks (
  cold_block_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  message_count INTEGER NOT NULL,
  packed BYTEA NOT NULL,
  packed_hash BYTEA NOT NULL,
  -- What the texts and their search terms took up before.
  bytes_before BIGINT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT cold_blocks_cover_a_range CHECK (1 <= first_seq AND first_seq <= last_seq AND message_count >= 1)
);
-- Compressed already: to try again would only cost time.
ALTER TABLE cold_blocks ALTER COLUMN packed SET STORAGE EXTERNAL;
CREATE INDEX cold_blocks_conv_idx ON cold_blocks (conversation_id, first_seq);
CREATE TRIGGER cold_blocks_are_immutable BEFORE UPDATE ON cold_blocks
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER cold_blocks_are_kept BEFORE TRUNCATE ON cold_blocks
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- Damaged rows that are not shown to a model until they are put right. One that is released stays on record.
CREATE TABLE quarantines (
  quarantine_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
  -- msg_..., sum_..., part_... or file_...
  target TEXT NOT NULL,
  reason TEXT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  released_at TIMESTAMPTZ
);
CREATE INDEX quarantines_conv_idx ON quarantines (conversation_id);
CREATE UNIQUE INDEX quarantines_hold_a_thing_once ON quarantines (target) WHERE released_at IS NULL;

ALTER TABLE workspaces
  -- Whole days without use after which a conversation's texts go to the cold tier; NULL: never.
  ADD COLUMN cold_after_days INTEGER,
  ADD CONSTRAINT workspaces_wait_at_least_a_day CHECK (cold_after_days >= 1);

ALTER TABLE conversations
  -- The last day on which it was appended to, assembled or expanded.
  ADD COLUMN last_used_on DATE NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  -- How many of its rows are quarantined and how many of its messages are cold: to know that there are none costs nothing.
  ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0,
  ADD COLUMN cold_messages BIGINT NOT NULL DEFAULT 0;

ALTER TABLE messages
  ADD COLUMN metadata_hash BYTEA,
  -- Where its text is, if not here; and the act by which it was erased for good.
  ADD COLUMN cold_block_id BIGINT REFERENCES cold_blocks(cold_block_id) ON DELETE RESTRICT,
  ADD COLUMN erased_by_id BIGINT REFERENCES audit_log(audit_id) ON DELETE RESTRICT;
CREATE INDEX messages_cold_idx ON messages (cold_block_id) WHERE cold_block_id IS NOT NULL;

ALTER TABLE summaries
  ADD COLUMN erased_by_id BIGINT REFERENCES audit_log(audit_id) ON DELETE RESTRICT;

ALTER TABLE large_files
  ADD COLUMN erased_by_id BIGINT REFERENCES audit_log(audit_id) ON DELETE RESTRICT;
