-- name: first_findings
-- The first findings of each of the given invariants in a report.
SELECT invariant.code, found.conversation_id, found.target, found.detail
FROM unnest(%s::text[]) AS invariant(code), LATERAL (
    SELECT finding_id, conversation_id, target, detail FROM integrity_findings
    WHERE report_id = %s AND code = invariant.code ORDER BY finding_id LIMIT %s
) found
ORDER BY found.finding_id

-- name: checked_conversations
-- The numbers of conversations and messages, of those that were ever checked, of conversations with findings, and of
-- repair plans that wait for a decision.
SELECT count(*) AS conversations,
       coalesce(sum(c.next_seq - 1), 0)::bigint AS messages,
       count(k.conversation_id) AS conversations_checked,
       coalesce(sum(c.next_seq - 1) FILTER (WHERE k.conversation_id IS NOT NULL), 0)::bigint AS messages_checked,
       count(*) FILTER (WHERE NOT k.is_clean) AS conversations_with_findings,
       (SELECT count(*) FROM repair_plans p JOIN integrity_reports r USING (report_id)
        WHERE p.state = 'proposed' AND EXISTS (SELECT FROM repair_steps s WHERE s.plan_id = p.plan_id)
          AND (%(workspace_id)s::bigint IS NULL OR r.workspace_id = %(workspace_id)s)) AS repair_plans_proposed
FROM conversations c LEFT JOIN conversation_checks k USING (conversation_id)
WHERE %(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s

-- name: stored_chains
-- For each conversation of an anchor, in order: the stored conversation with the same workspace and session, if any,
-- and the chain hash of the message that was its last one when the anchor was made.
SELECT c.conversation_id, c.created_at, c.next_seq - 1, encode(m.chain_hash, 'hex')
FROM unnest(%s::text[], %s::text[], %s::bigint[]) WITH ORDINALITY AS anchored(workspace, session_id, messages, place)
LEFT JOIN (workspaces w JOIN conversations c USING (workspace_id))
  ON (w.name, c.session_id) = (anchored.workspace, anchored.session_id)
LEFT JOIN messages m ON (m.conversation_id, m.seq) = (c.conversation_id, anchored.messages)
ORDER BY anchored.place
