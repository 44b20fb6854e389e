-- The floor of a check: that every message is there, in place and reachable once, asked in plain SQL, and nothing more.
-- It computes no hash, names no place where something is wrong, and looks at one conversation. What every hash costs the
-- server that computes it, without looking for anything else, is in the last two.

-- name: complete_and_numbered
SELECT count(*) <> max(seq) OR min(seq) <> 1 FROM messages WHERE conversation_id = %(id)s

-- name: places_taken_twice
SELECT count(*) FROM (SELECT FROM messages WHERE conversation_id = %(id)s GROUP BY seq HAVING count(*) > 1) x

-- name: parts_missing
SELECT count(*) FROM messages m WHERE conversation_id = %(id)s AND chained_parts >
    (SELECT count(*) FROM message_parts p WHERE p.message_id = m.message_id)

-- name: parts_in_one_place
SELECT count(*) FROM (SELECT FROM message_parts p JOIN messages m USING (message_id)
    WHERE m.conversation_id = %(id)s GROUP BY p.message_id, p.ordinal HAVING count(*) > 1) x

-- name: context_leads_nowhere
SELECT count(*) FROM context_items c LEFT JOIN messages m USING (message_id)
    LEFT JOIN summaries s USING (summary_id)
    WHERE c.conversation_id = %(id)s AND m.message_id IS NULL AND s.summary_id IS NULL

-- name: context_places_taken_twice
SELECT count(*) FROM (SELECT FROM context_items WHERE conversation_id = %(id)s
    GROUP BY ordinal HAVING count(*) > 1) x

-- name: messages_not_in_one_place
SELECT count(*) FROM messages m WHERE conversation_id = %(id)s AND
    (SELECT count(*) FROM context_items c WHERE c.message_id = m.message_id)
    + (SELECT count(*) FROM summary_messages l WHERE l.message_id = m.message_id) <> 1

-- name: summaries_of_nothing
SELECT count(*) FROM summaries s WHERE conversation_id = %(id)s
    AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.summary_id = s.summary_id)
    AND NOT EXISTS (SELECT FROM summary_parents p WHERE p.summary_id = s.summary_id)

-- name: messages_of_others
SELECT count(*) FROM summaries s JOIN summary_messages l USING (summary_id) JOIN messages m USING (message_id)
    WHERE s.conversation_id = %(id)s AND m.conversation_id <> s.conversation_id

-- name: lineage_not_downwards
SELECT count(*) FROM summaries s JOIN summary_parents p USING (summary_id)
    JOIN summaries source ON source.summary_id = p.parent_summary_id
    WHERE s.conversation_id = %(id)s AND source.depth >= s.depth

-- name: summaries_beyond_their_range
SELECT count(*) FROM (SELECT FROM summaries s JOIN summary_messages l USING (summary_id)
    JOIN messages m USING (message_id) WHERE s.conversation_id = %(id)s GROUP BY s.summary_id
    HAVING min(m.seq) < s.first_seq OR max(m.seq) > s.last_seq) x

-- name: wrong_total
SELECT c.total_tokens <> sum(m.token_count) FROM conversations c JOIN messages m USING (conversation_id)
    WHERE conversation_id = %(id)s GROUP BY c.conversation_id

-- name: wrong_active
SELECT c.active_tokens <> sum(i.token_count) FROM conversations c JOIN context_items i USING (conversation_id)
    WHERE conversation_id = %(id)s GROUP BY c.conversation_id

-- name: hashes_of_messages
SELECT count(*) FROM messages WHERE conversation_id = %(id)s
    AND sha256(convert_to(content, 'UTF8')) <> content_hash

-- name: hashes_of_parts
SELECT count(*) FROM message_parts p JOIN messages m USING (message_id) WHERE m.conversation_id = %(id)s
    AND sha256(convert_to(coalesce(p.text_content, p.tool_output, ''), 'UTF8')) = p.part_hash
