-- The active context and the counters of a conversation, derived from messages, summaries and lineage.

-- name: derived
-- A fragment that begins the next two statements: the active context as it follows from the lineage.
-- It contains the messages that are not summarized and not in `off` (the seqs that are not on the path to the head),
-- and the given summaries, which are neither superseded nor sources of other summaries. In a conversation with
-- branches, `kept` has the ids of these summaries and of all their sources; otherwise it is NULL.
WITH derived AS (
  SELECT m.seq AS ordinal, 'message' AS item_type, m.message_id, NULL::text AS summary_id,
         m.token_count + %(overhead)s AS token_count
  FROM messages m
  WHERE m.conversation_id = %(id)s AND NOT %(off)s::int8multirange @> m.seq
    AND NOT EXISTS (
        SELECT FROM summary_messages l
        WHERE l.message_id = m.message_id AND (%(kept)s::text[] IS NULL OR l.summary_id = ANY(%(kept)s::text[])))
  UNION ALL
  SELECT s.first_seq, 'summary', NULL, s.summary_id, given.cost
  FROM unnest(%(summary_ids)s::text[], %(costs)s::integer[]) AS given(summary_id, cost)
  JOIN summaries s ON s.summary_id = given.summary_id
)

-- name: differences
-- A fragment, placed after `derived`: the derived items that are not stored, and the stored items that are not derived.
-- Stored items include those of other conversations that point at a message or summary of this one.
, stored AS (
  SELECT conversation_id, ordinal, item_type::text, message_id, summary_id, token_count, created_at
  FROM context_items WHERE conversation_id = %(id)s
  UNION ALL
  SELECT c.conversation_id, c.ordinal, c.item_type::text, c.message_id, c.summary_id, c.token_count, c.created_at
  FROM messages m JOIN context_items c USING (message_id)
  WHERE m.conversation_id = %(id)s AND c.conversation_id <> %(id)s
  UNION ALL
  SELECT c.conversation_id, c.ordinal, c.item_type::text, c.message_id, c.summary_id, c.token_count, c.created_at
  FROM summaries s JOIN context_items c USING (summary_id)
  WHERE s.conversation_id = %(id)s AND c.conversation_id <> %(id)s
)
SELECT d.ordinal IS NOT NULL, coalesce(s.conversation_id, %(id)s), coalesce(d.ordinal, s.ordinal),
       coalesce(d.item_type, s.item_type), coalesce(d.message_id, s.message_id),
       coalesce(d.summary_id, s.summary_id), coalesce(d.token_count, s.token_count), s.created_at
FROM derived d
FULL JOIN stored s
  ON s.ordinal = d.ordinal AND s.item_type = d.item_type AND s.token_count = d.token_count
 AND coalesce(s.message_id::text, s.summary_id) = coalesce(d.message_id::text, d.summary_id)
 AND s.conversation_id = %(id)s
WHERE d.ordinal IS NULL OR s.ordinal IS NULL
ORDER BY 2, 3

-- name: fill
-- A fragment, placed after `derived`: inserts the derived items as the context of a conversation that has none.
INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, summary_id, token_count)
SELECT %(id)s, ordinal, item_type::context_item_type, message_id, summary_id, token_count
FROM derived ORDER BY ordinal

-- name: counters
-- The counters stored in a conversation's row.
SELECT next_seq, total_tokens, active_messages, active_tokens, encode(chain_head, 'hex'), cold_messages, quarantined,
       moves, inactive::text, journal_size
FROM conversations WHERE conversation_id = %(id)s

-- name: recounted
-- The same counters, computed from the rows that they count.
-- If the last message is missing, or its hash does not follow from the one before it, next_seq or chain_head is the
-- only evidence of that. It then keeps its stored value.
WITH last AS (
  SELECT seq, chain_hash,
         chain_hash = lcm_next_link(
           (SELECT before.chain_hash FROM messages before
             WHERE before.conversation_id = m.conversation_id AND before.seq = m.seq - 1),
           ''::bytea, entry_hash, metadata_hash, record_hash, created_at, recorded_at) AS follows
  FROM messages m WHERE conversation_id = %(id)s ORDER BY seq DESC LIMIT 1
), kept AS (
  SELECT c.*, c.next_seq > coalesce(last.seq, 0) + 1 AS lacks_its_end, last.seq, last.chain_hash,
         coalesce(last.follows, true) AS follows
  FROM conversations c LEFT JOIN last ON true WHERE c.conversation_id = %(id)s
)
SELECT CASE WHEN lacks_its_end THEN next_seq ELSE coalesce(seq, 0) + 1 END,
       (SELECT coalesce(sum(token_count), 0)::bigint FROM messages WHERE conversation_id = %(id)s),
       (SELECT count(message_id) FROM context_items WHERE conversation_id = %(id)s),
       (SELECT coalesce(sum(token_count), 0)::bigint FROM context_items WHERE conversation_id = %(id)s),
       encode(CASE WHEN lacks_its_end OR NOT follows THEN chain_head ELSE coalesce(chain_hash, '') END, 'hex'),
       (SELECT count(*) FROM messages WHERE conversation_id = %(id)s AND cold_block_id IS NOT NULL),
       (SELECT count(*) FROM quarantines WHERE conversation_id = %(id)s AND released_at IS NULL),
       moved.moves, lcm_inactive(%(id)s, CASE WHEN lacks_its_end THEN next_seq ELSE coalesce(seq, 0) + 1 END, moved.moves)::text,
       (SELECT count(*) FROM journal_entries WHERE conversation_id = %(id)s)
FROM kept, LATERAL (
  SELECT coalesce(max(m.number), 0) AS moves FROM head_moves m WHERE m.conversation_id = %(id)s
) AS moved

-- name: misfit_ranges
-- The summaries whose range differs from the range of their sources.
SELECT s.summary_id FROM summaries s
LEFT JOIN LATERAL (
  SELECT min(each.first_seq) AS first_seq, max(each.last_seq) AS last_seq FROM (
    SELECT m.seq AS first_seq, m.seq AS last_seq
    FROM summary_messages l JOIN messages m USING (message_id) WHERE l.summary_id = s.summary_id
    UNION ALL
    SELECT source.first_seq, source.last_seq
    FROM summary_parents p JOIN summaries source ON source.summary_id = p.parent_summary_id
    WHERE p.summary_id = s.summary_id
  ) AS each
) AS sources ON true
WHERE s.conversation_id = %(id)s
  AND (s.first_seq, s.last_seq) IS DISTINCT FROM (sources.first_seq, sources.last_seq)
ORDER BY s.summary_id
