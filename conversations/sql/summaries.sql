-- Functions that write summaries, and show them in the active context.
--
-- The functions set planner parameters that forbid sequential scans or fix the kind of plan. So their plans suit any
-- length of conversation, whatever size the tables have at planning time.

-- Replaces the sources of a summary in the active context by the summary, at the ordinal of the first source, and
-- updates the counters. `items` is the number of sources that were in the context. If that is not all of them, the
-- caller must roll back.
--
-- Planned once per connection. The items of the sources are found by the indexes on their ids: `conversation_id + 0`
-- keeps the planner from scanning all items of the conversation.
CREATE FUNCTION lcm_show_summary(
  p_conversation_id bigint, p_summary_id text, p_item_tokens integer, OUT items bigint, OUT ordinal bigint
)
LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
BEGIN
  WITH raw AS (
    DELETE FROM context_items item
    WHERE item.message_id = ANY (ARRAY(SELECT message_id FROM summary_messages WHERE summary_id = p_summary_id))
      AND item.conversation_id + 0 = p_conversation_id
    RETURNING item.ordinal, item.token_count
  ), merged AS (
    DELETE FROM context_items item
    WHERE item.summary_id = ANY (ARRAY(SELECT parent_summary_id FROM summary_parents WHERE summary_id = p_summary_id))
      AND item.conversation_id + 0 = p_conversation_id
    RETURNING item.ordinal, item.token_count
  ), gone AS (
    SELECT count(*) AS items, min(item.ordinal) AS ordinal, sum(item.token_count) AS tokens,
           (SELECT count(*) FROM raw) AS messages
      FROM (SELECT * FROM raw UNION ALL SELECT * FROM merged) AS item
  ), shown AS (
    INSERT INTO context_items (conversation_id, ordinal, item_type, summary_id, token_count)
    SELECT p_conversation_id, gone.ordinal, 'summary', p_summary_id, p_item_tokens FROM gone WHERE gone.items > 0
  ), counted AS (
    UPDATE conversations
       SET active_messages = active_messages - gone.messages,
           active_tokens = active_tokens - gone.tokens + p_item_tokens
      FROM gone WHERE conversation_id = p_conversation_id AND gone.items > 0
  )
  SELECT gone.items, gone.ordinal INTO items, ordinal FROM gone;
END
$$;

-- In the active context, replaces the superseded summary of the same sources by the new one. `items` is 1, or 0 if the
-- superseded summary is not in the context.
CREATE FUNCTION lcm_show_instead(
  p_conversation_id bigint, p_summary_id text, p_item_tokens integer, OUT items bigint, OUT ordinal bigint
)
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  WITH before AS (
    SELECT item.ordinal, item.token_count
      FROM summaries s
      JOIN context_items item ON item.summary_id = s.supersedes_id AND item.conversation_id = p_conversation_id
     WHERE s.summary_id = p_summary_id
  ), counted AS (
    UPDATE conversations SET active_tokens = active_tokens - before.token_count + p_item_tokens
      FROM before WHERE conversation_id = p_conversation_id
  )
  UPDATE context_items item SET summary_id = p_summary_id, token_count = p_item_tokens
    FROM before WHERE item.conversation_id = p_conversation_id AND item.ordinal = before.ordinal
    RETURNING 1, item.ordinal INTO items, ordinal;
  items := coalesce(items, 0);
END
$$;

-- Writes a finished summary with its lineage and a compaction part (`p_mark`) on the last message that it covers. In
-- the context, the summary replaces its sources, or the summary that it supersedes. If `p_item_tokens` is NULL, the
-- context does not change, because the summary is a source of another one.
--
-- The settings also apply to the foreign key checks inside the function, whose plans can be reused.
CREATE FUNCTION lcm_write_summary(
  p_conversation_id bigint,
  p_summary json,
  p_message_ids bigint[],
  p_source_ids text[],
  p_item_tokens integer,
  p_mark json,
  OUT items bigint,
  OUT ordinal bigint
)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
  new_id text := p_summary ->> 'summary_id';
  session text;
BEGIN
  -- Every writer locks the conversation's row first, so that writers queue up and never deadlock.
  SELECT session_id INTO session FROM conversations WHERE conversation_id = p_conversation_id FOR NO KEY UPDATE;

  INSERT INTO summaries (
    summary_id, conversation_id, kind, content, token_count, file_ids, depth, first_seq, last_seq, earliest_at, latest_at,
    source_count, descendant_count, source_tokens, level, model, quality, token_counter, summary_hash, run_id, retention,
    is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out, duration_ms, created_at
  )
  -- Not now(): the transaction may have waited for the conversation's row while others appended to it.
  SELECT summary_id, p_conversation_id, kind, content, token_count, file_ids, depth, first_seq, last_seq, earliest_at,
         latest_at, source_count, descendant_count, source_tokens, level, model, quality, token_counter,
         decode(summary_hash, 'hex'), run_id, retention, is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out,
         duration_ms, clock_timestamp()
    FROM json_to_record(p_summary) AS s(
      summary_id text, kind summary_kind, content text, token_count integer, file_ids jsonb, depth integer,
      first_seq bigint, last_seq bigint, earliest_at timestamptz, latest_at timestamptz, source_count integer,
      descendant_count integer, source_tokens bigint, level text, model text, quality jsonb, token_counter text,
      summary_hash text, run_id text, retention float, is_degraded boolean, supersedes_id text, prompt_hash text,
      tokens_in integer, tokens_out integer, duration_ms integer
    );

  INSERT INTO summary_messages (summary_id, message_id, ordinal)
  SELECT new_id, message_id, place - 1 FROM unnest(p_message_ids) WITH ORDINALITY AS given(message_id, place);

  INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
  SELECT new_id, source_id, place - 1 FROM unnest(p_source_ids) WITH ORDINALITY AS given(source_id, place);

  IF p_item_tokens IS NULL THEN
    items := 0;
  ELSIF p_summary ->> 'supersedes_id' IS NULL THEN
    SELECT shown.items, shown.ordinal INTO items, ordinal
      FROM lcm_show_summary(p_conversation_id, new_id, p_item_tokens) AS shown;
  ELSE
    SELECT shown.items, shown.ordinal INTO items, ordinal
      FROM lcm_show_instead(p_conversation_id, new_id, p_item_tokens) AS shown;
  END IF;

  INSERT INTO message_parts (
    part_id, message_id, session_id, part_type, ordinal, is_ignored, is_synthetic, compaction_auto, metadata, part_hash
  )
  SELECT 'part_' || last.message_id || '_' || next.ordinal, last.message_id, session, mark.part_type, next.ordinal,
         mark.is_ignored, mark.is_synthetic, mark.compaction_auto, mark.metadata, decode(mark.part_hash, 'hex')
    FROM json_to_record(p_mark) AS mark(
      part_type message_part_type, is_ignored boolean, is_synthetic boolean, compaction_auto boolean, metadata jsonb,
      part_hash text
    )
    JOIN messages last ON last.conversation_id = p_conversation_id AND last.seq = (p_summary ->> 'last_seq')::bigint
    CROSS JOIN LATERAL (
      SELECT coalesce(max(p.ordinal) + 1, 0) AS ordinal FROM message_parts p WHERE p.message_id = last.message_id
    ) next;
END
$$;
