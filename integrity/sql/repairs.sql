-- name: messages_after_gaps
-- Those of the given messages whose predecessor is missing.
SELECT 'msg_' || m.message_id FROM messages m
WHERE m.message_id = ANY(%s) AND m.seq > 1 AND NOT EXISTS (
    SELECT FROM messages before WHERE before.conversation_id = m.conversation_id AND before.seq = m.seq - 1)

-- name: context_hash
-- The number of context items, and a hash of them.
SELECT count(*), encode(sha256(convert_to(coalesce(string_agg(
    format('%%s|%%s|%%s|%%s|%%s', ordinal, item_type, message_id, summary_id, token_count), ';' ORDER BY ordinal,
    message_id, summary_id), ''), 'UTF8')), 'hex')
FROM context_items WHERE conversation_id = %s

-- name: unused_messages
-- Messages in a summary's range that are not a source of any other summary; they may be a source of this one.
SELECT m.message_id, encode(m.content_hash, 'hex')
FROM messages m
WHERE m.conversation_id = %(conversation_id)s AND m.seq BETWEEN %(first_seq)s AND %(last_seq)s
  AND NOT EXISTS (
      SELECT FROM summary_messages l JOIN summaries s USING (summary_id)
      WHERE l.message_id = m.message_id AND s.summary_id <> %(summary_id)s
        AND s.supersedes_id IS DISTINCT FROM %(summary_id)s)
ORDER BY m.seq

-- name: unused_summaries
-- Summaries in a summary's range that are not a source of any other summary; they may be a source of this one.
SELECT s.summary_id, encode(s.summary_hash, 'hex')
FROM summaries s
WHERE s.conversation_id = %(conversation_id)s AND s.depth < %(depth)s
  AND s.first_seq >= %(first_seq)s AND s.last_seq <= %(last_seq)s
  AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id)
  AND NOT EXISTS (
      SELECT FROM summary_parents p WHERE p.parent_summary_id = s.summary_id AND p.summary_id <> %(summary_id)s)
ORDER BY s.first_seq

-- name: linked_sources
-- The ids of a summary's sources.
SELECT 'msg_' || message_id FROM summary_messages WHERE summary_id = %(summary_id)s
UNION ALL
SELECT parent_summary_id FROM summary_parents WHERE summary_id = %(summary_id)s
ORDER BY 1

-- name: link_messages
-- Link a summary to messages, in order; existing links stay.
INSERT INTO summary_messages (summary_id, message_id, ordinal)
SELECT %s, message_id, place - 1 FROM unnest(%s::bigint[]) WITH ORDINALITY AS given(message_id, place)
ON CONFLICT DO NOTHING

-- name: link_summaries
-- Link a summary to summaries, in order; existing links stay.
INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
SELECT %s, source_id, place - 1 FROM unnest(%s::text[]) WITH ORDINALITY AS given(source_id, place)
ON CONFLICT DO NOTHING

-- name: hashes_of_message
-- The values that identify a message: a ledger's line is this message if all of them are equal.
SELECT seq, role::text, token_count, chained_parts, encode(content_hash, 'hex'), encode(entry_hash, 'hex'),
       encode(record_hash, 'hex'), encode(chain_hash, 'hex')
FROM messages WHERE message_id = %s

-- name: texts_of_message
-- The texts of a message as JSON.
SELECT json_build_object('content', content, 'metadata', metadata::text, 'exact', exact::text, 'author', author,
                         'idempotency_key', idempotency_key, 'cold_block_id', cold_block_id)::text
FROM messages WHERE message_id = %s

-- name: texts_of_parts
-- The values of a message's parts as JSON.
SELECT coalesce(json_agg(json_build_object(
           'part_id', part_id, 'part_hash', encode(part_hash, 'hex'), 'exact', exact::text,
           'text_content', text_content, 'is_ignored', is_ignored, 'is_synthetic', is_synthetic,
           'tool_call_id', tool_call_id, 'tool_name', tool_name, 'tool_status', tool_status,
           'tool_input', tool_input::text, 'tool_output', tool_output, 'tool_error', tool_error,
           'tool_title', tool_title, 'patch_hash', patch_hash, 'patch_files', patch_files, 'file_mime', file_mime,
           'file_name', file_name, 'file_url', file_url, 'subtask_prompt', subtask_prompt,
           'subtask_desc', subtask_desc, 'subtask_agent', subtask_agent, 'step_reason', step_reason,
           'step_cost', step_cost, 'step_tokens_in', step_tokens_in, 'step_tokens_out', step_tokens_out,
           'snapshot_hash', snapshot_hash, 'compaction_auto', compaction_auto, 'metadata', metadata::text
       ) ORDER BY ordinal), '[]')::text
FROM message_parts WHERE message_id = %s

-- name: fill_message
-- Write the texts of a message.
UPDATE messages
SET content = t.content, metadata = t.metadata::jsonb, exact = t.exact::json, author = t.author,
    idempotency_key = t.idempotency_key, cold_block_id = t.cold_block_id
FROM json_to_record(%s) AS t(content text, metadata text, exact text, author text, idempotency_key text,
                             cold_block_id bigint)
WHERE message_id = %s

