-- The tables of the store. Above the first blank line inside a table are the columns of the specification, under their
-- own names; below it, what the store needs beyond them.

CREATE TYPE message_role AS ENUM ('system', 'user', 'assistant', 'tool');
CREATE TYPE summary_kind AS ENUM ('leaf', 'condensed');
CREATE TYPE context_item_type AS ENUM ('message', 'summary');
CREATE TYPE message_part_type AS ENUM (
  'text', 'reasoning', 'tool', 'patch', 'file',
  'subtask', 'compaction', 'step_start', 'step_finish',
  'snapshot', 'agent', 'retry'
);

CREATE TABLE workspaces (
  workspace_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  -- Whole days without use after which a conversation's texts go to the cold tier; NULL: the default of the site.
  cold_after_days INTEGER,
  CONSTRAINT workspaces_wait_at_least_a_day CHECK (cold_after_days >= 1)
);

CREATE TABLE conversations (
  conversation_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id TEXT NOT NULL,
  title TEXT,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),

  workspace_id BIGINT NOT NULL REFERENCES workspaces(workspace_id) ON DELETE RESTRICT,
  metadata JSONB NOT NULL DEFAULT '{}'::jsonb,
  overrides JSONB NOT NULL DEFAULT '{}'::jsonb,
  -- Counters, updated by the same statements that change what they count.
  next_seq BIGINT NOT NULL DEFAULT 1,
  total_tokens BIGINT NOT NULL DEFAULT 0,
  active_messages BIGINT NOT NULL DEFAULT 0,
  active_tokens BIGINT NOT NULL DEFAULT 0,
  -- Automatic compaction skips the conversation until it has this many messages, because it found nothing to do.
  rest_until_seq BIGINT NOT NULL DEFAULT 0,
  -- The last link of the hash chain of its messages.
  chain_head BYTEA NOT NULL DEFAULT '\x',
  -- The last day on which it was appended to, assembled or expanded.
  last_used_on DATE NOT NULL DEFAULT (now() AT TIME ZONE 'UTC')::date,
  -- How many of its rows are quarantined and how many of its messages are cold; usually zero. To check this needs no
  -- query.
  quarantined INTEGER NOT NULL DEFAULT 0,
  cold_messages BIGINT NOT NULL DEFAULT 0,
  CONSTRAINT conversations_have_one_session_per_workspace UNIQUE (workspace_id, session_id)
) WITH (fillfactor = 70);  -- room for the next version of the counters on the same page

-- Every administrative operation. `transaction_id` links an entry to the changes that it allows: see lcm_is_announced.
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
CREATE INDEX audit_log_target_idx ON audit_log (target, audit_id);

-- The cold tier: the texts of a range of messages with their parts, compressed together.
CREATE TABLE cold_blocks (
  cold_block_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE RESTRICT,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  message_count INTEGER NOT NULL,
  -- The bytes are compressed already: EXTERNAL keeps PostgreSQL from compressing them again.
  packed BYTEA STORAGE EXTERNAL NOT NULL,
  packed_hash BYTEA NOT NULL,
  -- The size of the texts and their lexemes before they were moved.
  bytes_before BIGINT NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT cold_blocks_cover_a_range CHECK (1 <= first_seq AND first_seq <= last_seq AND message_count >= 1)
);
CREATE INDEX cold_blocks_conv_idx ON cold_blocks (conversation_id, first_seq);

CREATE TABLE messages (
  message_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  role message_role NOT NULL,
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv_at(content, conversation_id, seq)) STORED,

  recorded_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  author TEXT,
  idempotency_key TEXT,
  metadata JSONB NOT NULL DEFAULT '{}'::jsonb,
  -- Values that the typed columns cannot hold exactly: see content/lossless_values.
  exact JSON,
  token_counter TEXT NOT NULL,
  -- The number of its parts that the hash chain covers; parts that are added later are not covered.
  chained_parts INTEGER NOT NULL DEFAULT 0,
  -- The hashes of the chain: see content/hashing.py and lcm_next_link.
  content_hash BYTEA NOT NULL,
  entry_hash BYTEA NOT NULL,
  chain_hash BYTEA NOT NULL,
  metadata_hash BYTEA,
  record_hash BYTEA,
  -- The block that contains the texts of a cold message; the audit entry of the erasure of an erased one.
  cold_block_id BIGINT REFERENCES cold_blocks(cold_block_id) ON DELETE RESTRICT,
  erased_by_id BIGINT REFERENCES audit_log(audit_id) ON DELETE RESTRICT,
  UNIQUE (conversation_id, seq),
  CONSTRAINT messages_are_numbered_from_one CHECK (seq >= 1),
  CONSTRAINT messages_cost_no_less_than_nothing CHECK (token_count >= 0)
