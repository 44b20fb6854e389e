-- Computes the next hash of a conversation's hash chain from the previous hash, and from the hashes and times of a
-- message. The previous hash is `link` or, if that is NULL (the first message of a batch), `head`. The prefix `record:`
-- distinguishes record_hash from metadata_hash, because either may be NULL.
CREATE OR REPLACE FUNCTION lcm_next_link(
  link bytea, head bytea, entry_hash bytea, metadata_hash bytea, record_hash bytea, created_at timestamptz,
  recorded_at timestamptz
) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN sha256(
    coalesce(link, head) || entry_hash
    || int8send((extract(epoch FROM created_at) * 1000000)::bigint)
    || int8send((extract(epoch FROM recorded_at) * 1000000)::bigint)
    || coalesce(metadata_hash, '')
    || coalesce('record:'::bytea || record_hash, '')
  );
END
$$;

CREATE OR REPLACE AGGREGATE lcm_chain(
  head bytea, entry_hash bytea, metadata_hash bytea, record_hash bytea, created_at timestamptz, recorded_at timestamptz
) (SFUNC = lcm_next_link, STYPE = bytea);

-- What an erased message has as its idempotency key: the hash of its former key, so that the message is still recognized
-- if it is sent again. `hashing.erased_key` computes the same.
CREATE OR REPLACE FUNCTION lcm_erased_key(key text) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN 'erased:' || encode(sha256(convert_to(key, 'UTF8')), 'hex');

-- Appends a batch of messages with their parts, context items and counters. `p_messages` is a JSON array of objects,
-- numbered by `position` from 1; the content of each is the element of `p_contents` at that position. A part in
-- `p_parts` has the position of its message. If a column of a part equals the content of the message, `repeats` names
-- that column. `p_keyed` is whether any message has an idempotency key.
--
-- If the workspace has no such conversation, message_ids is NULL. If an idempotency key was used before for a different
-- message, nothing is written, and `conflicting_key` is that key. A message whose key is stored with the same
-- entry_hash is not written again. A message with the key of an erased one is never written again.
CREATE OR REPLACE FUNCTION lcm_append_messages(
  p_conversation_id bigint,
  p_workspace_id bigint,
  p_overhead integer,
  p_keyed boolean,
  p_messages json,
  p_contents text[],
  p_parts json,
  OUT message_ids bigint[],
  OUT seqs bigint[],
  OUT created boolean[],
  OUT conflicting_key text,
  OUT message_count bigint,
  OUT active_messages bigint,
  OUT active_tokens bigint,
  OUT total_tokens bigint,
  OUT rest_until_seq bigint,
  OUT overrides jsonb
)
LANGUAGE plpgsql AS $$
DECLARE
  c conversations;
  stored_ids bigint[] := '{}';
  fresh_tokens bigint;
  fresh_count integer;
  -- Never earlier than previous times of recording, even if the clock was set back.
  recorded timestamptz;
