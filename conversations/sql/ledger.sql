-- name: hashes_of_messages
-- A page of a conversation's messages, with the values of a ledger line that are not in a message's record.
SELECT seq, message_id, token_count, recorded_at, chained_parts, encode(entry_hash, 'hex'),
       encode(metadata_hash, 'hex'), encode(record_hash, 'hex')
FROM messages WHERE conversation_id = %s AND seq > %s ORDER BY seq LIMIT %s

-- name: messages_with_later_parts
-- A page of messages with parts that were added after the append.
SELECT m.seq, m.message_id, m.chained_parts
FROM messages m
WHERE m.conversation_id = %s AND m.seq > %s
  AND EXISTS (SELECT FROM message_parts p WHERE p.message_id = m.message_id AND p.ordinal >= m.chained_parts)
ORDER BY m.seq LIMIT %s

-- name: messages_with_files
-- A page of messages that refer to files.
SELECT m.seq, m.message_id FROM messages m
WHERE m.conversation_id = %s AND m.seq > %s
  AND EXISTS (SELECT FROM file_references r WHERE r.message_id = m.message_id)
ORDER BY m.seq LIMIT %s

-- name: source_seqs
-- The seqs of the messages that summaries were made from; a message of another conversation counts as seq 0.
SELECT l.summary_id, array_agg(CASE WHEN m.conversation_id = s.conversation_id THEN m.seq ELSE 0 END
                               ORDER BY l.ordinal, m.seq)
FROM summaries s JOIN summary_messages l USING (summary_id) LEFT JOIN messages m USING (message_id)
WHERE l.summary_id = ANY(%s) GROUP BY l.summary_id

-- name: source_ids
-- The ids of the summaries that condensed summaries were made from.
SELECT summary_id, array_agg(parent_summary_id ORDER BY ordinal, parent_summary_id)
FROM summary_parents WHERE summary_id = ANY(%s) GROUP BY summary_id

-- name: insert_messages
-- Insert messages from ledger lines, with their times and hashes.
INSERT INTO messages (
    conversation_id, seq, role, content, token_count, created_at, recorded_at, author, idempotency_key, metadata,
    exact, token_counter, chained_parts, content_hash, entry_hash, metadata_hash, record_hash,
    chain_hash, erased_by_id
)
SELECT %(conversation_id)s::bigint, seq, role, content, token_count, created_at, recorded_at, author,
       idempotency_key, coalesce(metadata, '{}'), exact::json, token_counter, chained_parts,
       decode(content_hash, 'hex'), decode(entry_hash, 'hex'), decode(metadata_hash, 'hex'),
       decode(record_hash, 'hex'), decode(chain_hash, 'hex'), CASE WHEN erased THEN %(audit_id)s::bigint END
FROM json_to_recordset(%(rows)s::json) AS given(
    seq bigint, role message_role, content text, token_count integer, created_at timestamptz,
    recorded_at timestamptz, author text, idempotency_key text, metadata jsonb, exact text, token_counter text,
    chained_parts integer, content_hash text, entry_hash text, metadata_hash text, record_hash text,
    chain_hash text, erased boolean
)
ORDER BY seq

-- name: insert_parts
-- Insert parts of existing messages from ledger lines, with their hashes.
INSERT INTO message_parts (
    part_id, message_id, session_id, ordinal,
    part_type, text_content, is_ignored, is_synthetic, tool_call_id, tool_name, tool_status, tool_input,
    tool_output, tool_error, tool_title, patch_hash, patch_files, file_mime, file_name, file_url, subtask_prompt,
    subtask_desc, subtask_agent, step_reason, step_cost, step_tokens_in, step_tokens_out, snapshot_hash,
    compaction_auto, metadata,
    exact, part_hash
)
SELECT 'part_' || m.message_id || '_' || given.ordinal, m.message_id, %(session_id)s::text, given.ordinal,
       given.part_type, given.text_content, given.is_ignored, given.is_synthetic, given.tool_call_id,
       given.tool_name, given.tool_status, given.tool_input, given.tool_output, given.tool_error, given.tool_title,
       given.patch_hash, given.patch_files, given.file_mime, given.file_name, given.file_url, given.subtask_prompt,
       given.subtask_desc, given.subtask_agent, given.step_reason, given.step_cost, given.step_tokens_in,
       given.step_tokens_out, given.snapshot_hash, given.compaction_auto, given.metadata,
       given.exact::json, decode(given.part_hash, 'hex')
FROM json_to_recordset(%(rows)s::json) AS given(
    seq bigint, ordinal integer,
    part_type message_part_type, text_content text, is_ignored boolean, is_synthetic boolean, tool_call_id text,
    tool_name text, tool_status text, tool_input jsonb, tool_output text, tool_error text, tool_title text,
    patch_hash text, patch_files text[], file_mime text, file_name text, file_url text, subtask_prompt text,
    subtask_desc text, subtask_agent text, step_reason text, step_cost numeric, step_tokens_in integer,
    step_tokens_out integer, snapshot_hash text, compaction_auto boolean, metadata jsonb,
    exact text, part_hash text
)
JOIN messages m ON m.conversation_id = %(conversation_id)s AND m.seq = given.seq

-- name: insert_summaries
-- Insert summaries from ledger lines.
INSERT INTO summaries (
    summary_id, conversation_id, kind, content, token_count, created_at, file_ids, depth, first_seq, last_seq,
    earliest_at, latest_at, source_count, descendant_count, source_tokens, level, model, quality, token_counter,
    summary_hash, run_id, retention, is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out, duration_ms,
    erased_by_id
)
SELECT summary_id, %(conversation_id)s::bigint, kind, coalesce(content, ''), token_count, created_at, file_ids,
       depth, first_seq, last_seq, earliest_at, latest_at, source_count, descendant_count, source_tokens, level,
       model, quality, token_counter, decode(summary_hash, 'hex'), run_id, retention, is_degraded, supersedes_id,
       prompt_hash, tokens_in, tokens_out, duration_ms, CASE WHEN erased THEN %(audit_id)s::bigint END
FROM json_to_recordset(%(rows)s::json) AS given(
    summary_id text, kind summary_kind, content text, token_count integer, created_at timestamptz, file_ids jsonb,
    depth integer, first_seq bigint, last_seq bigint, earliest_at timestamptz, latest_at timestamptz,
    source_count integer, descendant_count integer, source_tokens bigint, level text, model text, quality jsonb,
    token_counter text, summary_hash text, run_id text, retention float, is_degraded boolean, supersedes_id text,
    prompt_hash text, tokens_in integer, tokens_out integer, duration_ms integer, erased boolean
)

-- name: insert_source_messages
-- Link a summary to its source messages, in order.
INSERT INTO summary_messages (summary_id, message_id, ordinal)
SELECT %(summary_id)s::text, m.message_id, given.place - 1
FROM unnest(%(source_seqs)s::bigint[]) WITH ORDINALITY AS given(seq, place)
JOIN messages m ON m.conversation_id = %(conversation_id)s AND m.seq = given.seq

-- name: insert_source_summaries
-- Link a condensed summary to its source summaries, in order.
INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
SELECT %(summary_id)s::text, source_id, place - 1
FROM unnest(%(source_ids)s::text[]) WITH ORDINALITY AS given(source_id, place)
