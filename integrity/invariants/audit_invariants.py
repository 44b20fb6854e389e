"""The audit log is whole: its hash chain is computed again from the rows."""

from __future__ import annotations

from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity

_BROKEN = """
    WITH links AS (
        SELECT number, audit_id, chain_hash,
               lag(number, 1, 0::bigint) OVER by_number AS previous, lag(chain_hash, 1, '') OVER by_number AS sealed
        FROM audit_chain WINDOW by_number AS (ORDER BY number)
    ), last AS (
        SELECT number, chain_hash FROM audit_chain ORDER BY number DESC LIMIT 1
    )
    SELECT NULL::bigint, 'act_' || l.audit_id,
           CASE WHEN a.audit_id IS NULL THEN format('is number %%s of the audit chain, and the act is gone', l.number)
                WHEN l.number <> l.previous + 1
                THEN format('is number %%s of the audit chain, and follows number %%s', l.number, l.previous)
                ELSE format('does not follow from what is before number %%s of the audit chain', l.number) END
    FROM links l LEFT JOIN audit_log a USING (audit_id)
    WHERE a.audit_id IS NULL OR l.number <> l.previous + 1 OR l.chain_hash <> lcm_next_act(l.sealed, a)
    UNION ALL
    SELECT NULL, 'act_' || a.audit_id, 'is not in the audit chain'
    FROM audit_log a
    WHERE NOT EXISTS (SELECT FROM audit_chain l WHERE l.audit_id = a.audit_id)
      -- The newest acts of this very transaction enter the chain when it commits. Those of others are not seen before.
      AND (a.transaction_id IS DISTINCT FROM pg_current_xact_id_if_assigned() OR EXISTS (
          SELECT FROM audit_log later JOIN audit_chain USING (audit_id)
          WHERE later.transaction_id = a.transaction_id AND later.audit_id > a.audit_id))
    UNION ALL
    SELECT NULL, 'audit_head',
           format('says that the audit chain has %%s acts and ends with %%s; it has %%s and ends with %%s',
                  coalesce(h.number::text, 'nothing'), left(encode(h.chain_hash, 'hex'), 16),
                  coalesce(last.number, 0), left(encode(last.chain_hash, 'hex'), 16))
    FROM (SELECT) AS always LEFT JOIN last ON true LEFT JOIN audit_head h ON true
    WHERE (coalesce(h.number, 0), coalesce(h.chain_hash, ''))
          IS DISTINCT FROM (coalesce(last.number, 0), coalesce(last.chain_hash, ''))
"""


@invariant(Severity.CRITICAL, of_the_site=True)
def acts_are_chained(workspace_id: int | None) -> Found:
    """Every act in the audit log is as it was recorded, and none was removed or put in.

    There is one chain for the site, so a check of any workspace looks at all of it. A finding names acts by number.
    """
    return violations(_BROKEN, ())