BEGIN
  SELECT * INTO c FROM conversations
    WHERE conversation_id = p_conversation_id AND (p_workspace_id IS NULL OR workspace_id = p_workspace_id)
    FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  recorded := greatest(clock_timestamp(), c.updated_at);

  IF p_keyed THEN
    -- One comparison for each form of a key: with IN, the plan reads the whole conversation for each key until the
    -- statistics know how long it is.
    SELECT array_agg(m.message_id ORDER BY b.position), array_agg(m.seq ORDER BY b.position),
           min(b.idempotency_key) FILTER (
             WHERE m.idempotency_key = b.idempotency_key AND m.entry_hash <> decode(b.entry_hash, 'hex')
           )
      INTO stored_ids, seqs, conflicting_key
      FROM json_to_recordset(p_messages) AS b(position integer, idempotency_key text, entry_hash text)
      LEFT JOIN LATERAL (
        SELECT s.message_id, s.seq, s.idempotency_key, s.entry_hash FROM messages s
          WHERE s.conversation_id = p_conversation_id AND s.idempotency_key = b.idempotency_key
        UNION ALL
        SELECT s.message_id, s.seq, s.idempotency_key, s.entry_hash FROM messages s
          WHERE s.conversation_id = p_conversation_id AND s.idempotency_key = lcm_erased_key(b.idempotency_key)
        LIMIT 1
      ) m ON true;
    IF conflicting_key IS NOT NULL THEN
      message_ids := '{}';
      RETURN;
    END IF;
  END IF;

  WITH given AS (
    SELECT b.*, p_contents[position] AS content, row_number() OVER (ORDER BY position) - 1 AS place,
           decode(b.metadata_hash, 'hex') AS metadata_seal,
           decode(b.record_hash, 'hex') AS record_seal,
           lcm_chain(c.chain_head, decode(b.entry_hash, 'hex'), decode(b.metadata_hash, 'hex'),
                     decode(b.record_hash, 'hex'), b.created_at, recorded)
             OVER (ORDER BY position) AS chain_hash
      FROM json_to_recordset(p_messages) AS b(
        position integer, role message_role, token_count integer, token_counter text, created_at timestamptz,
        author text, idempotency_key text, metadata jsonb, exact text, chained_parts integer,
        content_hash text, entry_hash text, metadata_hash text, record_hash text
      )
      WHERE stored_ids[b.position] IS NULL
  ), inserted AS (
    INSERT INTO messages (
      conversation_id, seq, role, content, token_count, created_at, author, idempotency_key, metadata, exact,
      token_counter, chained_parts, content_hash, entry_hash, metadata_hash, record_hash, chain_hash, recorded_at
    )
    SELECT p_conversation_id, c.next_seq + place, role, content, token_count, given.created_at, author, idempotency_key,
           coalesce(metadata, '{}'), exact::json, token_counter, chained_parts, decode(content_hash, 'hex'),
           decode(entry_hash, 'hex'), metadata_seal, record_seal, chain_hash, recorded
      FROM given ORDER BY place
    RETURNING messages.message_id, messages.seq, messages.token_count, messages.chain_hash
  ), shown AS (
    INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)
    SELECT p_conversation_id, inserted.seq, 'message', inserted.message_id, inserted.token_count + p_overhead
      FROM inserted
  )
  SELECT array_agg(i.message_id ORDER BY i.seq), array_agg(i.seq ORDER BY i.seq), coalesce(sum(i.token_count), 0),
         count(*), coalesce((array_agg(i.chain_hash ORDER BY i.seq DESC))[1], c.chain_head)
    INTO message_ids, seqs, fresh_tokens, fresh_count, c.chain_head
    FROM inserted i;

  -- The ids and seqs of all messages of the batch by position, new ones and those stored before.
  IF p_keyed AND fresh_count < cardinality(stored_ids) THEN
    SELECT array_agg(coalesce(s.id, m.message_id) ORDER BY s.position), array_agg(m.seq ORDER BY s.position),
           array_agg(s.id IS NULL ORDER BY s.position)
      INTO message_ids, seqs, created
      FROM (
        SELECT id, position, count(*) FILTER (WHERE id IS NULL) OVER (ORDER BY position) AS place
          FROM unnest(stored_ids) WITH ORDINALITY AS stored(id, position)
      ) s
      JOIN messages m ON m.message_id = s.id
        OR (s.id IS NULL AND m.conversation_id = p_conversation_id AND m.seq = c.next_seq + s.place - 1);
  ELSE
    created := array_fill(true, ARRAY[fresh_count]);
  END IF;

  IF fresh_count > 0 THEN
    INSERT INTO message_parts (
      part_id, message_id, session_id, part_type, ordinal, text_content, is_ignored, is_synthetic, tool_call_id,
      tool_name, tool_status, tool_input, tool_output, tool_error, tool_title, patch_hash, patch_files, file_mime,
      file_name, file_url, subtask_prompt, subtask_desc, subtask_agent, step_reason, step_cost, step_tokens_in,
      step_tokens_out, snapshot_hash, compaction_auto, metadata, exact, part_hash
    )
    SELECT 'part_' || message_ids[p.position] || '_' || p.ordinal, message_ids[p.position], c.session_id, p.part_type,
           p.ordinal,
           CASE p.repeats WHEN 'text_content' THEN p_contents[p.position] ELSE p.text_content END,
           p.is_ignored, p.is_synthetic, p.tool_call_id, p.tool_name, p.tool_status, p.tool_input,
           CASE p.repeats WHEN 'tool_output' THEN p_contents[p.position] ELSE p.tool_output END,
           p.tool_error, p.tool_title, p.patch_hash, p.patch_files, p.file_mime,
           p.file_name, p.file_url, p.subtask_prompt, p.subtask_desc, p.subtask_agent, p.step_reason, p.step_cost,
           p.step_tokens_in, p.step_tokens_out, p.snapshot_hash, p.compaction_auto, p.metadata, p.exact::json,
           decode(p.part_hash, 'hex')
      FROM json_to_recordset(p_parts) AS p(
        position integer, ordinal integer, part_type message_part_type, text_content text, is_ignored boolean,
        is_synthetic boolean, tool_call_id text, tool_name text, tool_status text, tool_input jsonb, tool_output text,
        tool_error text, tool_title text, patch_hash text, patch_files text[], file_mime text, file_name text,
        file_url text, subtask_prompt text, subtask_desc text, subtask_agent text, step_reason text, step_cost numeric,
        step_tokens_in integer, step_tokens_out integer, snapshot_hash text, compaction_auto boolean, metadata jsonb,
        exact text, part_hash text, repeats text
      )
      WHERE created[p.position];
  END IF;

  UPDATE conversations SET
      next_seq = conversations.next_seq + fresh_count,
      total_tokens = conversations.total_tokens + fresh_tokens,
      active_messages = conversations.active_messages + fresh_count,
      active_tokens = conversations.active_tokens + fresh_tokens + fresh_count * p_overhead,
      chain_head = c.chain_head,
      updated_at = CASE WHEN fresh_count > 0 THEN recorded ELSE conversations.updated_at END,
      last_used_on = (recorded AT TIME ZONE 'UTC')::date
    WHERE conversation_id = p_conversation_id
    RETURNING conversations.next_seq - 1, conversations.active_messages, conversations.active_tokens,
              conversations.total_tokens, conversations.rest_until_seq, conversations.overrides
    INTO message_count, active_messages, active_tokens, total_tokens, rest_until_seq, overrides;
END
$$;
