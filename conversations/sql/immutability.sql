-- Triggers that make recorded rows immutable. They refuse changes by every client, also by the owner of the tables.
-- Only disabling the triggers circumvents them.

CREATE FUNCTION lcm_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % refused: what LCM has recorded is never changed or removed', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'integrity_constraint_violation',
          HINT = 'Append a new message; compaction makes room without touching what is stored.';
END
$$;

-- Whether the current transaction has recorded, in the audit log, an operation that may change texts of this
-- conversation: moving them to or from the cold tier, restoring them from a ledger, or erasing them. Columns that
-- identify, order or hash a row never change, so that a replaced text is detected.
CREATE FUNCTION lcm_is_announced(p_conversation_id bigint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (
    SELECT FROM audit_log
    WHERE transaction_id = pg_current_xact_id_if_assigned() AND conversation_id = p_conversation_id
      AND act IN ('archive', 'thaw', 'erase', 'restore')
  );
END
$$;

CREATE FUNCTION lcm_keep_message() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.message_id, NEW.conversation_id, NEW.seq, NEW.role, NEW.token_count, NEW.token_counter, NEW.chained_parts,
      NEW.created_at, NEW.recorded_at, NEW.content_hash, NEW.entry_hash, NEW.metadata_hash, NEW.record_hash,
      NEW.chain_hash)
     IS DISTINCT FROM
     (OLD.message_id, OLD.conversation_id, OLD.seq, OLD.role, OLD.token_count, OLD.token_counter, OLD.chained_parts,
      OLD.created_at, OLD.recorded_at, OLD.content_hash, OLD.entry_hash, OLD.metadata_hash, OLD.record_hash,
      OLD.chain_hash)
     OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on messages refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Append a new message; compaction makes room without touching what is stored.';
  END IF;
  RETURN NEW;
END
$$;

CREATE FUNCTION lcm_keep_part() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF (NEW.part_id, NEW.message_id, NEW.session_id, NEW.part_type, NEW.ordinal, NEW.part_hash) IS DISTINCT FROM
     (OLD.part_id, OLD.message_id, OLD.session_id, OLD.part_type, OLD.ordinal, OLD.part_hash)
     OR NOT lcm_is_announced((SELECT conversation_id FROM messages WHERE message_id = OLD.message_id)) THEN
    RAISE EXCEPTION 'UPDATE on message_parts refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Append a new message; compaction makes room without touching what is stored.';
  END IF;
  RETURN NEW;
END
$$;

CREATE FUNCTION lcm_keep_summary() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  -- The columns that such an act may change: the text, its lexemes, and the id of the erasure.
  taken text[] := ARRAY['content', 'content_tsv', 'erased_by_id'];
BEGIN
  IF to_jsonb(NEW) - taken IS DISTINCT FROM to_jsonb(OLD) - taken OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on summaries refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation',
            HINT = 'Append a new message; compaction makes room without touching what is stored.';
  END IF;
  RETURN NEW;
END
$$;

-- Allows one change to a file's row: an erasure recorded in the audit log clears name, type and description, and sets
-- erased_by_id. Id, storage URI, size and hash never change.
CREATE FUNCTION lcm_keep_file() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  taken text[] := ARRAY['file_name', 'mime_type', 'exploration_summary', 'erased_by_id'];
BEGIN
  IF to_jsonb(NEW) - taken IS DISTINCT FROM to_jsonb(OLD) - taken
     OR num_nonnulls(NEW.file_name, NEW.mime_type, NEW.exploration_summary) > 0 OR NEW.erased_by_id IS NULL
     OR NOT lcm_is_announced(OLD.conversation_id) THEN
    RAISE EXCEPTION 'UPDATE on large_files refused: what LCM has recorded is never changed or removed'
      USING ERRCODE = 'integrity_constraint_violation', HINT = 'Store another file.';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER messages_are_immutable BEFORE UPDATE ON messages
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_message();
CREATE TRIGGER messages_are_not_removed BEFORE DELETE ON messages
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER messages_are_kept BEFORE TRUNCATE ON messages
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER message_parts_are_immutable BEFORE UPDATE ON message_parts
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_part();
CREATE TRIGGER message_parts_are_not_removed BEFORE DELETE ON message_parts
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER message_parts_are_kept BEFORE TRUNCATE ON message_parts
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER summaries_are_immutable BEFORE UPDATE ON summaries
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_summary();
CREATE TRIGGER summaries_are_not_removed BEFORE DELETE ON summaries
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

CREATE TRIGGER large_files_are_immutable BEFORE UPDATE ON large_files
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_file();
CREATE TRIGGER large_files_are_not_removed BEFORE DELETE ON large_files
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER large_files_are_kept BEFORE TRUNCATE ON large_files
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER file_references_are_immutable BEFORE UPDATE OR DELETE ON file_references
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER file_references_are_kept BEFORE TRUNCATE ON file_references
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

CREATE TRIGGER audit_log_is_immutable BEFORE UPDATE OR DELETE ON audit_log
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER audit_log_is_kept BEFORE TRUNCATE ON audit_log
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- A block may be removed, but not while messages name it: their foreign key prevents that.
CREATE TRIGGER cold_blocks_are_immutable BEFORE UPDATE ON cold_blocks
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER cold_blocks_are_kept BEFORE TRUNCATE ON cold_blocks
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();

-- Refuses a summary without sources. Deferred to the commit, because the links are inserted after the summary.
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
