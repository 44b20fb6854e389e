-- The hash chain of the audit log; the whole site has one. Each hash covers one audit entry and all entries before it.

-- Numbers run from 1 without gaps, in the order in which the audit entries were committed.
CREATE TABLE audit_chain (
  number BIGINT PRIMARY KEY,
  audit_id BIGINT NOT NULL UNIQUE REFERENCES audit_log(audit_id) ON DELETE RESTRICT,
  chain_hash BYTEA NOT NULL,
  CONSTRAINT audit_chain_counts_from_one CHECK (number >= 1)
);
CREATE TRIGGER audit_chain_is_immutable BEFORE UPDATE OR DELETE ON audit_chain
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER audit_chain_is_kept BEFORE TRUNCATE ON audit_chain
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- The length and the last hash of the chain: one row, whose number only grows. It shows whether the newest links were
-- removed, and its row lock puts the commits in order.
CREATE TABLE audit_head (
  head_id SMALLINT PRIMARY KEY DEFAULT 1,
  number BIGINT NOT NULL DEFAULT 0,
  chain_hash BYTEA NOT NULL DEFAULT '',
  CONSTRAINT audit_head_is_one_row CHECK (head_id = 1)
);
INSERT INTO audit_head DEFAULT VALUES;
CREATE TRIGGER audit_head_is_not_removed BEFORE DELETE ON audit_head
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER audit_head_is_kept BEFORE TRUNCATE ON audit_head
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER audit_head_only_advances BEFORE UPDATE ON audit_head
  FOR EACH ROW WHEN (NEW.number <> OLD.number + 1) EXECUTE FUNCTION lcm_refuse_change();

-- The text that is hashed for an audit entry: all its columns, in the order of the table, as PostgreSQL formats a JSON
-- array. The time is in UTC, whatever the session's time zone. docs/ledger.md describes the format.
CREATE FUNCTION lcm_act_text(entry audit_log) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT jsonb_build_array(
    entry.audit_id,
    to_char(entry.recorded_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
    entry.workspace_id, entry.conversation_id, entry.actor, entry.act, entry.target, entry.detail,
    entry.transaction_id::text
  )::text
$$;

CREATE FUNCTION lcm_next_act(previous bytea, entry audit_log) RETURNS bytea
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT sha256(previous || convert_to(lcm_act_text(entry), 'UTF8'))
$$;

CREATE FUNCTION lcm_chain_act() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  head audit_head;
BEGIN
  -- In an emptied database, the first act inserts the row. If the row is missing but links exist, number 1 is taken, so
  -- that the act is refused.
  INSERT INTO audit_head DEFAULT VALUES ON CONFLICT DO NOTHING;
  SELECT * INTO head FROM audit_head FOR UPDATE;
  head.number := head.number + 1;
  head.chain_hash := lcm_next_act(head.chain_hash, NEW);
  INSERT INTO audit_chain (number, audit_id, chain_hash) VALUES (head.number, NEW.audit_id, head.chain_hash);
  UPDATE audit_head SET number = head.number, chain_hash = head.chain_hash;
  RETURN NULL;
END
$$;

-- Deferred: a transaction locks the row of audit_head only when it commits, and waits for no other lock after that.
-- Until then, transactions write their audit entries concurrently.
CREATE CONSTRAINT TRIGGER audit_log_is_chained AFTER INSERT ON audit_log
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lcm_chain_act();