-- Texts of up to some kilobytes stay in their row, beside their lexemes, so that a search reads one page for each.
) WITH (toast_tuple_target = 8160);
CREATE INDEX messages_conv_seq_idx ON messages (conversation_id, seq);
CREATE INDEX messages_tsv_gin_idx ON messages USING gin (content_tsv);
CREATE INDEX messages_content_hash_idx ON messages (content_hash);
-- System messages are in every assembled context, and few: this index finds them without a scan.
CREATE INDEX messages_system_idx ON messages (conversation_id, seq) WHERE role = 'system';
CREATE UNIQUE INDEX messages_take_an_idempotency_key_once
  ON messages (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX messages_cold_idx ON messages (cold_block_id) WHERE cold_block_id IS NOT NULL;
CREATE INDEX messages_erased_idx ON messages (conversation_id) WHERE erased_by_id IS NOT NULL;

CREATE TABLE summaries (
  summary_id TEXT PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  kind summary_kind NOT NULL,
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv_at(content, conversation_id, last_seq)) STORED,
  file_ids JSONB NOT NULL DEFAULT '[]'::jsonb,

  -- Its depth, and the range of messages that it covers.
  depth INTEGER NOT NULL,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  earliest_at TIMESTAMPTZ NOT NULL,
  latest_at TIMESTAMPTZ NOT NULL,
  source_count INTEGER NOT NULL,
  descendant_count INTEGER NOT NULL,
  source_tokens BIGINT NOT NULL,
  -- How it was made.
  level TEXT NOT NULL,
  model TEXT NOT NULL,
  quality JSONB NOT NULL DEFAULT '{}'::jsonb,
  token_counter TEXT NOT NULL,
  summary_hash BYTEA NOT NULL,
  run_id TEXT NOT NULL,
  duration_ms INTEGER NOT NULL DEFAULT 0,
  is_degraded BOOLEAN NOT NULL DEFAULT false,
  prompt_hash TEXT NOT NULL DEFAULT '',
  retention DOUBLE PRECISION,
  -- The summary of the same sources that this one replaces. Deferred, because imports write summaries in any order.
  supersedes_id TEXT UNIQUE REFERENCES summaries(summary_id) DEFERRABLE INITIALLY DEFERRED,
  tokens_in INTEGER NOT NULL DEFAULT 0,
  tokens_out INTEGER NOT NULL DEFAULT 0,
  erased_by_id BIGINT REFERENCES audit_log(audit_id) ON DELETE RESTRICT,
  CONSTRAINT summaries_of_messages_are_leaves CHECK ((kind = 'leaf') = (depth = 0)),
  CONSTRAINT summaries_cover_a_range CHECK (1 <= first_seq AND first_seq <= last_seq),
  CONSTRAINT summaries_know_their_level CHECK (level IN ('normal', 'aggressive', 'deterministic'))
) WITH (toast_tuple_target = 8160);
CREATE INDEX summaries_conv_created_idx ON summaries (conversation_id, created_at);
CREATE INDEX summaries_tsv_gin_idx ON summaries USING gin (content_tsv);
CREATE INDEX summaries_conv_range_idx ON summaries (conversation_id, first_seq, last_seq);
CREATE INDEX summaries_conv_last_idx ON summaries (conversation_id, last_seq);
CREATE INDEX summaries_degraded_idx ON summaries (conversation_id) WHERE is_degraded;

CREATE TABLE message_parts (
  part_id TEXT PRIMARY KEY,
  message_id BIGINT NOT NULL REFERENCES messages(message_id) ON DELETE CASCADE,
  session_id TEXT NOT NULL,
  part_type message_part_type NOT NULL,
  ordinal INTEGER NOT NULL,
  text_content TEXT,
  is_ignored BOOLEAN,
  is_synthetic BOOLEAN,
  tool_call_id TEXT,
  tool_name TEXT,
  tool_status TEXT,
  tool_input JSONB,
  tool_output TEXT,
  tool_error TEXT,
  tool_title TEXT,
  patch_hash TEXT,
  patch_files TEXT[],
  file_mime TEXT,
  file_name TEXT,
  file_url TEXT,
  subtask_prompt TEXT,
  subtask_desc TEXT,
  subtask_agent TEXT,
  step_reason TEXT,
  step_cost NUMERIC,
  step_tokens_in INTEGER,
  step_tokens_out INTEGER,
  snapshot_hash TEXT,
  compaction_auto BOOLEAN,
  metadata JSONB,

  exact JSON,
  part_hash BYTEA NOT NULL,
  UNIQUE (message_id, ordinal)
);
CREATE INDEX message_parts_message_idx ON message_parts (message_id);
CREATE INDEX message_parts_type_idx ON message_parts (part_type);
-- A partial index: most parts call no tool.
CREATE INDEX message_parts_tool_idx ON message_parts (tool_name, message_id) WHERE tool_name IS NOT NULL;

