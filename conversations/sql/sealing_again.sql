-- Chains made before they sealed metadata and the time of recording are made anew: run once, by a migration, after it has
-- filled in metadata_hash.

UPDATE messages m SET recorded_at = in_order.recorded_at
  FROM (
    SELECT message_id, max(recorded_at) OVER (PARTITION BY conversation_id ORDER BY seq) AS recorded_at FROM messages
  ) in_order
 WHERE in_order.message_id = m.message_id AND in_order.recorded_at <> m.recorded_at;

UPDATE messages m SET chain_hash = sealed.chain_hash
  FROM (
    SELECT message_id, lcm_chain('\x', entry_hash, metadata_hash, created_at, recorded_at)
             OVER (PARTITION BY conversation_id ORDER BY seq) AS chain_hash
      FROM messages
  ) sealed
 WHERE sealed.message_id = m.message_id;

UPDATE conversations c SET chain_head = m.chain_hash
  FROM messages m WHERE m.conversation_id = c.conversation_id AND m.seq = c.next_seq - 1;

UPDATE conversations c SET updated_at = m.recorded_at
  FROM messages m
 WHERE m.conversation_id = c.conversation_id AND m.seq = c.next_seq - 1 AND m.recorded_at > c.updated_at;
