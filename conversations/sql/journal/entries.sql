-- Triggers of the journal: the raw entries of a host's transcript.

-- Allows one change: an erasure recorded in the audit log sets `entry` to NULL and sets erased_by_id.
CREATE FUNCTION lcm_keep_journal_entry() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.journal_entry_id, NEW.conversation_id, NEW.subpath, NEW.position, NEW.uuid, NEW.entry_hash, NEW.recorded_at)
     IS DISTINCT FROM
     (OLD.journal_entry_id, OLD.conversation_id, OLD.subpath, OLD.position, OLD.uuid, OLD.entry_hash, OLD.recorded_at)
     OR NEW.entry IS NOT NULL OR NEW.erased_by_id IS NULL OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on journal_entries refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation', HINT = 'Append another entry.';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER journal_entries_are_immutable BEFORE UPDATE ON journal_entries
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_journal_entry();
CREATE TRIGGER journal_entries_are_not_removed BEFORE DELETE ON journal_entries
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER journal_entries_are_kept BEFORE TRUNCATE ON journal_entries
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();
