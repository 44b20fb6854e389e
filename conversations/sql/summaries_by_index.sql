-- `lcm_show_summary` is, since a later migration, that of `summaries_planned_once.sql`.
-- Writing a summary, with plans that hold for a conversation of any length and are not made anew for every link.

-- A function's setting holds for the checks of foreign keys within it, too. Planned anew, those of 130 links took six times
-- as long as the links themselves; so what is written is planned once, and, whatever is small by then, never by reading
-- a whole table.
ALTER FUNCTION lcm_write_summary(bigint, json, bigint[], text[], integer, json) RESET plan_cache_mode;
ALTER FUNCTION lcm_write_summary(bigint, json, bigint[], text[], integer, json) SET enable_seqscan = off;

-- As before, and each source looks up its own item: a join was planned as a walk along the items of all conversations
-- from the oldest on.
CREATE OR REPLACE FUNCTION lcm_show_summary(
  p_conversation_id bigint, p_summary_id text, p_item_tokens integer, OUT items bigint, OUT ordinal bigint
)
LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
BEGIN
  WITH raw AS (
    DELETE FROM context_items item
    WHERE item.message_id = ANY (ARRAY(SELECT message_id FROM summary_messages WHERE summary_id = p_summary_id))
      AND item.conversation_id = p_conversation_id
    RETURNING item.ordinal, item.token_count
  ), merged AS (
    DELETE FROM context_items item
    WHERE item.summary_id = ANY (ARRAY(SELECT parent_summary_id FROM summary_parents WHERE summary_id = p_summary_id))
      AND item.conversation_id = p_conversation_id
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
