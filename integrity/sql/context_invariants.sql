-- name: context_points_at_rows
-- Context items without exactly one existing message or summary of their conversation.
SELECT c.conversation_id, 'ordinal_' || c.ordinal,
       CASE
           WHEN coalesce(m.message_id::text, s.summary_id) IS NULL THEN format(
               'points at %%s, which does not exist',
                  coalesce('msg_' || c.message_id, c.summary_id, 'a row'))
           WHEN coalesce(m.conversation_id, s.conversation_id) <> c.conversation_id THEN format(
               'points at %%s of conversation %%s', coalesce('msg_' || m.message_id, s.summary_id),
               coalesce(m.conversation_id, s.conversation_id))
           ELSE format('is a %%s item but does not point at exactly one %%s', c.item_type, c.item_type)
       END
FROM context_items c
LEFT JOIN messages m ON m.message_id = c.message_id
LEFT JOIN summaries s ON s.summary_id = c.summary_id
WHERE c.conversation_id = ANY(%(ids)s)
  AND (coalesce(m.conversation_id, s.conversation_id) IS DISTINCT FROM c.conversation_id
       OR (c.item_type = 'message') <> (c.message_id IS NOT NULL)
       OR (c.item_type = 'summary') <> (c.summary_id IS NOT NULL))

-- name: ordinals_are_unique
-- Ordinals and seqs that are used twice.
SELECT conversation_id, 'ordinal_' || ordinal, format('%%s context items have this ordinal', count(*))
FROM context_items WHERE conversation_id = ANY(%(ids)s)
GROUP BY conversation_id, ordinal HAVING count(*) > 1
UNION ALL
SELECT conversation_id, 'seq_' || seq, format('%%s messages have this seq', count(*))
FROM messages WHERE conversation_id = ANY(%(ids)s)
GROUP BY conversation_id, seq HAVING count(*) > 1
UNION ALL
SELECT m.conversation_id, 'msg_' || m.message_id, format('%%s parts have ordinal %%s', count(*), p.ordinal)
FROM message_parts p JOIN messages m USING (message_id) WHERE m.conversation_id = ANY(%(ids)s)
GROUP BY m.conversation_id, m.message_id, p.ordinal HAVING count(*) > 1
UNION ALL
SELECT s.conversation_id, s.summary_id, format('%%s source messages have ordinal %%s', count(*), l.ordinal)
FROM summary_messages l JOIN summaries s USING (summary_id) WHERE s.conversation_id = ANY(%(ids)s)
GROUP BY s.conversation_id, s.summary_id, l.ordinal HAVING count(*) > 1
UNION ALL
SELECT s.conversation_id, s.summary_id, format('%%s source summaries have ordinal %%s', count(*), p.ordinal)
FROM summary_parents p JOIN summaries s USING (summary_id) WHERE s.conversation_id = ANY(%(ids)s)
GROUP BY s.conversation_id, s.summary_id, p.ordinal HAVING count(*) > 1

-- name: context_is_what_lineage_says
-- Differences between the stored context and the one derived from lineage.
WITH derived AS (
    SELECT m.conversation_id, m.seq AS ordinal, 'msg_' || m.message_id AS id,
           m.token_count + %(message_overhead)s AS tokens
    FROM messages m
    WHERE m.conversation_id = ANY(%(ids)s)
      AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.message_id = m.message_id)
    UNION ALL
    SELECT s.conversation_id, s.first_seq, s.summary_id, NULL
    FROM summaries s
    WHERE s.conversation_id = ANY(%(ids)s)
      AND NOT EXISTS (SELECT FROM summary_parents p WHERE p.parent_summary_id = s.summary_id)
      AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id)
), stored AS (
    SELECT conversation_id, ordinal, coalesce('msg_' || message_id, summary_id, 'nothing') AS id,
           CASE WHEN message_id IS NOT NULL THEN token_count END AS tokens
    FROM context_items WHERE conversation_id = ANY(%(ids)s)
)
SELECT coalesce(d.conversation_id, s.conversation_id), coalesce(d.id, s.id),
       CASE
           WHEN s.id IS NULL THEN format('is missing from the context at ordinal %%s', d.ordinal)
           WHEN d.id IS NULL THEN format('is in the context at ordinal %%s but should not be', s.ordinal)
           WHEN d.ordinal <> s.ordinal THEN format('is at ordinal %%s instead of %%s', s.ordinal, d.ordinal)
           ELSE format('costs %%s tokens in the context instead of %%s', s.tokens, d.tokens)
       END
FROM derived d FULL JOIN stored s ON s.conversation_id = d.conversation_id AND s.id = d.id
WHERE (d.ordinal, d.tokens) IS DISTINCT FROM (s.ordinal, s.tokens)

-- name: nothing_is_shown_twice
-- Messages and summaries with more than one context item.
SELECT conversation_id, coalesce('msg_' || message_id, summary_id),
       format('is in the context %%s times, at ordinals %%s', count(*),
              string_agg(ordinal::text, ', ' ORDER BY ordinal))
FROM context_items WHERE conversation_id = ANY(%(ids)s)
GROUP BY conversation_id, message_id, summary_id HAVING count(*) > 1
