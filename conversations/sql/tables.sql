-- The tables of the store. Above each blank line inside a table stand the columns of the specification, under their own
-- names; below it, what the store needs beyond them.

CREATE TABLE workspaces (
  workspace_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now()
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
  -- Counters, so that nobody has to count: kept by the same statements that change what they count.
  next_seq BIGINT NOT NULL DEFAULT 1,
  total_tokens BIGINT NOT NULL DEFAULT 0,
  active_messages BIGINT NOT NULL DEFAULT 0,
  active_tokens BIGINT NOT NULL DEFAULT 0,
  -- Automatic compaction found nothing more to do: it rests until the conversation has this many messages.
  rest_until_seq BIGINT NOT NULL DEFAULT 0,
  chain_head BYTEA NOT NULL DEFAULT '\x',
  CONSTRAINT conversations_have_one_session_per_workspace UNIQUE (workspace_id, session_id)
) WITH (fillfactor = 70);  -- room for the counters' next version on the same page

CREATE TABLE messages (
  message_id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  seq BIGINT NOT NULL,
  role message_role NOT NULL,
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv(content)) STORED,

  recorded_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
  author TEXT,
  idempotency_key TEXT,
  metadata JSONB NOT NULL DEFAULT '{}'::jsonb,
  exact JSON,
  token_counter TEXT NOT NULL,
  chained_parts INTEGER NOT NULL DEFAULT 0,
  content_hash BYTEA NOT NULL,
  entry_hash BYTEA NOT NULL,
  chain_hash BYTEA NOT NULL,
  UNIQUE (conversation_id, seq),
  CONSTRAINT messages_are_numbered_from_one CHECK (seq >= 1),
  CONSTRAINT messages_cost_no_less_than_nothing CHECK (token_count >= 0)
);
CREATE INDEX messages_conv_seq_idx ON messages (conversation_id, seq);
CREATE INDEX messages_tsv_gin_idx ON messages USING gin (content_tsv);
CREATE INDEX messages_content_hash_idx ON messages (content_hash);
-- System messages are in every assembled context, and few: found without walking the rest.
CREATE INDEX messages_system_idx ON messages (conversation_id, seq) WHERE role = 'system';
CREATE UNIQUE INDEX messages_take_an_idempotency_key_once
  ON messages (conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

CREATE TABLE summaries (
  summary_id TEXT PRIMARY KEY,
  conversation_id BIGINT NOT NULL REFERENCES conversations(conversation_id) ON DELETE CASCADE,
  kind summary_kind NOT NULL,
  content TEXT NOT NULL,
  token_count INTEGER NOT NULL,
  created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
  content_tsv tsvector GENERATED ALWAYS AS (lcm_tsv(content)) STORED,
  file_ids JSONB NOT NULL DEFAULT '[]'::jsonb,

  depth INTEGER NOT NULL,
  first_seq BIGINT NOT NULL,
  last_seq BIGINT NOT NULL,
  earliest_at TIMESTAMPTZ NOT NULL,
  latest_at TIMESTAMPTZ NOT NULL,
  source_count INTEGER NOT NULL,
  descendant_count INTEGER NOT NULL,
  source_tokens BIGINT NOT NULL,
  level TEXT NOT NULL,
  model TEXT NOT NULL,
  quality JSONB NOT NULL DEFAULT '{}'::jsonb,
  token_counter TEXT NOT NULL,
  summary_hash BYTEA NOT NULL,
  run_id TEXT NOT NULL,
  CONSTRAINT summaries_of_messages_are_leaves CHECK ((kind = 'leaf') = (depth = 0)),
  CONSTRAINT summaries_cover_a_range CHECK (1 <= first_seq AND first_seq <= last_seq),
  CONSTRAINT summaries_know_their_level CHECK (level IN ('normal', 'aggressive', 'deterministic'))
);
CREATE INDEX summaries_conv_created_idx ON summaries (conversation_id, created_at);
CREATE INDEX summaries_tsv_gin_idx ON summaries USING gin (content_tsv);
CREATE INDEX summaries_conv_range_idx ON summaries (conversation_id, first_seq, last_seq);

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

CREATE TABLE summary_messages (
  summary_id TEXT NOT NULL REFERENCES summaries(summary_id) ON DELETE CASCADE,
  message_id BIGINT NOT NULL REFERENCES messages(message_id) ON DELETE RESTRICT,
  ordinal INTEGER NOT NULL,
  PRIMARY KEY (summary_id, message_id)
);
-- From a message to the summaries that hold it: coverage, impact and grep ask this way round.
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

  content_hash BYTEA
);
CREATE INDEX large_files_conv_idx ON large_files (conversation_id, created_at);
