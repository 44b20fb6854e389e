-- The steps along the lineage. A recursion is expected to go through many more summaries than it does, and a plain join
-- would then read the links of all conversations at each step; with an offset of 0, each step is a look-up by index.

-- name: sources
-- The summaries that a summary was made from.
LATERAL (SELECT parent_summary_id FROM summary_parents WHERE summary_id = {of}.summary_id OFFSET 0)

-- name: derived
-- The summaries that were made from a summary.
LATERAL (SELECT summary_id FROM summary_parents WHERE parent_summary_id = {of}.summary_id OFFSET 0)

-- name: above_messages
-- Each of some messages, with every summary above it.
WITH RECURSIVE above AS (
    SELECT message_id, summary_id FROM summary_messages WHERE message_id = ANY({ids})
    UNION
    SELECT above.message_id, derived.summary_id FROM above, {derived} AS derived
)
