-- What was said stays said. These triggers refuse any client, the owner of the tables included: whoever must get past them
-- has to disable them, which is a deliberate act that leaves its own trace.

CREATE FUNCTION lcm_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % refused: what LCM has recorded is never changed or removed', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation',
          HINT = 'Append a new message; compaction makes room without touching what is stored.';
END
$$;

CREATE TRIGGER messages_are_immutable BEFORE UPDATE OR DELETE ON messages
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER messages_are_kept BEFORE TRUNCATE ON messages
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER message_parts_are_immutable BEFORE UPDATE OR DELETE ON message_parts
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER message_parts_are_kept BEFORE TRUNCATE ON message_parts
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER summaries_are_immutable BEFORE UPDATE OR DELETE ON summaries
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER summaries_are_kept BEFORE TRUNCATE ON summaries
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER summary_messages_are_immutable BEFORE UPDATE OR DELETE ON summary_messages
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER summary_messages_are_kept BEFORE TRUNCATE ON summary_messages
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER summary_parents_are_immutable BEFORE UPDATE OR DELETE ON summary_parents
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER summary_parents_are_kept BEFORE TRUNCATE ON summary_parents
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- A summary of nothing may not be committed. Deferred: the links are written after the summary they belong to.
CREATE FUNCTION lcm_require_source() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM summary_messages WHERE summary_id = NEW.summary_id)
     AND NOT EXISTS (SELECT FROM summary_parents WHERE summary_id = NEW.summary_id) THEN
    RAISE EXCEPTION 'summary % links to no source', NEW.summary_id
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN NULL;
END
$$;

CREATE CONSTRAINT TRIGGER summaries_have_a_source AFTER INSERT ON summaries
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION lcm_require_source();
