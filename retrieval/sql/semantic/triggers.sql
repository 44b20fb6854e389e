-- Vectors go with the texts that they were made of: what is erased, cold or quarantined has none. What comes back is
-- embedded again, by whoever works on its conversation next.

CREATE FUNCTION lcm_forget_vectors(p_messages bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  vectors regclass;
BEGIN
  -- Whoever stores vectors of these messages holds their rows: what is stored meanwhile is removed, too.
  PERFORM FROM messages WHERE message_id = ANY(p_messages) ORDER BY message_id FOR UPDATE;
  FOR vectors IN SELECT to_regclass('embedding_vectors_' || embedder_id) FROM embedders LOOP
    IF vectors IS NOT NULL THEN
      EXECUTE format('DELETE FROM %s WHERE message_id = ANY($1)', vectors) USING p_messages;
    END IF;
  END LOOP;
END
$$;

CREATE FUNCTION lcm_forget_vectors_of_texts() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM embedders) THEN
    PERFORM lcm_forget_vectors(ARRAY(
      SELECT message_id FROM changed WHERE erased_by_id IS NOT NULL OR cold_block_id IS NOT NULL
    ));
    UPDATE embedded_conversations e SET upto_seq = least(e.upto_seq, again.first_seq - 1)
    FROM (
      SELECT conversation_id, min(seq) AS first_seq FROM changed
      WHERE erased_by_id IS NULL AND cold_block_id IS NULL GROUP BY conversation_id
    ) AS again
    WHERE e.conversation_id = again.conversation_id AND e.upto_seq >= again.first_seq;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER messages_take_their_vectors_along AFTER UPDATE ON messages
  REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION lcm_forget_vectors_of_texts();

CREATE FUNCTION lcm_forget_vectors_of_quarantined() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
  held bigint := CASE
    WHEN NEW.target ~ '^msg_[0-9]{1,18}$' THEN substr(NEW.target, 5)::bigint
    ELSE (SELECT message_id FROM message_parts WHERE part_id = NEW.target)
  END;
BEGIN
  IF held IS NULL OR NOT EXISTS (SELECT FROM embedders) THEN
    RETURN NULL;
  END IF;
  IF NEW.released_at IS NULL THEN
    PERFORM lcm_forget_vectors(ARRAY[held]);
  ELSE
    UPDATE embedded_conversations e SET upto_seq = m.seq - 1 FROM messages m
    WHERE m.message_id = held AND e.conversation_id = m.conversation_id AND e.upto_seq >= m.seq;
  END IF;
  RETURN NULL;
END
$$;

CREATE TRIGGER quarantines_take_vectors_along AFTER INSERT OR UPDATE OF released_at ON quarantines
  FOR EACH ROW EXECUTE FUNCTION lcm_forget_vectors_of_quarantined();
