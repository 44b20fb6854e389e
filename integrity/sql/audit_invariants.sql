-- name: altered_rows
-- A template: rows of one table whose values do not match their seal.
SELECT {conversation}, {id}, '{table}: the values do not match the row seal'
FROM {table} t, LATERAL (SELECT {columns}) AS sealed
WHERE {condition} AND t.row_seal IS DISTINCT FROM lcm_row_seal('{table}', sealed)

-- name: references
-- Every foreign key of one column: table, column, referenced table and column.
SELECT referring.relname, own.attname, referred.relname, other.attname
FROM pg_constraint c
JOIN pg_class referring ON referring.oid = c.conrelid
JOIN pg_class referred ON referred.oid = c.confrelid
JOIN pg_attribute own ON own.attrelid = c.conrelid AND own.attnum = c.conkey[1]
JOIN pg_attribute other ON other.attrelid = c.confrelid AND other.attnum = c.confkey[1]
WHERE c.contype = 'f' AND cardinality(c.conkey) = 1 AND c.connamespace = current_schema()::regnamespace
ORDER BY 1, 2

-- name: orphans
-- A template: rows of one table that refer to a missing row.
SELECT {conversation}::bigint, {id}::text, '{table}: there is no {column} ' || t.{column}
FROM {table} t LEFT JOIN {owner} owner ON owner.{key} = t.{column}
WHERE t.{column} IS NOT NULL AND owner.{key} IS NULL

-- name: audited_rows_are_there
-- Quarantines, erasures and applied repairs that the audit log names, but whose rows are missing.
SELECT a.conversation_id, a.target, format('was quarantined %%s times but has %%s rows', count(*), (
           SELECT count(*) FROM quarantines q
           WHERE q.conversation_id = a.conversation_id AND q.target = a.target))
FROM audit_log a
WHERE a.conversation_id = ANY(%(ids)s) AND a.act = 'quarantine'
GROUP BY a.conversation_id, a.target
HAVING count(*) > (
    SELECT count(*) FROM quarantines q WHERE q.conversation_id = a.conversation_id AND q.target = a.target)
UNION ALL
SELECT a.conversation_id, a.target,
       format('is named by act %%s of the audit log but does not exist', min(a.audit_id))
FROM audit_log a
WHERE a.conversation_id = ANY(%(ids)s)
  AND (a.act IN ('preview_erasure', 'erase')
       AND NOT EXISTS (SELECT FROM erasures e WHERE e.erasure_id = a.target)
       OR a.act = 'apply_repair'
       AND NOT EXISTS (SELECT FROM repair_plans p WHERE p.plan_id = a.target))
GROUP BY a.conversation_id, a.target

-- name: audited_site_rows_are_there
-- API keys that the audit log names and that no longer exist.
SELECT NULL::bigint, a.target, format('is named by act %%s of the audit log but does not exist', a.audit_id)
FROM audit_log a
WHERE (%(workspace_id)s::bigint IS NULL OR a.workspace_id = %(workspace_id)s) AND a.act = 'issue_key'
  AND NOT EXISTS (SELECT FROM api_keys k WHERE 'key ' || k.api_key_id = a.target)

-- name: acts_are_chained
-- Audit entries that the hash chain of the audit log does not confirm.
WITH links AS (
    SELECT number, audit_id, chain_hash,
           lag(number, 1, 0::bigint) OVER by_number AS previous, lag(chain_hash, 1, '') OVER by_number AS sealed
    FROM audit_chain WINDOW by_number AS (ORDER BY number)
), last AS (
    SELECT number, chain_hash FROM audit_chain ORDER BY number DESC LIMIT 1
)
SELECT NULL::bigint, 'act_' || l.audit_id,
       CASE WHEN a.audit_id IS NULL
            THEN format('is number %%s of the audit chain but missing from the audit log', l.number)
            WHEN l.number <> l.previous + 1
            THEN format('is number %%s of the audit chain but follows number %%s', l.number, l.previous)
            ELSE format('does not follow from the entry before number %%s of the audit chain', l.number) END
FROM links l LEFT JOIN audit_log a USING (audit_id)
WHERE a.audit_id IS NULL OR l.number <> l.previous + 1 OR l.chain_hash <> lcm_next_act(l.sealed, a)
UNION ALL
SELECT NULL, 'act_' || a.audit_id, 'is not in the audit chain'
FROM audit_log a
WHERE NOT EXISTS (SELECT FROM audit_chain l WHERE l.audit_id = a.audit_id)
  -- Entries of this transaction enter the chain at its commit. Entries of other transactions are visible only after
  -- that.
  AND (a.transaction_id IS DISTINCT FROM pg_current_xact_id_if_assigned() OR EXISTS (
      SELECT FROM audit_log later JOIN audit_chain USING (audit_id)
      WHERE later.transaction_id = a.transaction_id AND later.audit_id > a.audit_id))
UNION ALL
SELECT NULL, 'audit_head',
       format('records %%s acts ending with %%s; the audit chain has %%s ending with %%s',
              coalesce(h.number::text, 'nothing'), left(encode(h.chain_hash, 'hex'), 16),
              coalesce(last.number, 0), left(encode(last.chain_hash, 'hex'), 16))
FROM (SELECT) AS always LEFT JOIN last ON true LEFT JOIN audit_head h ON true
WHERE (coalesce(h.number, 0), coalesce(h.chain_hash, ''))
      IS DISTINCT FROM (coalesce(last.number, 0), coalesce(last.chain_hash, ''))
