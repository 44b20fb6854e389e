-- Writes the lineage of summaries.

-- name: link_messages
-- Records which messages a summary was made from, in order.
INSERT INTO summary_messages (summary_id, message_id, ordinal)
SELECT %s, message_id, place - 1 FROM unnest(%s::bigint[]) WITH ORDINALITY AS given(message_id, place)
RETURNING ordinal

-- name: link_parents
-- Records which older summaries a condensed summary was made from, in order.
INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
SELECT %s, source_id, place - 1 FROM unnest(%s::text[]) WITH ORDINALITY AS given(source_id, place)
RETURNING ordinal