CREATE TABLE summary_messages (
  summary_id TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE CASCADE,
  message_id BIGINT NOT NULL REFERENCES messages(message_id) ON DELETE RESTRICT,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (summary_id, message_id)
);
-- From a message to the summaries made from it: for coverage, impact and grep.
CREATE INDEX summary_messages_message_idx ON summary_messages (message_id);

CREATE TABLE summary_parents (
  summary_id TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE CASCADE,
  parent_summary_id TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE RESTRICT,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (summary_id, parent_summary_id),
  CONSTRAINT summary_parents_are_others CHECK (summary_id <> parent_summary_id)
);
CREATE INDEX summary_parents_parent_idx ON summary_parents (parent_summary_id);

CREATE TABLE context_items (
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  ordinal BIGINT NOT NULL,
  item_type context_item_type NOT NULL,
  message_id BIGINT REFERENCES messages(message_id) ON DELETE RESTRICT,
  summary_id TEXT REFERENCES summaries(summary_id) ON DELETE RESTRICT,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),

  token_count INTEGER NOT NULL,
  PRIMARY KEY (conversation_id, ordinal),
  CHECK (
    (item_type = 'message' AND message_id IS NOT NULL AND summary_id IS NULL) OR
    (item_type = 'summary' AND summary_id IS NOT NULL AND message_id IS NULL)
  )
);
CREATE INDEX context_items_conv_idx ON context_items (conversation_id, ordinal);
CREATE UNIQUE INDEX context_items_show_a_message_once ON context_items (message_id) WHERE message_id IS NOT NULL;
CREATE UNIQUE INDEX context_items_show_a_summary_once ON context_items (summary_id) WHERE summary_id IS NOT NULL;

CREATE TABLE large_files (
  file_id TEXT PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  file_name TEXT,
  mime_type TEXT,
  byte_size BIGINT,
  storage_uri TEXT NOT NULL,
  exploration_summary TEXT,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),

  content_hash BYTEA,
  erased_by_id BIGINT REFERENCES audit_log(audit_id) ON DELETE RESTRICT
);
CREATE INDEX large_files_conv_idx ON large_files (conversation_id, created_at);

-- The files that a message refers to: those that its long texts were moved to, and those that its FILE parts name.
--
-- An element in the field replaces a moved text. `start_at` and `length` are its position, in characters of the field
-- as it is read; both are NULL if the message only names the file. `part_ordinal` is NULL for the message's own
-- content. The element has the SHA-256 of the file, so the conversation's hash chain covers the file as well.
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

-- A file that is uploaded in chunks. `file_id` is set when it is complete; a periodic sweep removes the row.
CREATE TABLE uploads (
  upload_id TEXT PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  file_name TEXT,
  mime_type TEXT,
  byte_size BIGINT NOT NULL,
  chunk_bytes INTEGER NOT NULL,
  -- The SHA-256 of the whole file according to the caller.
  content_hash BYTEA,
  file_id TEXT REFERENCES large_files(file_id) ON DELETE CASCADE,
  created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  touched_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT uploads_have_a_size CHECK (byte_size >= 0 AND chunk_bytes > 0)
);
CREATE INDEX uploads_conversation_idx ON uploads (conversation_id);
CREATE INDEX uploads_touched_idx ON uploads (touched_at);

-- The chunks that have arrived, from 0. Each has `chunk_bytes` bytes, the last one the rest.
CREATE TABLE upload_chunks (
  upload_chunk_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  upload_id TEXT NOT NULL REFERENCES uploads(upload_id) ON DELETE CASCADE,
  number INTEGER NOT NULL,
  content_hash BYTEA NOT NULL,
  CONSTRAINT upload_chunks_are_kept_once UNIQUE (upload_id, number),
  CONSTRAINT upload_chunks_are_numbered_from_zero CHECK (number >= 0)
);

-- Damaged rows that are withheld from models until they are repaired. The row of a quarantine stays after its release.
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
