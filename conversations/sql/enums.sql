CREATE TYPE message_role AS ENUM ('system', 'user', 'assistant', 'tool');
CREATE TYPE summary_kind AS ENUM ('leaf', 'condensed');
CREATE TYPE context_item_type AS ENUM ('message', 'summary');
CREATE TYPE message_part_type AS ENUM (
  'text', 'reasoning', 'tool', 'patch', 'file',
  'subtask', 'compaction', 'step_start', 'step_finish',
  'snapshot', 'agent', 'retry'
);
