-- What a message's row says beside its entry is sealed in the chain, and what it needs of files stays as it is.

-- SHA-256 over the idempotency key, the token count with its counter, the order of JSON keys and the files: see hashing.py.
-- NULL in rows that are older than this column. Their links are what they were, so that their chains hold.
ALTER TABLE messages ADD COLUMN record_hash BYTEA;

DROP AGGREGATE lcm_chain(bytea, bytea, bytea, timestamptz, timestamptz);
DROP FUNCTION lcm_next_link;

-- The hash chain of a conversation: each link seals its entry, metadata and record, when it was said and when it was recorded,
-- together with all that came before. The word before the record tells it from a metadata_hash, as both may be absent.
CREATE FUNCTION lcm_next_link(
  link bytea, head bytea, entry_hash bytea, metadata_hash bytea, record_hash bytea, created_at timestamptz,
  recorded_at timestamptz
) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
  RETURN sha256(
    coalesce(link, head) || entry_hash
    || int8send((extract(epoch FROM created_at) * 1000000)::bigint)
    || int8send((extract(epoch FROM recorded_at) * 1000000)::bigint)
    || coalesce(metadata_hash, '')
    || coalesce('record:'::bytea || record_hash, '')
  );
END
$$;

CREATE AGGREGATE lcm_chain(
  head bytea, entry_hash bytea, metadata_hash bytea, record_hash bytea, created_at timestamptz, recorded_at timestamptz
) (SFUNC = lcm_next_link, STYPE = bytea);

CREATE OR REPLACE FUNCTION lcm_keep_message() RETURNS trigger
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

-- A file keeps all that its row says. Only an erasure, announced in the audit log, takes name, type and description, and leaves
-- its mark; identity, place, size and hash stay then, too.
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

CREATE TRIGGER large_files_are_immutable BEFORE UPDATE ON large_files
  FOR EACH ROW EXECUTE FUNCTION lcm_keep_file();
CREATE TRIGGER large_files_are_not_removed BEFORE DELETE ON large_files
  FOR EACH ROW EXECUTE FUNCTION lcm_refuse_change();
CREATE TRIGGER large_files_are_kept BEFORE TRUNCATE ON large_files
  FOR EACH STATEMENT EXECUTE FUNCTION lcm_refuse_change();
