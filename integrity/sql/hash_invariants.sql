-- name: contents_match_their_hashes
-- Messages whose stored text does not match its hash; those with exact values are left to Python.
SELECT conversation_id, 'msg_' || message_id, 'its content does not match its hash'
FROM messages
WHERE conversation_id = ANY(%(ids)s) AND exact IS NULL AND cold_block_id IS NULL AND erased_by_id IS NULL
  AND sha256(convert_to(content, 'UTF8')) <> content_hash

-- name: exact_messages
-- Messages with exact values, which are stored in addition to their columns.
SELECT conversation_id, message_id, content, exact, content_hash, chained_parts
FROM messages
WHERE conversation_id = ANY(%(ids)s) AND exact IS NOT NULL AND cold_block_id IS NULL AND erased_by_id IS NULL
ORDER BY conversation_id, message_id

-- name: metadata_of_messages
-- Metadata with its hash, of the messages that have any.
SELECT conversation_id, message_id, metadata::text, exact, metadata_hash
FROM messages
WHERE conversation_id = ANY(%(ids)s) AND (metadata <> '{}' OR metadata_hash IS NOT NULL)
  AND cold_block_id IS NULL AND erased_by_id IS NULL
ORDER BY conversation_id, message_id

-- name: entries_match_their_hashes
-- Messages whose entry hash does not match their role, author, content and parts.
WITH entries AS (
    SELECT m.conversation_id, m.message_id, m.role, m.author, m.entry_hash, m.erased_by_id,
           m.content_hash || coalesce(string_agg(p.part_hash, ''::bytea ORDER BY p.ordinal), '') AS contents
    FROM messages m
    LEFT JOIN message_parts p ON p.message_id = m.message_id AND p.ordinal < m.chained_parts
    WHERE m.conversation_id = ANY(%(ids)s)
    GROUP BY m.message_id
)
SELECT conversation_id, 'msg_' || message_id, 'its role, author, content or parts do not match its entry hash'
FROM entries
WHERE CASE WHEN erased_by_id IS NULL
      THEN entry_hash <> sha256(
          convert_to(role::text || E'\n' || coalesce(author, '') || E'\n', 'UTF8') || contents
      )
      -- An erasure removes the author, so a mismatch alone proves nothing. But if the hash matches another role
      -- without an author, the role was altered.
      ELSE EXISTS (
          SELECT FROM unnest(enum_range(role)) AS other(role)
          WHERE other.role <> entries.role
            AND entry_hash = sha256(convert_to(other.role::text || E'\n\n', 'UTF8') || contents)
      ) END

-- name: chains_are_unbroken
-- Messages whose chain hash does not follow from the message before them.
SELECT conversation_id, 'msg_' || message_id, format('message %%s does not follow from the one before it', seq)
FROM (
    SELECT conversation_id, message_id, seq, chain_hash,
           lcm_next_link(lag(chain_hash) OVER in_order, ''::bytea, entry_hash, metadata_hash, record_hash,
                         created_at, recorded_at) AS link
    FROM messages WHERE conversation_id = ANY(%(ids)s)
    WINDOW in_order AS (PARTITION BY conversation_id ORDER BY seq, message_id)
) AS links
WHERE chain_hash <> link

-- name: summaries_match_their_hashes
-- Summaries whose hash does not match their text and sources.
WITH sources AS (
    SELECT l.summary_id, 0 AS kind, l.ordinal, encode(m.content_hash, 'hex') AS hash
    FROM summaries s JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
    WHERE s.conversation_id = ANY(%(ids)s)
    UNION ALL
    SELECT p.summary_id, 1, p.ordinal, encode(source.summary_hash, 'hex')
    FROM summaries s JOIN summary_parents p USING (summary_id)
    JOIN summaries source ON source.summary_id = p.parent_summary_id
    WHERE s.conversation_id = ANY(%(ids)s)
), expected AS (
    SELECT summary_id, string_agg(hash, ',' ORDER BY kind, ordinal, hash) AS hashes
    FROM sources GROUP BY summary_id
)
SELECT s.conversation_id, s.summary_id, 'its text or its sources do not match its summary hash'
FROM summaries s LEFT JOIN expected USING (summary_id)
WHERE s.conversation_id = ANY(%(ids)s) AND s.erased_by_id IS NULL
  AND s.summary_hash <> sha256(convert_to(coalesce(expected.hashes, '') || '|' || s.content, 'UTF8'))

