-- Showing a summary, planned once a connection: to plan it anew for every summary took as long as to show it.

-- As before. Whatever is small when it is planned, there is one way alone to find the items of the sources, each by its
-- own index: whole tables are not read, and `conversation_id + 0` leaves the walk along a conversation's items out.
CREATE OR REPLACE FUNCTION lcm_show_summary(
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