-- name: fill_parts
-- Write the values of parts that have the same hash.
UPDATE message_parts part
SET exact = t.exact::json, text_content = t.text_content, is_ignored = t.is_ignored, is_synthetic = t.is_synthetic,
    tool_call_id = t.tool_call_id, tool_name = t.tool_name, tool_status = t.tool_status,
    tool_input = t.tool_input::jsonb, tool_output = t.tool_output, tool_error = t.tool_error,
    tool_title = t.tool_title, patch_hash = t.patch_hash, patch_files = t.patch_files, file_mime = t.file_mime,
    file_name = t.file_name, file_url = t.file_url, subtask_prompt = t.subtask_prompt,
    subtask_desc = t.subtask_desc, subtask_agent = t.subtask_agent, step_reason = t.step_reason,
    step_cost = t.step_cost, step_tokens_in = t.step_tokens_in, step_tokens_out = t.step_tokens_out,
    snapshot_hash = t.snapshot_hash, compaction_auto = t.compaction_auto, metadata = t.metadata::jsonb
FROM json_to_recordset(%s) AS t(
    part_id text, part_hash text, exact text, text_content text, is_ignored boolean, is_synthetic boolean,
    tool_call_id text, tool_name text, tool_status text, tool_input text, tool_output text, tool_error text,
    tool_title text, patch_hash text, patch_files text[], file_mime text, file_name text, file_url text,
    subtask_prompt text, subtask_desc text, subtask_agent text, step_reason text, step_cost numeric,
    step_tokens_in integer, step_tokens_out integer, snapshot_hash text, compaction_auto boolean, metadata text
)
WHERE part.part_id = t.part_id AND encode(part.part_hash, 'hex') = t.part_hash

-- name: follows_predecessor
-- Whether a ledger's message follows from the stored message before it.
SELECT encode(lcm_next_link(
    (SELECT chain_hash FROM messages WHERE conversation_id = %(conversation_id)s AND seq = %(seq)s - 1),
    ''::bytea, decode(%(entry_hash)s, 'hex'), decode(%(metadata_hash)s, 'hex'), decode(%(record_hash)s, 'hex'),
    %(created_at)s::timestamptz, %(recorded_at)s::timestamptz), 'hex') = %(chain_hash)s

-- name: successor_follows
-- Whether a stored message follows from this chain hash.
SELECT chain_hash = lcm_next_link(decode(%(chain_hash)s, 'hex'), ''::bytea, entry_hash, metadata_hash, record_hash,
                                  created_at, recorded_at)
FROM messages WHERE conversation_id = %(conversation_id)s AND seq = %(seq)s

-- name: lost_number
-- The message id of a lost message, if context items or links still name it. In a leaf summary over consecutive
-- messages, the seq of a source is the summary's first seq plus the ordinal of the source.
SELECT message_id FROM (
    SELECT c.message_id FROM context_items c
    WHERE c.conversation_id = %(conversation_id)s AND c.ordinal = %(seq)s
    UNION ALL
    SELECT l.message_id FROM summary_messages l JOIN summaries s USING (summary_id)
    WHERE s.conversation_id = %(conversation_id)s AND s.depth = 0 AND %(seq)s BETWEEN s.first_seq AND s.last_seq
      AND s.source_count = s.last_seq - s.first_seq + 1 AND l.ordinal = %(seq)s - s.first_seq
) AS named
WHERE message_id IS NOT NULL AND NOT EXISTS (SELECT FROM messages m WHERE m.message_id = named.message_id)
LIMIT 1

-- name: insert_numbered_message
-- Insert a message under the id that it had; the identity column would assign the next one.
INSERT INTO messages (
    message_id, conversation_id, seq, role, content, token_count, created_at, recorded_at, author, idempotency_key,
    metadata, exact, token_counter, chained_parts, content_hash, entry_hash, metadata_hash, record_hash,
    chain_hash
)
OVERRIDING SYSTEM VALUE
SELECT %(message_id)s, %(conversation_id)s, seq, role, content, token_count, created_at, recorded_at, author,
       idempotency_key, coalesce(metadata, '{}'), exact::json, token_counter, chained_parts,
       decode(content_hash, 'hex'), decode(entry_hash, 'hex'), decode(metadata_hash, 'hex'),
       decode(record_hash, 'hex'), decode(chain_hash, 'hex')
FROM json_to_recordset(%(rows)s) AS given(
    seq bigint, role message_role, content text, token_count integer, created_at timestamptz,
    recorded_at timestamptz, author text, idempotency_key text, metadata jsonb, exact text, token_counter text,
    chained_parts integer, content_hash text, entry_hash text, metadata_hash text, record_hash text,
    chain_hash text
)

-- name: source_hashes
-- The hashes of a summary's sources, in order.
SELECT hash FROM (
    SELECT 0 AS kind, l.ordinal, encode(m.content_hash, 'hex') AS hash
    FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = %(id)s
    UNION ALL
    SELECT 1, p.ordinal, encode(source.summary_hash, 'hex')
    FROM summary_parents p JOIN summaries source ON source.summary_id = p.parent_summary_id
    WHERE p.summary_id = %(id)s
) AS sources ORDER BY kind, ordinal