-- name: unproven_parts
-- Parts whose hash PostgreSQL cannot confirm, with their values; Python hashes these again.
-- The expression writes the canonical JSON of `hashing.part_hash`: the same text for ASCII values and for objects whose
-- keys are in jsonb's order (shortest first). A match proves the values; a mismatch proves nothing yet.
SELECT m.conversation_id, p.part_id, p.exact, p.part_hash,
       p.part_type, p.text_content, p.is_ignored, p.is_synthetic, p.tool_call_id, p.tool_name, p.tool_status,
       p.tool_input, p.tool_output, p.tool_error, p.tool_title, p.patch_hash, p.patch_files, p.file_mime,
       p.file_name, p.file_url, p.subtask_prompt, p.subtask_desc, p.subtask_agent, p.step_reason, p.step_cost,
       p.step_tokens_in, p.step_tokens_out, p.snapshot_hash, p.compaction_auto, p.metadata
FROM message_parts p JOIN messages m USING (message_id)
WHERE m.conversation_id = ANY(%(ids)s) AND m.cold_block_id IS NULL AND m.erased_by_id IS NULL
  AND (p.exact IS NOT NULL OR p.part_hash <> sha256(convert_to('{' || substr(concat(
      ',"compaction_auto":' || to_json(p.compaction_auto)::text,
      ',"file_mime":' || to_json(p.file_mime)::text,
      ',"file_name":' || to_json(p.file_name)::text,
      ',"file_url":' || to_json(p.file_url)::text,
      ',"is_ignored":' || to_json(p.is_ignored)::text,
      ',"is_synthetic":' || to_json(p.is_synthetic)::text,
      ',"metadata":' || json_strip_nulls(p.metadata::text::json)::text,
      ',"part_type":' || to_json(p.part_type)::text,
      ',"patch_files":' || to_json(p.patch_files)::text,
      ',"patch_hash":' || to_json(p.patch_hash)::text,
      ',"snapshot_hash":' || to_json(p.snapshot_hash)::text,
      ',"step_cost":' || '"' || trim_scale(p.step_cost)::text || '"',
      ',"step_reason":' || to_json(p.step_reason)::text,
      ',"step_tokens_in":' || to_json(p.step_tokens_in)::text,
      ',"step_tokens_out":' || to_json(p.step_tokens_out)::text,
      ',"subtask_agent":' || to_json(p.subtask_agent)::text,
      ',"subtask_desc":' || to_json(p.subtask_desc)::text,
      ',"subtask_prompt":' || to_json(p.subtask_prompt)::text,
      ',"text_content":' || to_json(p.text_content)::text,
      ',"tool_call_id":' || to_json(p.tool_call_id)::text,
      ',"tool_error":' || to_json(p.tool_error)::text,
      ',"tool_input":' || json_strip_nulls(p.tool_input::text::json)::text,
      ',"tool_name":' || to_json(p.tool_name)::text,
      ',"tool_output":' || to_json(p.tool_output)::text,
      ',"tool_status":' || to_json(p.tool_status)::text,
      ',"tool_title":' || to_json(p.tool_title)::text
  ), 2) || '}', 'UTF8')))

-- name: unproven_records
-- Messages whose record hash PostgreSQL cannot confirm, with the values that it covers.
-- The expression writes the canonical JSON of a record without files and with JSON keys in order. A match proves such a
-- record, unless its key order can differ from that of the stored values: this is so only if the message or a part has
-- `exact` values. Records of cold messages are checked with their blocks.
WITH sealed AS (
    SELECT conversation_id, message_id,
           exact IS NOT NULL OR record_hash <> sha256(convert_to(
                 '{' || coalesce('"idempotency_key":' || to_json(m.idempotency_key)::text || ',', '')
                 || '"token_count":' || m.token_count
                 || ',"token_counter":' || to_json(m.token_counter)::text || '}', 'UTF8')) AS is_unproven
    FROM messages m
    WHERE conversation_id = ANY(%(ids)s) AND record_hash IS NOT NULL AND cold_block_id IS NULL
      AND erased_by_id IS NULL
), unproven AS (
    SELECT message_id FROM sealed WHERE is_unproven
    UNION
    SELECT message_id FROM sealed JOIN message_parts p USING (message_id) WHERE p.exact IS NOT NULL
    UNION
    SELECT message_id FROM sealed JOIN file_references USING (message_id)
)
SELECT m.conversation_id, m.message_id, m.record_hash, m.idempotency_key, m.token_count, m.token_counter,
       m.metadata::text, m.exact,
       (SELECT json_agg(json_build_array(p.tool_input::text, p.metadata::text, p.exact::text)
                        ORDER BY p.ordinal)::text
        FROM message_parts p WHERE p.message_id = m.message_id AND p.ordinal < m.chained_parts)
FROM unproven JOIN messages m USING (message_id)
ORDER BY m.conversation_id, m.message_id
